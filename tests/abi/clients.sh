#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Programs that others wrote, on the emulated driver: what each shows is what the tray is. GPUAGENT_CLIENTS_ROOT names
# the tree that has them (tests/abi/clients-root makes it); without it, those that this machine has are tried.
. "$(dirname "$0")/../process/lib.sh"
tray_options=(--bare)
emulation='reset-time: 200ms'
in_tray

root=${GPUAGENT_CLIENTS_ROOT:-/}
if [ "$root" != / ]; then
        mount -t proc proc "$root/proc"
        mount --rbind /run "$root/run"
        mount --rbind /dev "$root/dev"
        mount --bind "$GPUAGENT_BUILD/agent/emulation" "$root/mnt"
        export LD_LIBRARY_PATH=/mnt NODE_PATH=$root/opt/modules/node_modules
fi
client() { timeout 20 chroot "$root" "$@" 2>/run/tray/client-errors; }
has() { chroot "$root" /bin/sh -c "command -v $1" >/dev/null 2>&1; }
has_module() { has python3 && client python3 -c "import $1"; }
has_package() { command -v node >/dev/null && node -e "require(\"$1\")" 2>/dev/null; }
package_version() { node -p "require(\"$1/package.json\").version"; }

# shows CLIENT VERSION WHAT SEEN EXPECTED: a check, and a row of the table at the end.
table=()
shows() {
        local failures=$n_failures outcome=yes

        is "$1 $2: $3" "$4" "$5"
        [ "$n_failures" = "$failures" ] || outcome=NO
        table+=("$(printf '%-18s | %-10s | %-5s | %s' "$1" "$2" $outcome "$3")")
}

absent() {
        skip "$1" "not installed"
        table+=("$(printf '%-18s | %-10s | %-5s |' "$1" - -)")
}

show_table() {
        [[ ${table[*]} =~ \|\ (yes|NO)\  ]] || return 0
        printf '# | %-18s | %-10s | %-5s | %s\n' client version right "what it shows as the tray has it"
        printf '# | %s\n' "${table[@]}"
}

column() { nvidia-smi --query-gpu="$1" --format=csv,noheader,nounits; }

gpuagent-emulate tenant load 1 --load 80 --memory 7850 &
tenant=$!
eventually 15 "the tenant works" eval '[ "$(column power.draw | sed -n 2p | cut -d. -f1)" -ge 840 ]'
uuids=$(column uuid | paste -sd ' ')

if has_module pynvml; then
        shows pynvml "$(client dpkg-query -W -f '${source:Upstream-Version}' python3-pynvml)" \
                "UUIDs, the tenant and its memory, load, NVLinks, recovery action, and no fan" "$(client python3 -c '
import pynvml as n
n.nvmlInit()
handles = [n.nvmlDeviceGetHandleByIndex(i) for i in range(n.nvmlDeviceGetCount())]
print(*[n.nvmlDeviceGetUUID(h) for h in handles])
h = handles[1]
[process] = n.nvmlDeviceGetComputeRunningProcesses(h)
print(process.pid, process.usedGpuMemory >> 20, n.nvmlDeviceGetUtilizationRates(h).gpu, n.nvmlDeviceGetName(h))
print(840000 <= n.nvmlDeviceGetPowerUsage(h) <= 850000, [n.nvmlDeviceGetNvLinkState(h, i) for i in range(18)].count(1))
print(n.nvmlDeviceGetFieldValues(h, [230])[0].value.uiVal)
try: n.nvmlDeviceGetFanSpeed(h)
except n.NVMLError_NotSupported: print("no fan")')" "$uuids
$tenant 7850 80 NVIDIA GB200
True 18
0
no fan"
else
        absent pynvml
fi

if has gpustat; then
        shows gpustat "$(client gpustat --version | cut -d' ' -f2)" "four GPUs; of one at work load, memory, the process" \
                "$(client gpustat --json | jq -c '[.gpus[1] | .name, ."utilization.gpu", ."memory.used", ."memory.total",
                        .processes[0].pid], (.gpus | length)' | paste -sd ' ')" \
                "[\"NVIDIA GB200\",80,7850,189471,$tenant] 4"
else
        absent gpustat
fi

if has nvtop; then
        shows nvtop "$(client nvtop --version | grep -o '[0-9.]*$')" "four GPUs' names, clocks, power and load" \
                "$(client nvtop -s | jq -c '.[] | [.device_name, .gpu_clock, .power_draw, .gpu_util, .mem_util]' |
                        sed 's/"8[45].W"/"850W"/')" \
                '["NVIDIA GB200","120MHz","140W","0%","0%"]
["NVIDIA GB200","2062MHz","850W","80%","4%"]
["NVIDIA GB200","120MHz","140W","0%","0%"]
["NVIDIA GB200","120MHz","140W","0%","0%"]'
else
        absent nvtop
fi

# It has only a screen: what it writes there, without the colours and ways of the cursor. Used has the reserved memory,
# as NVML's first call for it has.
if has btop && has script; then
        mkdir -p /run/tray/home/.config/btop
        printf 'shown_boxes = "gpu1"\nupdate_ms = 200\n' >/run/tray/home/.config/btop/btop.conf
        HOME=/run/tray/home TERM=xterm-256color LANG=C.UTF-8 timeout 2 chroot "$root" \
                script -qec 'stty rows 50 cols 160; exec btop --utf-force' /run/tray/btop >/dev/null 2>&1 </dev/null
        screen=$(sed -e 's/\x1b\[[0-9;]*m//g' -e 's/\x1b\[[0-9;?]*[A-Za-z]/\n/g' /run/tray/btop)
        shows btop "$(client btop --version | grep -o '[0-9.]*$')" "name, load, power, clock, memory of a GPU at work" \
                "$(grep -oE 'GB200|GPU ■* *[0-9]+%|PWR ■* *[0-9]+W|[0-9]+ Mhz|Used:─*[0-9.]+ GiB|Total: *[0-9]+ GiB' <<<"$screen" |
                        tr -d '■─' | tr -s ' ' | sed 's/8[45].W/850W/' | sort -u | paste -sd ,)" \
                "2062 Mhz,3996 Mhz,GB200,GPU 80%,PWR 850W,Total: 185 GiB,Used:8.39 GiB"
else
        absent btop
fi

if has lstopo-no-graphics && client sh -c 'ls /usr/lib/*/hwloc/hwloc_nvml.so' >/dev/null; then
        shows hwloc "$(client hwloc-info --version | cut -d' ' -f2)" "a device each, with its UUID" \
                "$(client lstopo-no-graphics --of xml --filter io:all |
                        sed -n 's/.*"NVIDIAUUID" value="\([^"]*\)".*/\1/p' | paste -sd ' ')" "$uuids"
else
        absent hwloc
fi

if has_package systeminformation; then
        # It asks lspci first what to read nvidia-smi's CSV for.
        mkdir /run/tray/lspci
        printf '#!/bin/sh\n' >/run/tray/lspci/lspci
        for bus in 18 2a 3a 5d; do
                printf 'echo "%s:00.0 3D controller: NVIDIA Corporation Device 2941 (rev a1)"; echo\n' $bus
        done >>/run/tray/lspci/lspci
        chmod +x /run/tray/lspci/lspci
        shows systeminformation "$(package_version systeminformation)" "four GPUs by the CSV: name, memory, load" \
                "$(PATH=/run/tray/lspci:$PATH node -e '
require("systeminformation").graphics().then((g) => {
        for (const c of g.controllers) console.log(c.name, c.memoryTotal, c.memoryUsed || 0, c.utilizationGpu || 0);
})')" "NVIDIA GB200 189471 0 0
NVIDIA GB200 189471 7850 80
NVIDIA GB200 189471 0 0
NVIDIA GB200 189471 0 0"
else
        absent systeminformation
fi

if has_package node-nvidia-smi; then
        shows node-nvidia-smi "$(package_version node-nvidia-smi)" "four GPUs by the XML: UUID, memory, process, fabric" \
                "$(node -e '
require("node-nvidia-smi")((error, data) => {
        if (error) throw error;
        const gpus = data.nvidia_smi_log.gpu, busy = gpus[1];
        console.log(...gpus.map((gpu) => gpu.uuid));
        console.log(busy.fb_memory_usage.used, busy.utilization.gpu_util, busy.processes.process_info.pid,
                busy.fabric.cliqueId, busy.gpu_recovery_action);
})')" "$uuids
7850 MiB 80 % $tenant 1 None"
else
        absent node-nvidia-smi
fi
kill $tenant
wait $tenant 2>/dev/null

if has_module numba.cuda; then
        cat >/run/tray/arrays.py <<'END'
import numpy, sys
from numba import cuda
if sys.argv[1] == "list":
    print(*[device.uuid for device in cuda.list_devices()])
elif sys.argv[1] == "write":
    print((cuda.to_device(numpy.arange(1, 9)).copy_to_host() == numpy.arange(1, 9)).all())
else:
    print(*cuda.device_array(8, dtype=numpy.int64).copy_to_host())
END
        numba() { client python3 /run/tray/arrays.py "$1"; }
        shows numba "$(client python3 -c 'import numba; print(numba.__version__)')" \
                "devices; arrays there and back, for the next one to read until a reset" \
                "$(numba list; numba write; numba read; nvidia-smi -r -i 0 >/dev/null; numba read)" "$uuids
True
1 2 3 4 5 6 7 8
0 0 0 0 0 0 0 0"
else
        absent numba
fi

# slurmd looks for its nodes in /dev. The links of such a tray go to switches: Slurm sees none between two GPUs.
if has slurmd && client sh -c 'ls /usr/lib/*/slurm-wlm/gpu_nvml.so' >/dev/null; then
        mkdir -p /run/tray/slurm
        printf '%s\n' ClusterName=x SlurmctldHost=localhost GresTypes=gpu 'NodeName=localhost Gres=gpu:gb200:4 CPUs=1' \
                'PartitionName=p Nodes=ALL' SlurmdParameters=config_overrides AuthType=auth/none CredType=cred/none \
                ProctrackType=proctrack/linuxproc TaskPlugin=task/none SlurmdSpoolDir=/run/tray/slurm >/run/tray/slurm/slurm.conf
        echo AutoDetect=nvml >/run/tray/slurm/gres.conf
        echo CgroupPlugin=disabled >/run/tray/slurm/cgroup.conf
        printf 'devices: /dev\n' >/run/tray/dev.yaml
        mount -t tmpfs tmpfs "$root/dev" && mknod -m 666 "$root/dev/null" c 1 3
        GPUAGENT_EMULATION_DEVICES='' chroot "$root" /mnt/gpuagent-emulate boot --config /run/tray/dev.yaml --devices /dev
        shows slurmd "$(client slurmd -V | cut -d' ' -f2)" "by AutoDetect=nvml, type, node and links of four GPUs" \
                "$(client slurmd -f /run/tray/slurm/slurm.conf -G -N localhost 2>&1 | cat - /run/tray/client-errors |
                        sed -n 's/.*Gres Name=gpu \(Type=[^ ]* Count=1\).* \(File=[^ ]*\).*\(Links=[^ ]*\).*/\1 \2 \3/p')" \
                "Type=gb200 Count=1 File=/dev/nvidia0 Links=-1,0,0,0
Type=gb200 Count=1 File=/dev/nvidia1 Links=0,-1,0,0
Type=gb200 Count=1 File=/dev/nvidia2 Links=0,0,-1,0
Type=gb200 Count=1 File=/dev/nvidia3 Links=0,0,0,-1"
else
        absent slurmd
fi

show_table
echo "1..$n_checks"
exit $((n_failures > 0))
