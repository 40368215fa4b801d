# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154 # lab_* are from common.sh
# What makes a host out of the base image: its files, its name, its services and our product.

host_services() {
        case $(host_role "$1") in
        sched-control)
                printf '%s\n' mariadb slurmdbd slurmctld
                ;;
        sched-worker)
                printf '%s\n' slurmd
                ;;
        esac
}

write_identity() {
        local host=$1 root=$2 other

        printf '%s\n' "$host" >"$root/etc/hostname"
        tr -d - </proc/sys/kernel/random/uuid >"$root/etc/machine-id"
        {
                printf '127.0.0.1 localhost\n'
                for other in "${lab_hosts[@]}"; do
                        printf '%s %s\n' "${lab_address[$other]}" "$other"
                done
        } >"$root/etc/hosts"
}

# Files of the lab belong to root whoever owns the working tree.
copy_files() {
        local host=$1 root=$2 folder

        for folder in all "$(host_role "$host")"; do
                if [[ -d $lab_dir/files/$folder ]]; then
                        cp --recursive --preserve=mode "$lab_dir/files/$folder/." "$root/"
                fi
        done
        cp "$lab_state/ssh/key.pub" "$root/etc/ssh/lab_authorized_keys"
        if [[ -e $root/etc/slurm/slurmdbd.conf ]]; then
                chroot "$root" chown slurm: /etc/slurm/slurmdbd.conf
                chmod 600 "$root/etc/slurm/slurmdbd.conf"
        fi
}

# Who is root on login or the controller looks after the trays and their fabric, and is root there, too. joe has a key of
# his own.
make_operator() {
        local host=$1 root=$2 IFS=,

        printf '%s %s\n' "${lab_hosts[*]}" "$(cut -d ' ' -f 2- "$lab_state/ssh/known_hosts")" \
                >"$root/etc/ssh/ssh_known_hosts"
        if ! is_worker "$host"; then
                install -D --mode=600 "$lab_state/ssh/key" "$root/root/.ssh/id_ed25519"
                install -D "$lab_repo/agent/emulation/fabric-assign" "$root/usr/local/sbin/fabric-assign"
        fi
}

setup_host() {
        local host=$1 root=$2 services

        copy_files "$host" "$root"
        make_operator "$host" "$root"
        write_identity "$host" "$root"
        mapfile -t services < <(host_services "$host")
        if ((${#services[@]} > 0)); then
                chroot "$root" systemctl --quiet enable "${services[@]}"
        fi
        product_send "$host" | chroot "$root" bash -c "$(<"$lab_dir/lib/install-product")"
        product_fingerprint "$host" >"$lab_state/hosts/$host/product"
}
