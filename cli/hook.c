/* SPDX-License-Identifier: MIT */
#include "cli/hook.h"

#include <stdio_ext.h>

int hook_read_config(const Options *options, Config **ret, Failure *failure) {
        CLEANUP(free_ptr) char *message = NULL, *ignored = NULL;
        int r;

        r = config_load(options->config_path, ret, &message);
        if (r < 0)
                r = config_parse("defaults", "", 0, ret, &ignored);
        return r < 0 ? failure_errno(failure, r, "cannot read the configuration") : 0;
}

const char* hook_leniency(const Config *config) {
        if (config->mode == AGENT_MODE_OBSERVE)
                return "mode is observe";
        return config->handover.reset ? NULL : "handover.reset is off";
}

int hook_refuse(const Failure *failure) {
        return failure->exit_code == CLI_DONE || failure->exit_code == CLI_USAGE ? CLI_FAILED
                                                                                 : failure->exit_code;
}

int hook_succeed(void) {
        if (fflush(stdout) != 0) {
                __fpurge(stdout);
                clearerr(stdout);
        }
        return CLI_DONE;
}
