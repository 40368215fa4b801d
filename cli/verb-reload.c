/* SPDX-License-Identifier: MIT */
/* gpuagentctl reload: the agent reads its configuration anew, or says what is wrong with it and keeps the
 * old. */
#include "cli/client.h"

int verb_reload(const Options *options, int argc, char **argv) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(client_free_ptr) Client *client = NULL;
        int r;

        r = client_open(options, &client, &failure);
        if (r >= 0)
                r = client_call_manager(client, "Reload", 0, NULL, &failure, "");
        return r < 0 ? failure_report(&failure) : CLI_DONE;
}
