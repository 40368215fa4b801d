#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The packages as they are published, DEB and RPM: built, looked at by lintian and rpmlint, and split alike.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$(readlink -f "$0")")/../lab/helper.sh"

tree=$(readlink -f "$(dirname "$0")/../..")
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT

# build KIND: the log only where it failed.
build() {
        "$tree/packaging/build" "$1" --output "$work/$1" >"$work/$1.log" 2>&1 || {
                tail -n 40 "$work/$1.log"
                return 1
        }
}

# The names and files of all packages, without what each kind of package adds and places in its own way.
deb_files() {
        local deb

        for deb in "$work"/deb/*.deb; do
                [[ $deb != *-dbgsym_* ]] || continue
                dpkg-deb --contents "$deb" | awk -v package="$(dpkg-deb --field "$deb" Package)" \
                        '!/^d/ { sub("^\\.", "", $6); print package, $6 }'
        done | sed -E 's, /lib/systemd, /usr/lib/systemd,; s,/usr/lib/[^/]*-linux-gnu/,/usr/lib/,; s,\.gz$,,; s,/vendor-completions/,/site-functions/,' |
                grep -vE '/usr/share/(doc|lintian)/' | LC_ALL=C sort
}

rpm_files() {
        local rpm

        for rpm in "$work"/rpm/*.rpm; do
                rpm --query --nosignature --package --queryformat '[%{=NAME} %{FILENAMES} %{FILEMODES:perms}\n]' "$rpm"
        done | awk '$3 !~ /^d/ { print $1, $2 }' | sed -E 's,/usr/lib64/,/usr/lib/,; s,\.gz$,,' |
                grep -vE '/usr/share/(doc|licenses)/|/\.build-id/' | LC_ALL=C sort
}

version() {
        sed -nE "$2" "$tree/$1" | head -n 1
}

succeeds "the Debian packages are built" build deb
succeeds "lintian has no errors and no warnings" lintian --allow-root --fail-on error,warning "$work"/deb/*.changes
succeeds "the RPMs are built" build rpm
succeeds "rpmlint has neither" rpmlint --strict --config "$tree/packaging/rpm/rpmlint.toml" "$work"/rpm/*.rpm \
        "$tree/packaging/rpm/gpuagent.spec"
is "both have the same packages with the same files" "$(diff <(deb_files) <(rpm_files))" ''
mkdir "$work/root"
succeeds "the RPMs can be installed together" rpm --root "$work/root" --install --nosignature --nodeps --noscripts \
        --ignorearch "$work"/rpm/*.rpm
is "all have the version of the source" \
        "$(version packaging/debian/changelog 's/.*\((.*)\).*/\1/p') $(version packaging/rpm/gpuagent.spec 's/^Version: *//p')" \
        "$(version meson.build "s/^ *version: '(.*)',/\1/p") $(version meson.build "s/^ *version: '(.*)',/\1/p")"
finish
