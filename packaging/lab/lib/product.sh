# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154 # lab_* are from common.sh
# Our product as installed trees, one for each part: built from this repository, or given with --tree.

product_build() {
        local build log=$lab_state/build.log

        need_tools meson ninja
        # One a working tree: a clone must not get what was built from another.
        build=$lab_cache/build-$(sha256sum <<<"$lab_repo" | cut -c 1-12)
        say "Building gpuagent"
        if [[ ! -e $build/build.ninja ]]; then
                rm -rf "$build"
                meson setup -Dtests=false "$build" "$lab_repo" >"$log" 2>&1 || product_failed "$log"
        fi
        ninja -C "$build" >"$log" 2>&1 || product_failed "$log"
        product_install "$build" tray >"$log" 2>&1 || product_failed "$log"
        product_install "$build" client --tags client >"$log" 2>&1 || product_failed "$log"
}

product_failed() {
        tail -n 20 "$1" >&2
        die "cannot build gpuagent"
}

# product_install BUILD PART [OPTION…]
product_install() {
        local build=$1 tree=$lab_state/product/$2

        shift 2
        rm -rf "$tree"
        mkdir -p "$tree"
        DESTDIR=$tree meson install -C "$build" --no-rebuild "$@"
}

product_ensure() {
        local tree=$1 part

        mkdir -p "$lab_state/product"
        if [[ -z $tree ]]; then
                product_build
                return
        fi
        [[ -d $tree/usr ]] || die "$tree is not an installed tree: it has no usr folder"
        for part in tray client; do
                rm -rf "$lab_state/product/$part"
                cp -a "$tree" "$lab_state/product/$part"
        done
}

# What a part consists of, as one line that changes when any of it does.
product_fingerprint() {
        (
                cd "$lab_state/product/$1" || exit
                find . -not -type d -printf '%p %m %l\n' -type f -exec sha256sum {} + | LC_ALL=C sort
        ) | sha256sum
}
