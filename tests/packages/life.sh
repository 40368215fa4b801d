#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The Debian packages on Debian 12 from their installation to their purge, by apt from a repository: what runs goes on, what
# is known is kept, and at the end nothing is left.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$(readlink -f "$0")")/helper.sh"

# Two repositories in one: the packages, and the same ones as an earlier version.
make_repository() {
        local folder=$lab_state/repository deb tree=$lab_state/repack

        rm -rf "$folder"
        mkdir -p "$folder"
        cp "$lab_state"/product/*.deb "$folder/"
        for deb in "$lab_state"/product/*.deb; do
                rm -rf "$tree"
                dpkg-deb --raw-extract "$deb" "$tree"
                sed -i 's/^\(Version: .*\)$/\1~previous/' "$tree/DEBIAN/control"
                dpkg-deb --build -Znone "$tree" "$folder/" >/dev/null
        done
        (cd "$folder" && dpkg-scanpackages --multiversion . 2>/dev/null >Packages)
}

# Where a package could leave something. What dpkg and systemd keep about packages in general is theirs.
snapshot() {
        in_host 'find / -xdev \( -path /proc -o -path /sys -o -path /tmp -o -path /srv -o -path /var/log -o -path /var/cache \
                        -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/lib/systemd/catalog \
                        -o -path /run/systemd -o -path "/etc/*-" -o -path /var/lib/systemd/timers \) -prune -o -print
                find /run /dev \( -path /run/systemd -o -path /run/log -o -path /run/udev -o -path /dev/pts \
                        -o -path /run/user \) -prune -o -print
                getent passwd; getent group; systemctl list-unit-files --no-legend; systemctl list-units --all --no-legend \
                        --plain "*gpu*" "*nvidia*"' | LC_ALL=C sort -u
}

apt() {
        in_host "DEBIAN_FRONTEND=noninteractive apt-get --quiet --yes -o APT::Install-Recommends=false $* 2>&1"
}

version_of() {
        in_host "dpkg-query --show --showformat '\${Version}' $1 2>/dev/null"
}

pid_of() {
        in_host "systemctl show --property MainPID --value $1"
}

started() {
        in_host "systemctl show --property ExecMainStartTimestampMonotonic --value $1"
}

states() {
        in_host 'gpuagentctl --no-legend' | awk '{ print $9 }' | paste -sd ' '
}

states_are() {
        [[ $(states) == "$1" ]]
}

resets() {
        in_host 'gpuagent-emulate status' | sed -n 's/.*  resets //p' | paste -sd ' '
}

begin_packages
make_repository
version=$(dpkg-deb --field "$(echo "$lab_state"/product/gpuagent_*.deb)" Version)
host_new "$(bookworm_image)"
host_up --bind-ro="$lab_state/repository:/srv/repository"
in_host 'echo "deb [trusted=yes] file:/srv/repository ./" >/etc/apt/sources.list && rm -f /etc/apt/sources.list.d/*'
apt update >/dev/null
snapshot >"$lab_state/before"

# A node that shares slurm.conf with others, and has no GPUs.
like "Slurm's scripts can be had" "$(apt install gpuagent-slurm)" 'Setting up gpuagent-slurm'
is "without an agent" "$(version_of gpuagent)" ''
succeeds "a job's prolog does nothing there" in_host 'env -i SLURM_JOB_ID=1 /usr/lib/gpuagent/slurm/prolog'
succeeds "nor does its epilog" in_host 'env -i SLURM_JOB_ID=1 /usr/lib/gpuagent/slurm/epilog'
apt purge gpuagent-slurm gpuagent-client >/dev/null

# A tray at work: the driver is there, and a job on GPU 0.
in_host 'mkdir -p /etc/gpuagent && echo "reset-time: 6s" >/etc/gpuagent/emulation.yaml &&
        dpkg --force-depends --install /srv/repository/gpuagent-emulation_*previous*.deb' >/dev/null 2>&1
in_host 'systemd-run --quiet --unit=job sh -c "exec sleep infinity </dev/nvidia0"'
like "the agent can be installed while a job runs" "$(apt install "gpuagent=$version~previous" \
        "gpuagent-client=$version~previous" "gpuagent-slurm=$version~previous" "gpuagent-emulation=$version~previous" \
        "gpuagent-oci-hook=$version~previous" "gpuagent-nri=$version~previous")" \
        'Setting up gpuagent '
is "it resets nothing" "$(resets)" '0 0 0 0'
in_host_is "the job goes on" 'systemctl is-active job' active
in_host_is "agent and driver service run" 'systemctl is-active gpuagentd gpuagent-driver.socket' $'active\nactive'
in_host_is "the bus knew the agent's policy" 'journalctl --unit gpuagentd --output cat | sed -n "/bus refuses/p"' ''
in_host_is "and will after a boot" 'systemctl is-enabled gpuagentd gpuagent-driver.socket gpuagent-boot-reset' \
        $'enabled\nenabled\nenabled'
in_host_is "the boot's reset is not made" 'systemctl is-active gpuagent-boot-reset' inactive
in_host_is "no unit has failed" 'systemctl list-units --failed --no-legend' ''
like "what the agent knows is that GPU 0 is held" "$(in_host 'gpuagentctl ps -i 0')" job.service
in_host 'systemctl stop job'
succeeds "the GPUs can be reset" in_host 'gpuagentctl reset'
is "and are clean" "$(states)" 'clean clean clean clean'

# The settings of the site, a lease, a quarantine, and a reset that runs.
in_host 'echo "handover: {busy-grace: 7s}" >/etc/gpuagent/gpuagentd.yaml && systemctl reload gpuagentd &&
        gpuagentctl acquire --tenant test/1 -i 0' >/dev/null
in_host 'gpuagent-emulate fail-reset 1 --count 1; gpuagentctl reset -i 1' >/dev/null 2>&1
in_host 'systemd-run --quiet --unit=reset --property=RemainAfterExit=yes gpuagentctl reset -i 2'
within 20 "a reset runs" states_are 'in-use quarantined resetting clean'
agent=$(pid_of gpuagentd) driver=$(pid_of gpuagent-driver)
like "an upgrade takes place meanwhile" "$(apt install gpuagent gpuagent-emulation gpuagent-slurm gpuagent-oci-hook gpuagent-nri \
        "gpuagent-client=$version~previous")" \
        "Setting up gpuagent \\(${version//[+.]/.}\\)"
within 60 "the reset ends well" in_host '[ "$(systemctl show --property SubState --value reset)" = exited ]'
is "lease and quarantine are kept" "$(states)" 'in-use quarantined clean clean'
like "by its tenant" "$(in_host 'gpuagentctl --no-legend' | head -n 1)" 'test/1$'
[[ $agent != "$(pid_of gpuagentd)" && $driver != "$(pid_of gpuagent-driver)" ]]
is "both services are new ones" $? 0
[[ $(started gpuagent-driver) -lt $(started gpuagentd) ]]
is "the driver service came first" $? 0
in_host_is "the boot's reset was left alone" 'systemctl is-active gpuagent-boot-reset' inactive
in_host_is "the settings are the site's" 'cat /etc/gpuagent/gpuagentd.yaml' 'handover: {busy-grace: 7s}'
is "an old client is content with the new agent" "$(version_of gpuagent-client)" "$version~previous"
apt install gpuagent-client >/dev/null
is "then the client is new" "$(version_of gpuagent-client)" "$version"
apt install --allow-downgrades "gpuagent=$version~previous" >/dev/null
is "and content with an old agent" "$(version_of gpuagent) $(states)" "$version~previous in-use quarantined clean clean"
apt install gpuagent >/dev/null
in_host 'systemctl stop reset'
succeeds "the lease can be ended" in_host 'gpuagentctl release --tenant test/1'
is "with a reset" "$(states)" 'clean quarantined clean clean'

# Away with it.
in_host 'mkdir -p /etc/slurm && echo "Epilog=/usr/lib/gpuagent/slurm/epilog" >/etc/slurm/slurm.conf'
like "who takes away what slurm.conf names is warned" "$(apt remove gpuagent-slurm)" \
        'its scripts are still named in.*/etc/slurm/slurm.conf.*drains this node'
in_host 'rm /etc/slurm/slurm.conf'
like "the rest goes" "$(apt remove gpuagent gpuagent-client gpuagent-emulation gpuagent-oci-hook gpuagent-nri)" 'Removing gpuagent '
in_host_is "nothing of it runs" 'systemctl list-units --plain --no-legend "gpuagent*"; pgrep -f "^/usr/.*gpuagent"' ''
in_host_is "the settings have stayed" 'cat /etc/gpuagent/gpuagentd.yaml' 'handover: {busy-grace: 7s}'
apt purge gpuagent gpuagent-client gpuagent-slurm gpuagent-emulation gpuagent-oci-hook gpuagent-nri >/dev/null
snapshot >"$lab_state/after"
is "after a purge nothing is left" "$(LC_ALL=C comm -13 "$lab_state/before" "$lab_state/after")" ''
is "and nothing else is missing" "$(LC_ALL=C comm -23 "$lab_state/before" "$lab_state/after")" ''
finish
