/* SPDX-License-Identifier: MIT */
/* gpuagentctl maintenance and forget: what an administrator tells the agent about the tray. */
#include <errno.h>
#include <stdlib.h>

#include "agent/base/text-stream.h"
#include "agent/base/text.h"
#include "cli/gpu-list.h"

/* The words of the command line with spaces between. 0 and *ret (to be freed) · -ENOMEM. */
static int join(char **words, char **ret) {
        CLEANUP(text_stream_done) TextStream stream = {};
        FILE *file = text_stream_open(&stream);

        if (!file)
                return -ENOMEM;
        STRV_FOREACH (word, words)
                (void) fprintf(file, "%s%s", word > words ? " " : "", *word);
        return text_stream_take(&stream, ret);
}

int verb_maintenance(const Options *options, int argc, char **argv) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(client_free_ptr) Client *client = NULL;
        CLEANUP(free_ptr) char *reason = NULL;
        bool on = argc > 1 && streq(argv[1], "on");
        int r;

        if (!on && (argc != 2 || !streq(argv[1], "off")))
                return fail_with(
                                CLI_USAGE, "the command is: maintenance on [REASON...], or maintenance off");
        r = join(argv + 2, &reason);
        if (r < 0)
                return fail_with(CLI_FAILED, "out of memory");

        r = client_open(options, &client, &failure);
        if (r >= 0)
                r = client_call_manager(client, "SetMaintenance", request_timeout(options), NULL, &failure,
                                "bs", on, reason);
        if (r < 0)
                return failure_report(&failure);

        if (!options->quiet)
                print_line(stdout,
                                on ? "maintenance is on: no GPU is handed out, probed or reset"
                                   : "maintenance is off");
        return CLI_DONE;
}

int verb_forget(const Options *options, int argc, char **argv) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(client_free_ptr) Client *client = NULL;
        CLEANUP(strv_free_ptr) char **ids = NULL;
        int r;

        if (argc != 2)
                return fail_with(CLI_USAGE, "the command is: forget GPU");
        r = client_open(options, &client, &failure);
        if (r >= 0)
                r = gpu_list_for_agent(client, argv[1], &ids, &failure);
        if (r < 0)
                return failure_report(&failure);
        if (strv_length(ids) != 1)
                return fail_with(CLI_USAGE, "forget takes one GPU at a time");

        r = client_call_manager(client, "Forget", 0, NULL, &failure, "sa{sv}", ids[0], 0);
        if (r < 0)
                return failure_report(&failure);

        if (!options->quiet)
                print_line(stdout, "GPU %s is forgotten", argv[1]);
        return CLI_DONE;
}
