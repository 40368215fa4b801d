# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154 # lab_* are from common.sh
# The base image: one Debian with all of the lab's programs, built once and kept in the cache. Hosts are
# layers on it.

image_suite=${LAB_SUITE:-trixie}
# A mirror that stands still has suites that are past their date.
image_apt_dates='Acquire::Check-Valid-Until "false"'
image_packages=(
        systemd-sysv dbus libpam-systemd openssh-server openssh-client iproute2 procps
        slurmctld slurmdbd slurmd slurm-client slurm-wlm-nvml-plugin munge mariadb-server
        libyaml-0-2 libcap2 libsmartcols1 libjson-c5 libmicrohttpd12t64 libcurl4t64
        polkitd dbus-broker prometheus prometheus-node-exporter
        python3-minimal bash-completion systemd-journal-remote jq
)

# A base is named by what it was made from, so that a changed recipe makes a new one.
image_path() {
        local key

        key=$(sha256sum "$lab_dir/lib/image.sh" "$lab_dir/lib/setup-image")
        key=$(sha256sum <<<"$(cut -d ' ' -f 1 <<<"$key")")
        printf '%s\n' "$lab_cache/base-$image_suite-${key::12}"
}

# The archive that this machine's own packages come from.
image_mirror() {
        local codename mirror

        codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME-}")
        # shellcheck disable=SC2016 # apt-get expands these
        mirror=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' \
                'Created-By: Packages' 'Component: main' |
                awk -v codename="$codename" '$1 == codename { print $2; exit }')
        [[ -n $mirror ]] || die "cannot tell the package mirror from this machine's apt sources"
        printf '%s\n' "$mirror"
}

# Bases of this suite that no lab stands on, by the recipe that each has kept.
image_discard_unused() {
        local base

        for base in "$lab_cache/base-$image_suite"-*; do
                if ! grep -qsxF "${base%.partial}" "${lab_state%/*}"/*/recipe; then
                        rm -rf --one-file-system "$base"
                fi
        done
}

image_build() {
        local image=$1 include mirror

        need_tools mmdebstrap
        mirror=$(image_mirror)
        printf -v include '%s,' "${image_packages[@]}"
        say "Building the base image ($image_suite; this is kept for the next time)"
        image_discard_unused
        rm -rf --one-file-system "$image.partial"
        if ! mmdebstrap --variant=minbase --components=main,contrib --include="${include%,}" \
                --aptopt='APT::Install-Recommends "false"' --aptopt="$image_apt_dates" \
                --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
                --customize-hook="$lab_dir/lib/setup-image \"\$1\"" \
                "$image_suite" "$image.partial" "$mirror" >"$lab_cache/image.log" 2>&1; then
                tail -n 20 "$lab_cache/image.log" >&2
                die "cannot build the base image; all of its output is in $lab_cache/image.log"
        fi
        mv "$image.partial" "$image"
}

image_ensure() {
        local image

        image=$(image_path)
        [[ -d $image ]] || image_build "$image"
}
