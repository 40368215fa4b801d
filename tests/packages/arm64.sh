#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The packages for arm64, which is what the CPU of a GB200 tray is, and the unit and bus tests of that build: on this
# machine, by a cross compiler and qemu.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$(readlink -f "$0")")/helper.sh"

[[ $EUID == 0 ]] || skip_all "this needs root"
[[ $(dpkg --print-architecture) != arm64 ]] || skip_all "this machine is arm64 itself"

is_stopped() {
        grep -q '^State:.T' "/proc/$1/status"
}

# in_root COMMAND: in the build's root. Its user namespace has all users as they are, and is there for a binfmt_misc of its
# own, by which arm64's programs run as any others do, and this machine's programs as before.
in_root() {
        local child

        unshare --user --mount "$tests/in-arm64" "$root" "$lab_repo" "$work" "$1" </dev/null &
        child=$!
        poll 10 is_stopped "$child" || return 1
        echo '0 0 4294967295' >"/proc/$child/uid_map"
        echo '0 0 4294967295' >"/proc/$child/gid_map"
        kill -CONT "$child"
        wait "$child"
}

# Each program's own cases are told where one has failed.
run_tests() {
        in_root "meson test -C build --no-rebuild --num-processes 2 --timeout-multiplier 5 --print-errorlogs $1"
}

root=$("$tests/arm64-root") || skip_all "there is no root to build in"
work=$lab_cache/arm64-build-$(sha256sum <<<"$lab_repo" | cut -c 1-12)
mkdir -p "$work"
in_root true >/dev/null 2>&1 || skip_all "this kernel's user namespaces have no binfmt_misc of their own"

succeeds "the packages are built" in_root '/src/packaging/build deb --arch arm64 --quick --output /built/deb'
like "for arm64" "$(dpkg-deb --field "$(echo "$work"/deb/gpuagent_*.deb)" Architecture)" '^arm64$'
like "with the place for its libraries" "$(dpkg-deb --contents "$(echo "$work"/deb/gpuagent-emulation_*.deb)")" \
        './usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1'
succeeds "the tests are built" in_root '
        dpkg-architecture -aarm64 -c /usr/share/meson/debcrossgen --arch arm64 -o cross
        printf "[properties]\nneeds_exe_wrapper = false\n" >native
        [ -e build/build.ninja ] || meson setup --cross-file cross --cross-file native build /src
        ninja -C build'
succeeds "the unit tests pass" run_tests '--suite unit'
succeeds "the bus tests pass" run_tests '--suite bus'
finish
