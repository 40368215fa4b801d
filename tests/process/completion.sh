#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The completion of gpuagentctl, asked by a real bash and a real zsh.
. "$(dirname "$0")/lib.sh"
emulation='partition-name: $(id>/run/tray/executed)'
tray_options=(--bare)
in_tray

completions=$here/../../cli/completions
uuid() { gpuagent-emulate status | sed -n "s/^ *$1  \(GPU-[^ ]*\) .*/\1/p"; }

# What bash offers for the last of the words; "=" is a word of its own.
bash_offers() {
        bash -c '. "$1"; COMP_WORDS=("${@:2}"); COMP_CWORD=$(($# - 2)); _gpuagentctl; echo "${COMPREPLY[@]}"' - \
                "$completions/gpuagentctl" "$@" 2>&1
}

# The same for zsh, which has the line as it is typed.
zsh_offers() {
        rm -f /run/tray/offered
        # shellcheck disable=SC2016 # for zsh
        zsh -f -c '
                zmodload zsh/zpty
                zpty shell "env TERM=dumb PS1= zsh -f -i"
                zpty -w shell "fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; setopt no_beep"
                zpty -w shell "compadd() { builtin compadd -O offered \"\$@\"; print -rl -- \$offered >>/run/tray/offered; builtin compadd \"\$@\" }"
                zpty -w shell "comppostfuncs=(offered_all); offered_all() { print -r -- end >>/run/tray/offered }; print -r up >/run/tray/up"
                until [[ -e /run/tray/up ]]; do zpty -r -t shell _ >/dev/null; sleep 0.05; done
                zpty -w -n shell "$2"$'\''\t'\''
                for ((i = 0; i < 400; i++)); do
                        zpty -r -t shell _ >/dev/null
                        grep -qs "^end$" /run/tray/offered && break
                        sleep 0.05
                done
                zpty -d shell' - "$completions" "$1" 2>&1
        sed '/^end$/d; /^$/d' /run/tray/offered 2>/dev/null | paste -sd ' '
}

like "--help fits a screen" "$(gpuagentctl --help | awk '{ if (length > w) w = length } END { print (NR <= 30), (w <= 80) }')" '^1 1$'
for verb in $(gpuagentctl complete verbs); do
        gpuagentctl --help | grep -qwe "$verb" || fail "$verb is in --help"
done

# --- Without an agent

is "verbs need no agent" "$(bash_offers gpuagentctl rele)" release
is "nor do options" "$(bash_offers gpuagentctl reset --no)" --no-wait
is "and no GPU is no complaint" "$(bash_offers gpuagentctl reset -i '')" ''
is "nor is no tray" "$(bash_offers gpuagentctl list '')" ''

start_driver
start_agent
has_gpus() { [ "$(gpuagentctl list --no-legend | wc -l)" -eq 4 ]; }
eventually 20 "the agent has its GPUs" has_gpus
printf 'client: {trays: [tray1, admin@tray2]}\n' >/etc/gpuagent/gpuagentctl.yaml

# --- bash

like "all verbs" "$(bash_offers gpuagentctl '')" '^list status reset .*slurm-epilog'
unlike "but not the one that completion asks" "$(bash_offers gpuagentctl '')" 'complete'
is "an option of the verb" "$(bash_offers gpuagentctl acquire --s)" --shared
is "and no other" "$(bash_offers gpuagentctl acquire --fo)" ''
is "one that takes a value" "$(bash_offers gpuagentctl list --js)" --json=
is "its values" "$(bash_offers gpuagentctl list --json =)" 'short pretty'
is "also in part" "$(bash_offers gpuagentctl list --json = p)" pretty
is "and as a word of its own" "$(bash_offers gpuagentctl list --json s)" short
is "GPUs" "$(bash_offers gpuagentctl status '')" "0 1 2 3 $(uuid 0) $(uuid 1) $(uuid 2) $(uuid 3)"
is "in a list" "$(bash_offers gpuagentctl reset -i 0,2,)" "0,2,1 0,2,3 0,2,$(uuid 0) 0,2,$(uuid 1) 0,2,$(uuid 2) 0,2,$(uuid 3)"
is "by the beginning of a UUID" "$(bash_offers gpuagentctl ps --id = "$(uuid 3 | cut -c 1-8)")" "$(uuid 3)"
is "behind a verb's option, too" "$(bash_offers gpuagentctl --timeout = 5 reset -t x --i)" '--id= --identifier='
is "trays" "$(bash_offers gpuagentctl list '')" 'tray1 admin@tray2 tray'
is "for -H" "$(bash_offers gpuagentctl -H tray1,)" 'tray1,admin@tray2 tray1,tray'
is "what partition does" "$(bash_offers gpuagentctl partition '')" 'list create add remove delete'
is "partitions, quoted" "$(bash_offers gpuagentctl partition delete '')" '\$\(id\>/run/tray/executed\)'
is "what maintenance may be" "$(bash_offers gpuagentctl maintenance o)" 'on off'
is "nothing where there is nothing" "$(bash_offers gpuagentctl reload '')" ''
is "nor for a number" "$(bash_offers gpuagentctl reset --timeout '')" ''

# --- zsh

if command -v zsh >/dev/null; then
        is "zsh: verbs" "$(zsh_offers 'gpuagentctl rel')" 'release reload'
        is "zsh: an option of the verb" "$(zsh_offers 'gpuagentctl acquire --sh')" --shared
        is "zsh: values" "$(zsh_offers 'gpuagentctl list --json=')" 'short pretty'
        is "zsh: GPUs" "$(zsh_offers 'gpuagentctl status ')" "0 1 2 3 $(uuid 0) $(uuid 1) $(uuid 2) $(uuid 3)"
        is "zsh: in a list" "$(zsh_offers 'gpuagentctl reset -i 0,2,')" "1 3 $(uuid 0) $(uuid 1) $(uuid 2) $(uuid 3)"
        is "zsh: trays" "$(zsh_offers 'gpuagentctl list ')" 'tray1 admin@tray2 tray'
        is "zsh: partitions" "$(zsh_offers 'gpuagentctl partition delete ')" '$(id>/run/tray/executed)'
        is "zsh: nothing where there is nothing" "$(zsh_offers 'gpuagentctl reload ')" ''
else
        skip "zsh completes the same" "zsh is not here"
fi
is "no name was taken for a command" "$(ls /run/tray/executed 2>&1)" "ls: cannot access '/run/tray/executed': No such file or directory"
finish
