# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154 # lab_* are from common.sh
# Our product as its Debian packages: built from this repository, or given with --packages.

# One build folder a working tree: a clone must not get what was built from another.
product_build() {
        local build log=$lab_state/build.log

        build=$lab_cache/deb-$(sha256sum <<<"$lab_repo" | cut -c 1-12)
        say "Building gpuagent"
        mkdir -p "$build"
        product_source >"$build/source.new"
        if ! cmp --quiet "$build/source.new" "$build/source.built"; then
                rm -f "$build/source.built"
                "$lab_repo/packaging/build" deb --quick --output "$build" >"$log" 2>&1 || product_failed "$log"
                mv "$build/source.new" "$build/source.built"
        fi
        product_take "$build"
}

# What is built from, as a list that changes when any of it does.
product_source() {
        (
                cd "$lab_repo" || exit
                find . -path './build*' -prune -o -path './.git*' -prune -o -path ./tests -prune -o -type f -print0 |
                        LC_ALL=C sort --zero-terminated | xargs --null sha256sum
        )
}

product_failed() {
        tail -n 20 "$1" >&2
        die "cannot build gpuagent"
}

product_take() {
        rm -rf "$lab_state/product"
        mkdir -p "$lab_state/product"
        cp "$1"/*.deb "$lab_state/product/"
        rm -f "$lab_state/product"/*-dbgsym_*.deb
}

product_ensure() {
        local packages=$1

        if [[ -z $packages ]]; then
                product_build
                return
        fi
        compgen -G "$packages/*.deb" >/dev/null || die "there are no packages in $packages"
        product_take "$packages"
}

# host_packages HOST: the files of those that it gets.
host_packages() {
        local part parts=(gpuagent-client)

        case $(host_role "$1") in
        sched-worker) parts=(gpuagent gpuagent-client gpuagent-slurm gpuagent-emulation gpuagent-oci-hook) ;;
        esac
        for part in "${parts[@]}"; do
                compgen -G "$lab_state/product/${part}_*.deb" || true
        done
}

# One line that changes when any of the host's packages does.
product_fingerprint() {
        host_packages "$1" | xargs cat | sha256sum
}

# product_send HOST: as a tar, for install-product.
product_send() {
        host_packages "$1" | xargs -n 1 basename | tar -C "$lab_state/product" --files-from - -cf -
}
