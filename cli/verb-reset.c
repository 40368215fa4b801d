/* SPDX-License-Identifier: MIT */
/* gpuagentctl reset: the handover, asked for by hand. */
#include "agent/base/text.h"
#include "cli/gpu-list.h"
#include "cli/reset.h"

int verb_reset(const Options *options, int argc, char **argv) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(client_free_ptr) Client *client = NULL;
        CLEANUP(strv_free_ptr) char **ids = NULL;
        int r = 0;

        if (options->ids)
                r = gpu_list_parse(options->ids, &ids, &failure);
        if (r >= 0)
                r = client_open(options, &client, &failure);
        if (r >= 0)
                r = reset_gpus(client, options, ids, &failure);
        return r < 0 ? failure_report(&failure) : CLI_DONE;
}
