# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154 # lab_* are from the lab's files, and the tests use what is set here
# For the tests of the packages: single hosts with systemd, booted from a base image with the lab's means. One host at a
# time; what a test boots is gone when it ends.
set -u

LAB_NAME=gpuagent-packages
lab_dir=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../../packaging/lab")
# shellcheck source=../../packaging/lab/lib/common.sh
. "$lab_dir/lib/common.sh"
# shellcheck source=../../packaging/lab/lib/image.sh
. "$lab_dir/lib/image.sh"
# shellcheck source=../../packaging/lab/lib/product.sh
. "$lab_dir/lib/product.sh"
# shellcheck source=../../packaging/lab/lib/host.sh
. "$lab_dir/lib/host.sh"
# shellcheck source=../lab/helper.sh
. "$lab_dir/../../tests/lab/helper.sh"

host=tray
tests=$lab_repo/tests/packages
bookworm_packages=(systemd-sysv dbus libpam-systemd iproute2 procps slurmctld slurmd slurm-client munge)

# skip_all WHY
skip_all() {
        printf '1..0 # SKIP %s\n' "$1"
        exit 0
}

# What the packages want to be there before them: in a base image, since a host reaches no mirror.
wanted_packages() {
        local deb

        for deb in "$lab_state"/product/*.deb; do
                dpkg-deb --field "$deb" Depends
        done | tr ',' '\n' | sed 's/[|(].*//; s/ //g; /^gpuagent/d; /^default-dbus/d' | sort -u
}

# bookworm_image: makes it, if it is not there yet, and prints where it is.
bookworm_image() {
        local include image

        include=$(printf '%s\n' "${bookworm_packages[@]}" | cat - <(wanted_packages) | paste -sd ,)
        image=$lab_cache/bookworm-$(sha256sum <<<"$include" | cut -c 1-12)
        if [[ ! -d $image ]]; then
                rm -rf --one-file-system "$lab_cache"/bookworm-*
                mmdebstrap --variant=minbase --include="$include" --aptopt='APT::Install-Recommends "false"' \
                        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
                        --customize-hook='chroot "$1" systemctl --quiet disable slurmctld slurmd' \
                        --customize-hook='chroot "$1" systemctl --quiet mask apt-daily.timer apt-daily-upgrade.timer \
                                dpkg-db-backup.timer e2scrub_all.timer fstrim.timer' \
                        bookworm "$image.partial" "$(image_mirror)" >"$lab_state/image.log" 2>&1 ||
                        bail_out "no Debian 12: $(tail -n 1 "$lab_state/image.log")"
                mv "$image.partial" "$image"
        fi
        printf '%s\n' "$image"
}

# begin_packages: one test of this kind at a time; their packages are built.
begin_packages() {
        [[ $EUID == 0 ]] || skip_all "this needs root"
        mkdir -p "$lab_cache"
        exec 8>"$lab_cache/packages.lock"
        flock 8
        trap 'host_down; rm -rf --one-file-system "$lab_state"' EXIT
        trap 'exit 130' INT TERM
        mkdir -p "$lab_state/hosts"
        exec 9<"$lab_cache"
        flock 9
        image_ensure >&2 || bail_out "no base image"
        product_ensure '' >&2 || bail_out "the packages cannot be built"
        exec 9<&-
}

# host_new IMAGE [COMMAND…]: an empty layer on it; the command, with the root folder as its last argument, fills it.
host_new() {
        host_image=$1
        shift
        host_down
        rm -rf --one-file-system "${lab_state:?}/hosts/$host"
        mkdir -p "$lab_state/hosts/$host"
        host_fill=("$@")
}

# host_up [NSPAWN OPTION…]: boots it.
host_up() {
        local fill=''

        ((${#host_fill[@]} == 0)) || fill=$(declare -f && printf '%q ' "${host_fill[@]}")
        (cgroup_run "$host" setsid unshare --mount --net --propagation private \
                env HOST_FILL="$fill" HOST_USERS="${HOST_USERS-}" \
                "$tests/run-host" "$lab_state/hosts/$host" "$host_image" "$@") \
                8>&- </dev/null >"$lab_state/hosts/$host/console.log" 2>&1 &
        poll 5 cgroup_is_populated "$host"
        if ! poll 120 host_is_booted_or_dead "$host" || ! host_is_booted "$host"; then
                host_complain "$host"
                bail_out "the host did not boot"
        fi
}

host_down() {
        cgroup_remove
}

# in_host COMMAND: by a shell there.
in_host() {
        host_exec "$host" sh -c "$1" </dev/null 8>&-
}

# in_host_is NAME COMMAND EXPECTED
in_host_is() {
        is "$1" "$(in_host "$2" 2>&1)" "$3"
}
