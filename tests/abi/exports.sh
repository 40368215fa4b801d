#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The exported calls on an emulated tray, called the wrong way.
. "$(dirname "$0")/../process/lib.sh"
tray_options=(--bare)
in_tray

export CMOCKA_MESSAGE_OUTPUT=TAP
library=$GPUAGENT_BUILD/agent/emulation/libnvidia-ml.so.1
nm -D --defined-only "$library" | "$GPUAGENT_BUILD/tests/abi/test-exports" "$library"
