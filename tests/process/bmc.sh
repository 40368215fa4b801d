#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The emulated tray's BMC: what it tells of the GPUs, that it needs neither driver nor agent for it, its password, and
# requests that mean it no good.
. "$(dirname "$0")/lib.sh"
config='driver: {fabric-timeout: 1s}'
command -v gpuagent-bmc >/dev/null || [ -n "${IN_TRAY-}" ] || PATH=$GPUAGENT_BUILD/agent/emulation:$PATH
command -v gpuagent-bmc >/dev/null || { skip "" "without libmicrohttpd no BMC is built" && finish; }
in_tray
in_own_network

url=http://127.0.0.1:8470
processors=/redfish/v1/Systems/HGX_Baseboard_0/Processors

start_bmc() {
        gpuagent-bmc "$@" >/run/tray/bmc.log 2>&1 &
        bmc=$!
        eventually 10 "it serves${*:+ ($*)}" curl --silent --insecure "$url/redfish/v1"
}

stop_bmc() {
        kill $bmc
        wait $bmc
}

get() { curl --silent --max-time 10 "${@:2}" "$url$1"; }
status() { get "$1" --output /dev/null --write-out '%{http_code}' "${@:2}"; }
clique() { get "$processors/GPU_$1" | jq -c .Oem.Nvidia.FabricClique; }

start_bmc
is "from the service root there is a way to the GPUs" \
        "$(get /redfish/v1 | jq -r '.Systems."@odata.id"') $(get "$processors" | jq -r '."Members@odata.count"')" \
        "/redfish/v1/Systems 4"
is "each link of it leads to where it says" "$(get "$processors" | jq -r '.Members[]."@odata.id"' |
        while read -r path; do get "$path" | jq -r '."@odata.id" + " " + .Id'; done | tr '\n' ' ')" \
        "$processors/GPU_0 GPU_0 $processors/GPU_1 GPU_1 $processors/GPU_2 GPU_2 $processors/GPU_3 GPU_3 "
is "a GPU has its UUID" "GPU-$(get "$processors/GPU_2" | jq -r .UUID)" "$(gpuagentctl list --json=short | jq -r '.[2].uuid')"
is "and its clique" "$(clique 0)" '{"CliqueId":1,"ClusterUUID":"7f3c2a10-5b4e-4d6a-9c1e-2b8f0e6d4a91"}'
gpuagent-emulate partition assign 7 tray2 0,1,2,3
is "which a change of the partition does not change" "$(clique 0)" '{"CliqueId":1,"ClusterUUID":"7f3c2a10-5b4e-4d6a-9c1e-2b8f0e6d4a91"}'
is "but for the health" "$(get "$processors/GPU_0" | jq -r .Status.Health)" Warning
exits 0 "a reset" gpuagentctl reset
is "does" "$(clique 0)" '{"CliqueId":7,"ClusterUUID":"7f3c2a10-5b4e-4d6a-9c1e-2b8f0e6d4a91"}'
gpuagent-emulate settle 0 never
gpuagentctl --quiet reset -i 0 2>/dev/null
is "while the fabric has not settled there is no clique to tell" "$(clique 0)" '{"CliqueId":null,"ClusterUUID":null}'
gpuagent-emulate heal
gpuagent-emulate lost 1
is "a GPU that is lost is critical" "$(get "$processors/GPU_1" | jq -r .Status.Health)" Critical
gpuagent-emulate heal
gpuagent-emulate hang on
is "a driver that hangs does not matter" "$(status "$processors/GPU_0")" 200
gpuagent-emulate hang off

for path in / /redfish/v2 "$processors/GPU_4" "$processors/GPU_00" "$processors/GPU_-1" "$processors/GPU_" "$processors/GPU_0/x" \
        "$processors/GPU_99999999999999999999" "$processors//GPU_0" /%00 /redfish/v1%2fSystems%00x "/$(printf 'a%.0s' {1..8000})"; do
        is "there is nothing at ${path:0:60}" "$(status "$path" --path-as-is)" 404
done
for method in POST PUT PATCH DELETE NONSENSE; do
        is "$method is not for it" "$(status "$processors/GPU_0" --request $method --data x=y)" 405
done
is "a body that does not end is not read" "$(head -c 20000000 /dev/zero | status "$processors" --request PUT --data-binary @-)" 405
# Whose sender may find the connection closed before it reads why.
like "a header that does not end is refused" "$(status /redfish/v1 --header "X: $(head -c 100000 /dev/zero | tr '\0' x)")" '^(431|000)$'

# More connections than an address may have, that do not go on: another address is served all the same.
trap '' PIPE
for _ in {1..20}; do
        # shellcheck disable=SC2261 # both directions
        exec {connection}<>/dev/tcp/127.0.0.1/8470 && printf 'GET /' >&$connection 2>/dev/null
done
is "strangers who hold connections open do not hold up others" "$(status /redfish/v1 --interface 127.0.0.2)" 200
stop_bmc
is "it ends when it is told to" $? 0

echo 'admin:s:cret' >/run/tray/password
start_bmc --password-file /run/tray/password
is "the service root is for everyone" "$(status /redfish/v1)" 200
is "the rest needs the password" "$(status "$processors") $(status "$processors" --user admin:s:cre) $(status /nothing)" "401 401 401"
is "and is there with it" "$(status "$processors" --user admin:s:cret)" 200
stop_bmc

exits 1 "an address must be one" gpuagent-bmc --listen nowhere:1
exits 1 "a port must be one" gpuagent-bmc --listen 127.0.0.1:70000
exits 1 "a password's file must be there" gpuagent-bmc --password-file /nowhere
like "and it says so" "$output" '^gpuagent-bmc: /nowhere: No such file or directory$'
: >/run/tray/password
exits 1 "and have one" gpuagent-bmc --password-file /run/tray/password
exits 2 "an argument too many is wrong usage" gpuagent-bmc x
is "it has not complained" "$(cat /run/tray/bmc.log)" ""
finish
