# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Several emulated trays at once, each behind an `ssh` that this puts into PATH: it runs the command in the tray's
# namespaces. It knows two more hosts: "dead" refuses, and "slow" never gets through.

# rack_up FOLDER NAME...: brings the trays up; what it needs is in FOLDER. Their gpuagentd.yaml is $RACK_CONFIG, if set.
rack_up() {
        local folder=$1 name pid started=()

        shift
        mkdir -p "$folder/bin" "$folder/trays"
        for name in "$@"; do
                "$(dirname "${BASH_SOURCE[0]}")/../tray" --name "$name" ${RACK_CONFIG:+--config "$RACK_CONFIG"} -- \
                        sh -c 'touch "$1" && exec sleep infinity' sh "$folder/trays/$name.ready" \
                        </dev/null >"$folder/trays/$name.log" 2>&1 &
                started+=($!)
                echo $! >>"$folder/pids"
        done
        for name in "$@"; do
                pid=${started[0]} started=("${started[@]:1}")
                until [ -e "$folder/trays/$name.ready" ]; do
                        kill -0 "$pid" 2>/dev/null || { cat "$folder/trays/$name.log" >&2 && return 1; }
                        sleep 0.05
                done
                # The tray's first process is the child of the one that the namespaces were made by.
                pid=$(pgrep -P "$pid") && pgrep -P "$pid" >"$folder/trays/$name"
        done
        # The time that a login takes is not ours: the bench sets one.
        cat >"$folder/bin/ssh" <<EOF2
#!/bin/bash
while [ "\$1" != -- ]; do shift; done
host=\${2#*@}
shift 2
case \$host in
slow) exec sleep 60 ;;
dead) echo "ssh: connect to host dead port 22: No route to host" >&2 && exit 255 ;;
esac
read -r pid <"$folder/trays/\$host" || exit 255
[ -z "\${RACK_LOGIN_TIME-}" ] || sleep "\$RACK_LOGIN_TIME"
[ /proc/\$pid/ns/user -ef /proc/self/ns/user ] || user=--user
exec nsenter -t "\$pid" \${user+--user --preserve-credentials} --mount --uts sh -c "\$*"
EOF2
        chmod +x "$folder/bin/ssh"
        PATH=$folder/bin:$PATH
}

# rack_begin NAME...: trays for the whole of a test, in $rack, with $config.
rack_begin() {
        rack=$(mktemp -d)
        trap 'rack_down "$rack" 2>/dev/null' EXIT
        echo "$config" >"$rack/trays.yaml"
        RACK_CONFIG=$rack/trays.yaml rack_up "$rack" "$@" || { echo "Bail out! a tray did not come up" && exit 1; }
}

# in_rack FOLDER NAME COMMAND...: runs it in a tray.
in_rack() {
        nsenter -t "$(cat "$1/trays/$2")" --mount --uts --pid "${@:3}"
}

rack_down() {
        local pid

        while read -r pid; do kill "$pid" 2>/dev/null; done <"$1/pids"
        wait
        rm -rf "$1"
}
