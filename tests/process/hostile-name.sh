#!/bin/bash
# SPDX-License-Identifier: MIT
#
# A process whose name is no text holds a GPU: everything stays readable, and nothing of it reaches a terminal.
. "$(dirname "$0")/lib.sh"
in_tray

printable() { ! LC_ALL=C grep -q '[^ -~]' <<<"$1"; }

hold 0 $'\xff\e[31m\nx'
exits 1 "it keeps the GPU from being reset" gpuagentctl reset -i 0
like "and is named in escapes" "$output" '\\xff\\x1b\[31m\\x0ax \(pid '
holds "on one printable line" printable "$output"
is "the agent still answers for all properties" \
        "$(busctl --json=short call org.gpuagent1 /org/gpuagent1 org.freedesktop.DBus.ObjectManager GetManagedObjects |
                jq '[.data[0] | to_entries[] | select(.key | contains("/gpu/"))] | length')" 4
exits 0 "and for the object" busctl introspect org.gpuagent1 "$(object 0)"
exits 0 "the list of processes has it" gpuagentctl ps
like "in escapes, too" "$output" '\\xff\\x1b\[31m'
holds "printable" printable "${output//$'\n'/ }"
holds "and so is the journal" printable "$(tr '\n' ' ' </run/tray/journal)"
exits 0 "status reads well" gpuagentctl status
release
finish
