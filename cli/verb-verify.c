/* SPDX-License-Identifier: MIT */
/* gpuagentctl verify: whether GPUs are clean, by a fresh look where the caller may have one. */
#include "agent/base/text.h"
#include "cli/gpu-list.h"

int verb_verify(const Options *options, int argc, char **argv) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(client_free_ptr) Client *client = NULL;
        CLEANUP(strv_free_ptr) char **ids = NULL;
        int r;

        r = client_open(options, &client, &failure);
        if (r >= 0)
                r = gpu_list_for_agent(client, options->ids, &ids, &failure);
        if (r >= 0)
                r = client_call_for_gpus(
                                client, "Verify", ids, options, request_timeout(options), NULL, &failure);
        if (r < 0)
                return failure_report(&failure);

        if (!options->quiet)
                print_line(stdout, options->ids ? "GPUs %s are clean" : "%sall GPUs are clean",
                                options->ids ?: "");
        return CLI_DONE;
}
