#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Programs that others wrote, on the emulated driver: what each shows is what the tray is. Those that are installed are
# tried; GPUAGENT_CLIENTS_ROOT names a tree that has them (made for instance by mmdebstrap with nvtop, gpustat,
# python3-pynvml, python3-numba, hwloc-nox, libhwloc-contrib-plugins, slurmd, slurm-wlm-nvml-plugin).
. "$(dirname "$0")/../process/lib.sh"
tray_options=(--bare)
emulation='reset-time: 1s'
in_tray

root=${GPUAGENT_CLIENTS_ROOT:-/}
if [ "$root" != / ]; then
        mount -t proc proc "$root/proc"
        mount --rbind /run "$root/run"
        mount --rbind /dev "$root/dev"
        mount --bind "$GPUAGENT_BUILD/agent/emulation" "$root/mnt"
        export LD_LIBRARY_PATH=/mnt
fi
client() { timeout 20 chroot "$root" "$@" 2>/run/tray/client-errors; }
has() { chroot "$root" /bin/sh -c "command -v $1" >/dev/null 2>&1; }
has_module() { has python3 && client python3 -c "import $1"; }

gpuagent-emulate tenant load 1 --load 80 --memory 7850 &
tenant=$!
eventually 10 "the tenant works" eval '[ "$(nvidia-smi -i 1 --query-gpu=power.draw --format=csv,noheader,nounits | cut -d. -f1)" -gt 800 ]'
uuids=$(nvidia-smi --query-gpu=uuid --format=csv,noheader | paste -sd ' ')

if has_module pynvml; then
        is "pynvml: all GPUs, the tenant, links, the recovery action" "$(client python3 -c '
import pynvml as n
n.nvmlInit()
handles = [n.nvmlDeviceGetHandleByIndex(i) for i in range(n.nvmlDeviceGetCount())]
print(*[n.nvmlDeviceGetUUID(h) for h in handles])
h = handles[1]
[process] = n.nvmlDeviceGetComputeRunningProcesses(h)
print(process.pid, process.usedGpuMemory >> 20, n.nvmlDeviceGetUtilizationRates(h).gpu, n.nvmlDeviceGetName(h))
print(n.nvmlDeviceGetNvLinkState(h, 17), n.nvmlDeviceGetFieldValues(h, [230])[0].value.uiVal)
try: n.nvmlDeviceGetFanSpeed(h)
except n.NVMLError_NotSupported: print("no fan")')" "$uuids
$tenant 7850 80 NVIDIA GB200
1 0
no fan"
else
        skip "pynvml" "not installed"
fi

if has gpustat; then
        is "gpustat $(client gpustat --version | cut -d' ' -f2): load, memory and the process" "$(client gpustat --json | jq -c \
                '[.gpus[1] | .name, ."utilization.gpu", ."memory.used", ."memory.total", .processes[0].pid], (.gpus | length)' |
                paste -sd ' ')" "[\"NVIDIA GB200\",80,7850,189471,$tenant] 4"
else
        skip "gpustat" "not installed"
fi

if has nvtop; then
        is "nvtop $(client nvtop --version | grep -o '[0-9.]*$'): four GPUs, one at work" \
                "$(client nvtop -s | jq -r '[.[] | .gpu_util] | join(" ")')" "0% 80% 0% 0%"
else
        skip "nvtop" "not installed"
fi

if has lstopo-no-graphics && client sh -c 'ls /usr/lib/*/hwloc/hwloc_nvml.so' >/dev/null; then
        is "hwloc $(client hwloc-info --version | cut -d' ' -f2): a device each" \
                "$(client lstopo-no-graphics --of console --filter io:all | grep -o 'GPU(NVML) "[^"]*"' | paste -sd ' ')" \
                'GPU(NVML) "nvml0" GPU(NVML) "nvml1" GPU(NVML) "nvml2" GPU(NVML) "nvml3"'
else
        skip "hwloc" "not installed"
fi

if has_module numba.cuda; then
        is "numba $(client python3 -c 'import numba; print(numba.__version__)'): devices, and arrays there and back" \
                "$(client python3 -c '
import numpy
from numba import cuda
print(*[device.uuid for device in cuda.list_devices()])
numbers = numpy.arange(100000)
print((cuda.to_device(numbers).copy_to_host() == numbers).all())')" "$uuids"$'\nTrue'
else
        skip "numba" "not installed"
fi

# This one reads nvidia-smi's CSV, and asks lspci first what to read it for.
if command -v node >/dev/null && node -e 'require("systeminformation")' 2>/dev/null; then
        mkdir /run/tray/lspci
        printf '#!/bin/sh\n' >/run/tray/lspci/lspci
        for bus in 18 2a 3a 5d; do
                printf 'echo "%s:00.0 3D controller: NVIDIA Corporation Device 2941 (rev a1)"; echo\n' $bus
        done >>/run/tray/lspci/lspci
        chmod +x /run/tray/lspci/lspci
        is "systeminformation: four GPUs, one at work" "$(PATH=/run/tray/lspci:$PATH node -e '
require("systeminformation").graphics().then((g) => {
        for (const c of g.controllers) console.log(c.name, c.memoryTotal, c.memoryUsed || 0, c.utilizationGpu || 0);
})')" "NVIDIA GB200 189471 0 0
NVIDIA GB200 189471 7850 80
NVIDIA GB200 189471 0 0
NVIDIA GB200 189471 0 0"
else
        skip "systeminformation" "not installed"
fi

# slurmd looks for its nodes in /dev.
if has slurmd && client sh -c 'ls /usr/lib/*/slurm-wlm/gpu_nvml.so' >/dev/null; then
        mkdir -p /run/tray/slurm
        printf '%s\n' ClusterName=x SlurmctldHost=localhost GresTypes=gpu 'NodeName=localhost Gres=gpu:4 CPUs=1' \
                'PartitionName=p Nodes=ALL' SlurmdParameters=config_overrides AuthType=auth/none CredType=cred/none \
                ProctrackType=proctrack/linuxproc TaskPlugin=task/none SlurmdSpoolDir=/run/tray/slurm >/run/tray/slurm/slurm.conf
        echo AutoDetect=nvml >/run/tray/slurm/gres.conf
        echo CgroupPlugin=disabled >/run/tray/slurm/cgroup.conf
        printf 'devices: /dev\n' >/run/tray/dev.yaml
        mount -t tmpfs tmpfs "$root/dev" && mknod -m 666 "$root/dev/null" c 1 3
        GPUAGENT_EMULATION_DEVICES='' chroot "$root" /mnt/gpuagent-emulate boot --config /run/tray/dev.yaml --devices /dev
        is "slurmd $(client slurmd -V | cut -d' ' -f2): AutoDetect=nvml finds the nodes" \
                "$(client slurmd -f /run/tray/slurm/slurm.conf -G -N localhost 2>&1 | cat - /run/tray/client-errors |
                        grep -o 'Gres Name=gpu.*File=[^ ]*' | grep -o '/dev/nvidia[0-9]*' | paste -sd ' ')" \
                "/dev/nvidia0 /dev/nvidia1 /dev/nvidia2 /dev/nvidia3"
else
        skip "slurmd" "not installed"
fi

kill $tenant
wait $tenant 2>/dev/null
echo "1..$n_checks"
exit $((n_failures > 0))
