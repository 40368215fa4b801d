#!/bin/bash
# SPDX-License-Identifier: MIT
#
# gpuagentctl list --watch: for people on a terminal, and for programs on a pipe.
. "$(dirname "$0")/lib.sh"
config='driver: {poll-interval: 500ms}'
in_tray

nobody="setpriv --reuid=nobody --regid=nogroup --clear-groups"
has_lines() { [ "$(wc -l <"$1")" -ge "$2" ]; }
says() { grep -qF -- "$2" "$1"; }

# --- For programs

gpuagentctl list --watch --json=short >/run/tray/lines &
watcher=$!
eventually 20 "the list is there at once" has_lines /run/tray/lines 1
is "it is the list" "$(head -n 1 /run/tray/lines)" "$(gpuagentctl list --json=short)"
gpuagentctl --quiet reset -i 1
eventually 20 "a reset is seen from its start" says /run/tray/lines '"state":"resetting"'
eventually 20 "to its end" eval 'tail -n 1 /run/tray/lines | jq -e ".[1].state == \"clean\""'
holds "each change is a line" jq -e 'length == 4' /run/tray/lines
refresh
refresh
is "no change is no line" "$(uniq /run/tray/lines | wc -l)" "$(wc -l </run/tray/lines)"
kill $watcher
wait $watcher 2>/dev/null

exits 2 "there is no pretty line" gpuagentctl list --watch --json=pretty
like "and it says so" "$output" 'use --json=short'
exits 5 "nor another tray that is not there" gpuagentctl list other --watch

gpuagentctl list --watch >/run/tray/tables &
watcher=$!
eventually 20 "a pipe has the table" has_lines /run/tray/tables 5
gpuagentctl --quiet reset -i 1
eventually 20 "and again with each change" says /run/tray/tables resetting
unlike "without a control character" "$(</run/tray/tables)" $'\e'
kill $watcher
wait $watcher 2>/dev/null

$nobody "$(command -v gpuagentctl)" list --watch | head -n 1 >/run/tray/first
is "who looks at one line has seen it end" "$(cut -d ' ' -f 1 /run/tray/first)" TRAY

watch_into_full_disk() { timeout 20 gpuagentctl list --watch >/dev/full; }
exits 1 "a full disk ends it" watch_into_full_disk
like "and it says so" "$output" 'cannot print the list: No space left on device'

# --- On a terminal. $1: its size; $2: who looks.

mkfifo /run/tray/keys
look() {
        rm -f /run/tray/screen
        script --quiet --flush --command "stty $1; stty -g >/run/tray/before
                ${2-} $(command -v gpuagentctl) list --watch; echo exit code \$?; stty -g >/run/tray/after" \
                /run/tray/screen </run/tray/keys >/dev/null &
        terminal=$!
        exec 5>/run/tray/keys
        eventually 20 "a screen of $1 is drawn" says /run/tray/screen 'STATE'
}

# How it ended, and what it has left.
looked() {
        eventually 20 "$1 ends it" says /run/tray/screen 'exit code 0'
        exec 5>&-
        wait $terminal
        is "the terminal is as it was" "$(</run/tray/after)" "$(</run/tray/before)"
        like "its screen and its cursor, too" "$(</run/tray/screen)" $'\e\\[\\?25h\e\\[\\?1049l'
}

# The lines of the screen as they were last drawn.
last_screen() {
        sed -e $'s/\e\\[?1049h\e\\[?25l//' -e $'s/\e\\[?25h\e\\[?1049l.*//' /run/tray/screen | tr -d '\r' |
                awk -v RS=$'\e\\[H' 'END { print }' | sed $'s/\e\\[[KJ]//g'
}
widest() { last_screen | awk '{ if (length($0) > n) n = length($0) } END { print n }'; }

export TERM=xterm
look 'cols 200 rows 24'
like "all columns are there, load and temperature, too" "$(last_screen)" 'UUID .* TENANT .* TEMP'
like "it says what to do" "$(last_screen | head -n 1)" '4 GPUs, driver ok \(q quits\)$'
gpuagentctl --quiet reset -i 1
eventually 20 "changes are drawn" says /run/tray/screen resetting
stop_service gpuagentd
eventually 20 "an agent that goes is missed" says /run/tray/screen 'gpuagentd is not running'
gpuagentctl 2>/dev/null
start_agent
eventually 20 "and found again" eval 'last_screen | grep -q "4 GPUs, driver ok"'
printf q >&5
looked q

look 'cols 60 rows 24' "$nobody"
is "a narrow screen has no line too long" "$((60 >= $(widest)))" 1
like "and the state, if not the UUID" "$(last_screen)" $'CLIQUE .* STATE .*\n.*clean'
printf '\003' >&5
looked Ctrl-C

look 'cols 20 rows 4'
is "nor has a tiny one" "$((20 >= $(widest))) $(($(last_screen | wc -l) <= 4))" '1 1'
pkill -HUP -f "^$(command -v gpuagentctl) list --watch"
looked "a hangup"
finish
