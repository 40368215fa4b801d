#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Sizes and offsets of our header of NVML's ABI against the vendor's nvml.h, which is not free: this machine's, or that of
# the tree in GPUAGENT_CLIENTS_ROOT. The static assertions of our header hold whenever anything is built.
. "$(dirname "$0")/../process/lib.sh"

root=${GPUAGENT_CLIENTS_ROOT:-}
header=$(find "$root/usr/include" "$root/usr/local/cuda/include" -name nvml.h 2>/dev/null | head -n 1)
if [ -z "$header" ]; then
        echo "1..0 # SKIP libnvidia-ml-dev's nvml.h is not there"
        exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Of that folder only the one header: the other ones are of another system.
mkdir "$folder/include"
cp "$header" "$folder/include/"
if ! "${CC:-cc}" -std=gnu17 -D_GNU_SOURCE -Wall -Werror -isystem "$folder/include" -I"$here/../.." \
        -o "$folder/test-layout" "$here"/../abi/{test-layout,layout-ours,layout-theirs}.c -lcmocka 2>"$folder/errors"; then
        echo "1..1"
        fail "the two headers can be compared" "$(<"$folder/errors")"
        exit 1
fi
echo "# nvml.h of NVML $(sed -n 's/^ *#define NVML_API_VERSION_STR *"\(.*\)"/\1/p' "$header"), $header"
CMOCKA_MESSAGE_OUTPUT=TAP "$folder/test-layout"
