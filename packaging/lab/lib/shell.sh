# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154 # lab_* are from common.sh
# Real ssh into the hosts, so that sessions, exit codes, quoting, terminals and scp are what they are
# everywhere.

shell_write_config() {
        local dir=$lab_state/ssh key host

        mkdir -p "$dir"
        chmod 700 "$dir"
        if [[ ! -e $dir/key.pub ]]; then
                rm -f "$dir/key"
                ssh-keygen -q -t ed25519 -N '' -C gpuagent-lab -f "$dir/key"
        fi
        # All hosts have the base image's key.
        key=$(cut -d ' ' -f 1,2 "$(image_path)/etc/ssh/ssh_host_ed25519_key.pub")
        printf 'gpuagent-lab %s\n' "$key" >"$dir/known_hosts"
        {
                for host in "${lab_hosts[@]}"; do
                        printf 'Host %s\n        HostName %s\n' "$host" "${lab_address[$host]}"
                done
                printf 'Host login\n        User joe\nHost *\n'
                printf '        %s\n' 'User root' 'HostKeyAlias gpuagent-lab' 'IdentitiesOnly yes' \
                        "IdentityFile $dir/key" "UserKnownHostsFile $dir/known_hosts" \
                        'GlobalKnownHostsFile none' 'BatchMode yes' 'LogLevel ERROR' 'ConnectTimeout 10'
        } >"$dir/config"
}

# joe logs in from one host to another.
shell_make_user_key() {
        local home=$1

        mkdir -m 700 "$home/.ssh"
        ssh-keygen -q -t ed25519 -N '' -C joe -f "$home/.ssh/id_ed25519"
        cp "$home/.ssh/id_ed25519.pub" "$home/.ssh/authorized_keys"
        chown -R --reference="$home" "$home/.ssh"
}

# shell_ssh [USER@]HOST [COMMAND…]
shell_ssh() {
        local options=(-F "$lab_state/ssh/config")

        need_host "${1#*@}"
        if (($# > 1)) && [[ -t 0 && -t 1 ]]; then
                options+=(-t)
        fi
        network_exec ssh "${options[@]}" -- "$@"
}

shell_scp() {
        network_exec scp -F "$lab_state/ssh/config" "$@"
}
