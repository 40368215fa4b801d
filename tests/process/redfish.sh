#!/bin/bash
# SPDX-License-Identifier: MIT
#
# gpuagentctl redfish's helper: what it prints, whom it trusts with a password, and BMCs that are not there, slow, or
# not what they seem.
. "$(dirname "$0")/lib.sh"
in_tray
in_own_network
command -v gpuagent-redfish gpuagent-bmc >/dev/null || { skip "" "not built without libcurl and libmicrohttpd" && finish; }

gpu=/redfish/v1/Systems/HGX_Baseboard_0/Processors/GPU_0
folder=/run/tray/redfish
mkdir $folder
openssl req -x509 -newkey rsa:2048 -nodes -keyout $folder/key -out $folder/certificate -days 2 -subj /CN=bmc \
        -addext subjectAltName=IP:127.0.0.1 2>/dev/null
echo 'reader:s:cret' >$folder/login
echo 's:cret' >$folder/password
echo 'wrong' >$folder/wrong
cat >/etc/gpuagent/gpuagentctl.yaml <<EOF
client:
  bmc:
    plain: {url: "http://127.0.0.1:8470/"}
    tray: {url: "http://127.0.0.1:8470"}
    locked: {url: "http://127.0.0.1:8471", user: reader, password-file: $folder/password}
    wrong: {url: "http://127.0.0.1:8471", user: reader, password-file: $folder/wrong}
    nobody: {url: "http://127.0.0.1:8471"}
    lost: {url: "http://127.0.0.1:8471", user: reader, password-file: $folder/nothing}
    half: {url: "http://127.0.0.1:8471", user: reader}
    unknown: {url: "https://127.0.0.1:8472"}
    known: {url: "https://127.0.0.1:8472", ca-file: $folder/certificate}
    other: {url: "https://localhost:8472", ca-file: $folder/certificate}
    any: {url: "https://localhost:8472", verify: false}
    dead: {url: "http://127.0.0.1:1"}
    fake: {url: "http://127.0.0.1:8473", user: reader, password-file: $folder/password}
EOF

serves() { curl --silent --insecure "$1/redfish/v1"; }

gpuagent-bmc &
gpuagent-bmc --listen 127.0.0.1:8471 --password-file $folder/login &
gpuagent-bmc --listen 127.0.0.1:8472 --certificate $folder/certificate --key $folder/key &
eventually 10 "a BMC serves" serves http://127.0.0.1:8470
eventually 10 "one with a password" serves http://127.0.0.1:8471
eventually 10 "one with a certificate" serves https://127.0.0.1:8472

is "the answer is JSON" "$(gpuagent-redfish plain $gpu | jq -c .Oem.Nvidia.FabricClique)" \
        '{"CliqueId":1,"ClusterUUID":"7f3c2a10-5b4e-4d6a-9c1e-2b8f0e6d4a91"}'
is "in lines for people" "$(gpuagent-redfish plain /redfish | wc -l)" 3
is "in one line for programs" "$(gpuagent-redfish --short plain /redfish)" '{"v1":"/redfish/v1/"}'
exits 0 "the password is given" gpuagent-redfish locked $gpu
exits 4 "a wrong one is refused" gpuagent-redfish wrong $gpu
is "and it says so" "$output" "gpuagentctl: the BMC of wrong refuses the user or the password (401)"
exits 4 "none is refused" gpuagent-redfish nobody $gpu
exits 1 "a password that cannot be read" gpuagent-redfish lost $gpu
is "is named" "$output" "gpuagentctl: cannot read the password, $folder/nothing: No such file or directory"
exits 1 "a user without a password is not asked with" gpuagent-redfish half $gpu

exits 1 "a certificate that nobody knows is not trusted" gpuagent-redfish unknown $gpu
like "and it says so" "$output" 'certificate'
exits 0 "one that is configured is" gpuagent-redfish known $gpu
exits 1 "but not for another name" gpuagent-redfish other $gpu
exits 0 "unless nobody wants to know" gpuagent-redfish any $gpu

exits 1 "a tray without a BMC" gpuagent-redfish none $gpu
is "is told where to have one" "$output" \
        "gpuagentctl: no BMC is configured for 'none': give client.bmc.none.url in gpuagentctl.yaml"
exits 1 "a BMC that is not there" gpuagent-redfish dead $gpu
exits 1 "a resource that is not there" gpuagent-redfish plain ${gpu}0
is "is named" "$output" "gpuagentctl: the BMC of plain has no ${gpu}0"
for path in '' / redfish /redfishx /redfish/../etc "/redfish/v1 x" "/redfish/v1#" "//127.0.0.1:8471/redfish" $'/redfish/\e[2J' \
        "/redfish/$(printf 'a%.0s' {1..2000})"; do
        exits 2 "no path is $(printf %q "${path:0:40}")" gpuagent-redfish plain "$path"
done
exits 2 "no tray is a/b" gpuagent-redfish a/b $gpu
exits 2 "a path is needed" gpuagent-redfish plain
exits 1 "what cannot be written is not done" eval "gpuagent-redfish plain $gpu >/dev/full"

# The check that is shipped, as the driver service runs it: beside it stands gpuagentctl with its helper in reach.
mkdir $folder/bin
printf '#!/bin/sh\nshift\nexec %s "$@"\n' "$(command -v gpuagent-redfish)" >$folder/bin/gpuagentctl
chmod 755 $folder/bin/gpuagentctl
cluster=7f3c2a10-5b4e-4d6a-9c1e-2b8f0e6d4a91
# check CLIQUE [UUID [CLUSTER]]
check() {
        env PATH="$folder/bin:$PATH" GPUAGENT_GPU_INDEX=0 GPUAGENT_GPU_UUID="${2-$(gpu 0 UUID)}" GPUAGENT_GPU_CLIQUE_ID="$1" \
                GPUAGENT_GPU_CLUSTER_UUID="${3-$cluster}" "$here/../../hooks/checks.d/60-redfish"
}
exits 0 "BMC and driver agree" check 1
is "in silence" "$output" ""
exits 1 "or they do not" check 7
is "and it says so" "$output" "the driver has the GPU in clique $cluster.7, and the BMC in $cluster.1"
exits 1 "a GPU without a clique is told from one with" check "" "$(gpu 0 UUID)" ""
is "and it says so" "$output" "the driver has the GPU in clique none, and the BMC in $cluster.1"
exits 1 "another GPU's clique is none of its own" check 1 GPU-00000000-0000-0000-0000-000000000000
like "and it says so" "$output" '^the BMC.s /redfish/.*GPU_0 is another GPU: '

# A BMC of our own, whose answer is $1 (of Python), until the next one. $2: it never ends.
answers_with() {
        [ -z "${fake-}" ] || kill "$fake"
        python3 -c '
import socket, sys
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(("127.0.0.1", 8473))
server.listen(8)
open(sys.argv[2], "w").close()
held = []
while True:
    connection = server.accept()[0]
    held.append(connection)
    request = connection.recv(65536)
    connection.sendall(eval(sys.argv[1]))
    if sys.argv[3] == "":
        connection.close()
' "$1" $folder/ready "${2-}" &
        fake=$!
        until [ -e $folder/ready ]; do sleep 0.02; done
        rm $folder/ready
}

answers_with 'b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:8470/redfish\r\n\r\n"'
exits 1 "a redirect is not followed" gpuagent-redfish fake $gpu
is "but told" "$output" "gpuagentctl: the BMC of fake answers 302"
answers_with 'b"HTTP/1.1 503 Busy\r\n\r\n{\"error\": {\"message\": \"not \\u001b[2J now\"}}"'
exits 1 "a refusal" gpuagent-redfish fake $gpu
is "is told in its own words" "$output" "gpuagentctl: the BMC of fake answers 503: not ?[2J now"
answers_with 'b"HTTP/1.1 200 OK\r\n\r\n<html>"'
exits 1 "what is not JSON is refused" gpuagent-redfish fake $gpu
answers_with 'b"HTTP/1.1 200 OK\r\n\r\n[\"\xc2\x9b\"]"'
is "no control character is passed on" "$(gpuagent-redfish --short fake $gpu)" '["\u009b"]'
answers_with 'b"HTTP/1.1 200 OK\r\n\r\n[" + b" " * 2000000 + b"]"'
exits 1 "an answer has a limit" gpuagent-redfish fake $gpu
like "and it says so" "$output" 'longer than 1 MiB'
answers_with 'b"HTTP/1.1 200 OK\r\n\r\n["' "and no more"
within 20 "a BMC that does not end is not waited for" gpuagent-redfish --timeout 1 fake $gpu
like "and it says so" "$output" 'timed out'
kill "$fake"
http_proxy=http://127.0.0.1:8470 exits 1 "the environment has no proxy to say" gpuagent-redfish dead $gpu
exits 2 "the command wants a path, too" gpuagentctl redfish plain
unlike "gpuagentctl, which each job starts, has no HTTP in it" "$(ldd "$(command -v gpuagentctl)")" 'libcurl|libssl'
finish
