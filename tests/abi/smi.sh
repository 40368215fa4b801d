#!/bin/bash
# SPDX-License-Identifier: MIT
#
# nvidia-smi's outputs: the forms of the vendor's tool, and under `dialect: ai-lab` what the reference walk-through shows.
. "$(dirname "$0")/../process/lib.sh"
tray_options=(--bare)
emulation='name: sched-worker2'
in_tray

csv() { nvidia-smi --query-gpu="$1" --format="${2:-csv,noheader}" -i "${3:-0}"; }

is "values have units" "$(csv memory.total,power.limit,clocks.max.sm,fan.speed)" "189471 MiB, 1200.00 W, 2062 MHz, [N/A]"
is "or not" "$(csv memory.total,power.limit,clocks.max.sm,fan.speed csv,noheader,nounits)" "189471, 1200.00, 2062, [N/A]"
is "names are repeated as asked, with the unit" "$(csv clocks.sm,memory.used,temperature.gpu csv | head -n 1)" \
        "clocks.sm [MHz], memory.used [MiB], temperature.gpu"
is "or without" "$(csv memory.used csv,nounits | head -n 1)" "memory.used"
is "aliases are known" "$(csv gpu_uuid)" "$(csv uuid)"
is "what is deprecated says so" "$(csv power.management)" "[Requested functionality has been deprecated]"
is "GPUs by index, UUID and bus id" "$(csv index csv,noheader "0,$(csv uuid csv,noheader 2),00000000:5d:00.0")" $'0\n2\n3'
exits 2 "an unknown property is refused" nvidia-smi --query-gpu=foo --format=csv
like "by name" "$output" 'Field "foo" is not a valid field to query.'
exits 2 "an unknown option is refused" nvidia-smi --foo
exits 2 "a query needs a format" nvidia-smi --query-gpu=name
exits 6 "no such GPU" nvidia-smi -i 9 -L
exits 0 "all properties at once" nvidia-smi --format=csv \
        --query-gpu="$(nvidia-smi --help-query-gpu | sed -n 's/^"\([^"]*\)".*/\1/p' | paste -sd,)"
is "the list has them all" "$(nvidia-smi --help-query-gpu | grep -c '^"')" 213
is "-L" "$(nvidia-smi -L -i 0)" "GPU 0: NVIDIA GB200 (UUID: $(csv uuid))"
like "-q" "$(nvidia-smi -q -i 0)" $'\n    GPU Recovery Action                                : None\n'
is "-q -d shows only that" "$(nvidia-smi -q -i 0 -d COMPUTE | grep -c '^    ')" 1
is "lines of the table are of one width" "$(nvidia-smi | tail -n +2 | grep . | awk '{print length}' | sort -u)" 91
holds "-q -x is XML with a GPU each" python3 -c '
import subprocess, xml.etree.ElementTree as tree
root = tree.fromstring(subprocess.check_output(["nvidia-smi", "-q", "-x"]))
gpus = root.findall("gpu")
assert len(gpus) == 4 and root.findtext("attached_gpus") == "4"
for gpu in gpus:
    assert gpu.findtext("product_name") == "NVIDIA GB200"
    assert gpu.findtext("fabric/state") in ("Completed", "Not Started", "In Progress")
    assert gpu.findtext("pci/pci_device_id") == "294110DE"
    assert gpu.findtext("clocks/graphics_clock") == "120 MHz"
    assert gpu.find("processes") is not None'
like "-l repeats" "$(timeout 1.5 nvidia-smi -l 1 --query-gpu=index --format=csv,noheader -i 2 | paste -sd,)" "^2,2$"
exits 0 "-f writes a file" nvidia-smi -L -f /run/tray/list
is "with all of it" "$(wc -l </run/tray/list)" 4
like "persistence mode" "$(nvidia-smi -pm 0 -i 1)" "Disabled persistence mode for GPU 00000000:2A:00.0"
is "it was switched" "$(csv persistence_mode csv,noheader 0,1)" $'Enabled\nDisabled'

# --- other machines
cat >/run/tray/gb300.yaml <<END
preset: gb300
minors: [3, 2, 1, 0]
devices: $GPUAGENT_EMULATION_DEVICES
END
gpuagent-emulate boot --config /run/tray/gb300.yaml
is "GB300: other PCI domains, minors in another order" "$(csv name,pci.bus_id csv,noheader 3)" "NVIDIA GB300, 00000019:06:00.0"
like "minors are not indices" "$(nvidia-smi -q -i 3)" "Minor Number +: 0"
is "two GPUs share a board's serial" "$(csv serial csv,noheader 0,1,2,3 | sort -u | wc -l)" 2
printf 'preset: h100\ndevices: %s\n' "$GPUAGENT_EMULATION_DEVICES" >/run/tray/h100.yaml
gpuagent-emulate boot --config /run/tray/h100.yaml
sleep 1.1
is "HGX H100: eight GPUs in no cluster" "$(csv fabric.state,fabric.cliqueId,fabric.clusterUuid,fabric.health.summary csv,noheader 7)" \
        "Completed, 0, 00000000-0000-0000-0000-000000000000, N/A"
printf 'preset: b200\ndevices: %s\n' "$GPUAGENT_EMULATION_DEVICES" >/run/tray/b200.yaml
gpuagent-emulate boot --config /run/tray/b200.yaml
is "HGX B200: eight GPUs, too" "$(nvidia-smi -L | grep -c "NVIDIA B200")" 8
printf 'gpus: 1\nunknown: 1\n' >/run/tray/bad.yaml
exits 1 "an unknown key is refused with its line" gpuagent-emulate boot --config /run/tray/bad.yaml
like "so" "$output" "bad.yaml:2: unknown key"

printf 'gpus: 1\ngpus: 2\n' >/run/tray/bad.yaml
exits 1 "a key that is there twice" gpuagent-emulate boot --config /run/tray/bad.yaml
like "so" "$output" "bad.yaml:2: this key is there twice"
printf 'name: &a b\npreset: *a\n' >/run/tray/bad.yaml
exits 1 "an alias" gpuagent-emulate boot --config /run/tray/bad.yaml
printf 'minors: [1, 1]\n' >/run/tray/bad.yaml
exits 1 "two GPUs with one minor" gpuagent-emulate boot --config /run/tray/bad.yaml
printf 'gpus: many\n' >/run/tray/bad.yaml
exits 1 "a word for a number" gpuagent-emulate boot --config /run/tray/bad.yaml
sources=$here/../../agent/emulation
is "the manual has every key of the configuration" \
        "$(sed -n '/^# CONFIGURATION/,/^# FILES/s/^\([a-z-]*\): .*/\1/p' "$sources/gpuagent-emulate.8.scd" | sort)" \
        "$(sed -n 's/^ *{ "\([a-z-]*\)", KEY_.*/\1/p' "$sources/emulation-config.c" | sort)"
is "and every verb" \
        "$(sed -n '/^# VERBS/,/^# CONFIGURATION/s/^\*\([a-z-]*\)[ *].*/\1/p' "$sources/gpuagent-emulate.8.scd" | sort -u)" \
        "$(sed -n 's/^ *{ "\([a-z-]*\)", verb_.*/\1/p' "$sources/emulate.c" | sort)"

# --- the reference's commands, as printed there
echo 'dialect: ai-lab' >>/etc/gpuagent/emulation.yaml
gpuagent-emulate boot
sleep 0.2
gpuagent-emulate partition remove default 0,1,2,3 >/dev/null
gpuagent-emulate partition create tray2 --id 7 0,1,2,3 >/dev/null
is "the lab's header" "$(nvidia-smi --query-gpu=index,fabric.cliqueId --format=csv)" \
        $'index, fabric.clique_id\n0, 1\n1, 1\n2, 1\n3, 1'
is "the lab's recovery action" "$(nvidia-smi -i 0 -q | grep -E "GPU Recovery Action|CliqueId")" \
        $'    GPU Recovery Action                   : GPU_RESET\n        CliqueId                          : 1'
hold 0
like "the lab's process list" "$(nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv)" \
        $'^pid, process_name, used_memory \[MiB\]\n'"$holder, /run/tray/holder, 20 MiB$"
exits 1 "the lab's refusal" nvidia-smi --gpu-reset -i 0
is "in its words" "$output" "Unable to reset GPU 00000000:18:00.0 because it's being used by some other process (e.g. CUDA \
application). Please first kill all processes using this GPU."$'\nSome GPUs could not be reset.'
release
is "the lab's success" "$(nvidia-smi --gpu-reset)" "GPU 00000000:18:00.0 was successfully reset.
GPU 00000000:2A:00.0 was successfully reset.
GPU 00000000:3A:00.0 was successfully reset.
GPU 00000000:5D:00.0 was successfully reset.
All done."
exits 0 "by the bus id, as an agent asks by default" nvidia-smi --gpu-reset -i 0000:18:00.0
eventually 2 "and the new clique" eval '[ "$(csv fabric.cliqueId)" = 7 ]'
is "nothing is pending" "$(nvidia-smi -i 0 -q | grep "GPU Recovery Action")" "    GPU Recovery Action                   : None"
echo "1..$n_checks"
exit $((n_failures > 0))
