# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# For the tests of the OCI hook: what we install, at its place, and what a runtime says to a hook.

here=${here:?}

# Our programs where hooks find them. In the test's own mount namespace only.
install_hooks() {
        local layers=/run/tray/layers/usr

        mkdir -p $layers/upper $layers/work
        mount -t overlay overlay -o "lowerdir=/usr,upperdir=$layers/upper,workdir=$layers/work" /usr
        mkdir -p /usr/lib/gpuagent /usr/share/containers/oci/hooks.d
        install -m 755 "$GPUAGENT_BUILD/cli/gpuagentctl" /usr/bin/gpuagentctl
        install -m 755 "$GPUAGENT_BUILD/cli/gpuagent-oci-hook" /usr/lib/gpuagent/gpuagent-oci-hook
        install -m 644 "$here"/../../hooks/oci/*.json /usr/share/containers/oci/hooks.d
        hash -r
}

tenants() { gpuagentctl list --json=short | jq -r 'map(.tenant // "-") | join(" ")'; }
tenant_is() { [ "$(gpu "$1" Tenant)" = "$2" ]; }
counts() { echo "$(true_resets 0) $(true_resets 1) $(true_resets 2) $(true_resets 3)"; }
was_reset() { [ "$(true_resets "$1")" -gt "$2" ] && state_is "$1" clean; }
configure() { echo "$1" >/etc/gpuagent/gpuagentd.yaml.d/60-more.yaml && gpuagentctl reload; }

# A device of a container as config.json has it: GPU $1.
node() { echo "{\"path\":\"/dev/nvidia$1\",\"type\":\"c\",\"major\":1,\"minor\":3}"; }
