/* SPDX-License-Identifier: MIT */
#include "hooks/nri/gate.h"

#include <stdio.h>

#include "agent/base/text.h"
#include "agent/log/log.h"
#include "cli/hook.h"
#include "cli/oci-gpus.h"

/* All of it together stays below 2 s: to connect by the agent's socket and then by the bus, to read, and
 * to book with the agent's own time in it. */
#define STEP_USEC   (300 * USEC_PER_MSEC)
#define WORK_USEC   (600 * USEC_PER_MSEC)
#define ANSWER_USEC (900 * USEC_PER_MSEC)

/* 0 · negative, and *failure says why. */
static int book(const Options *options, const Config *config, const OciContainer *container,
                const char *tenant, char **gpus, GpuSet *set, Failure *failure) {
        CLEANUP(client_free_ptr) Client *client = NULL;
        CLEANUP(tray_done) Tray tray = {};
        Options request = *options;
        int r;

        request.timeout_usec = STEP_USEC;
        r = client_open(&request, &client, failure);
        if (r >= 0)
                r = tray_read(client, &tray, failure);
        if (r >= 0)
                r = oci_gpus_find(container, gpus, &tray, config, set, failure);
        if (r <= 0)
                return r;
        request.timeout_usec = WORK_USEC;
        request.shared = config->handover.shared == SHARED_COUNT;
        return client_call_for_tenant(client, "Acquire", tenant, set->ids, &request, ANSWER_USEC, failure);
}

int gate_book(const Options *options, const OciContainer *container, char ret_why[static PLUGIN_WHY_SIZE]) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(config_free_ptr) Config *config = NULL;
        CLEANUP(strv_free_ptr) char **gpus = NULL;
        CLEANUP(gpu_set_done) GpuSet set = {};
        char tenant[TENANT_MAX + 1];
        int r;

        r = hook_read_config(options, &config, &failure);
        if (r >= 0) {
                const OciRules rules = { config->oci.observers, config->oci.nvidia_runtime };

                r = oci_gpus(container, &rules, &gpus);
                if (r == 0)
                        return 0;
                if (r > 0)
                        r = oci_tenant(container, tenant);
                if (r < 0)
                        r = failure_errno(&failure, r, "cannot read the container's GPUs");
        }
        if (r >= 0)
                r = book(options, config, container, tenant, gpus, &set, &failure);
        if (r >= 0) {
                if (set.names)
                        log_message(LOG_INFO, "GPUs %s booked for %s", set.names, tenant);
                return 0;
        }

        (void) snprintf(ret_why, PLUGIN_WHY_SIZE, "GPUs %s%srefused: %s", set.names ?: "",
                        set.names ? " " : "", failure.message ?: "out of memory");
        if (config && hook_leniency(config)) {
                log_message(LOG_NOTICE, "it would be refused: %s", ret_why);
                return 0;
        }
        log_message(LOG_NOTICE, "%s", ret_why);
        return r;
}

void gate_release(const Options *options, const OciContainer *container) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(client_free_ptr) Client *client = NULL;
        Options hurry = *options, request = *options;
        char tenant[TENANT_MAX + 1];
        int r;

        if (oci_tenant(container, tenant) < 0)
                return; /* it got nothing by that name */
        hurry.timeout_usec = STEP_USEC;
        request.wait = false; /* the work itself has the agent's own times */
        r = client_open(&hurry, &client, &failure);
        if (r >= 0)
                r = client_call_for_tenant(client, "Release", tenant, NULL, &request, STEP_USEC, &failure);
        if (r < 0)
                log_message(LOG_WARNING, "GPUs of %s not given back: %s", tenant,
                                failure.message ?: "out of memory");
}
