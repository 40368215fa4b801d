# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# For the tests with other people's container runtimes on an emulated tray. They need root: a runtime mounts, makes devices
# and cgroups.

. "$(dirname "${BASH_SOURCE[0]}")/../process/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../process/oci-lib.sh"

# shellcheck disable=SC2034 # for the tests
work=/run/tray/work

# Ends the test where a program is missing that it is about.
needs() {
        local program

        [ "$(id -u)" = 0 ] || { echo "1..0 # SKIP needs root" && exit 0; }
        for program in "$@"; do
                command -v "$program" >/dev/null || { echo "1..0 # SKIP $program is not installed" && exit 0; }
        done
}

# What the tests make of cgroups is below one name, in every hierarchy, and is taken away in the end, as kubelet does it.
# What others on this machine do at the same time has another PID namespace.
unique=$(readlink /proc/self/ns/pid | tr -dc 0-9)
cgroups=kubepods-gpuagent-$unique
remove_cgroups() { # of whose path the pattern is a part
        find /sys/fs/cgroup -depth -type d -path "*$cgroups*$1*" -exec rmdir {} + 2>/dev/null
        return 0
}

# A root file system of busybox in $1.
make_rootfs() {
        local name

        mkdir -p "$1"/{bin,dev,etc,proc,sys,tmp}
        cp "$(command -v busybox)" "$1/bin/busybox"
        for name in sh sleep true cat; do ln -sf busybox "$1/bin/$name"; done
}
