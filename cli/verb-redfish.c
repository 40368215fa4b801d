/* SPDX-License-Identifier: MIT */
/* gpuagentctl redfish: what a tray's BMC answers. A program of its own does it, so that this one, which is
 * started with each job, needs no HTTP. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/options.h"
#include "cli/print.h"

#define HELPER "/usr/lib/gpuagent/gpuagent-redfish"

int verb_redfish(const Options *options, int argc, char **argv) {
        char timeout[32];
        const char *arguments[12] = { HELPER };
        size_t n = 1;

        if (argc < 3)
                return fail_with(CLI_USAGE, "the command is: redfish TRAY PATH");
        if (options->config_path) {
                arguments[n++] = "--config";
                arguments[n++] = options->config_path;
        }
        if (options->timeout_usec > 0) {
                (void) snprintf(timeout, sizeof timeout, "%lluus",
                                (unsigned long long) options->timeout_usec);
                arguments[n++] = "--timeout";
                arguments[n++] = timeout;
        }
        if (options->output == OUTPUT_JSON_SHORT)
                arguments[n++] = "--short";
        arguments[n++] = "--";
        arguments[n++] = argv[1];
        arguments[n] = argv[2];

        (void) execv(HELPER, (char *const *) arguments);
        if (errno == ENOENT)
                return fail_with(CLI_FAILED, "%s is not installed, which this needs", HELPER);
        return fail_with(CLI_FAILED, "cannot run %s: %s", HELPER, strerror(errno));
}
