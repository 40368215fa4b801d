/* SPDX-License-Identifier: MIT */
#include "cli/slurm-drain.h"

#include <stdio.h>
#include <string.h>

#include "agent/base/text.h"
#include "cli/program.h"

#define SCONTROL "/usr/bin/scontrol"

void drain_reason_format(const char *cause, uint32_t job_id, char ret[static DRAIN_REASON_SIZE]) {
        static const char verb[] = " is held by ";
        char text[DRAIN_REASON_SIZE] = "", job[32];
        size_t used = 0, room;

        (void) snprintf(job, sizeof job, ", job %u", job_id);
        room = sizeof text - 1 - strlen("gpuagent: ") - strlen(job);

        /* "is" says nothing, and quotes would end scontrol's value. */
        while (*cause != '\0' && used < room) {
                if (startswith(cause, verb))
                        cause += strlen(" is");
                else {
                        text[used++] = (char) (*cause == '"' || *cause == '\'' || *cause < ' ' ||
                                                                        *cause > '~'
                                                        ? '?'
                                                        : *cause);
                        cause++;
                }
        }
        (void) snprintf(ret, DRAIN_REASON_SIZE, "gpuagent: %s%s", text, job);
}

bool node_has_foreign_reason(const char *scontrol_output) {
        static const char *const passing[] = { "gpuagent:", "Epilog error", "Prolog error", "(null)" };
        const char *reason = strstr(scontrol_output, "\n   Reason=");

        if (!reason)
                return false;
        reason += strlen("\n   Reason=");
        for (size_t i = 0; i < ELEMENTSOF(passing); i++)
                if (startswith(reason, passing[i]))
                        return false;
        return true;
}

/* The first line, for the message. */
static const char* first_line(char *text) {
        text = text_strip(text);
        text[strcspn(text, "\n")] = '\0';
        return text;
}

static int scontrol(char *const argv[], usec_t deadline_usec, char **ret_output, Failure *failure) {
        CLEANUP(free_ptr) char *output = NULL;
        int r;

        r = program_run(argv, deadline_usec, &output);
        if (r < 0)
                return failure_errno(failure, r, SCONTROL);
        if (r > 0)
                return failure_set(failure, CLI_FAILED, SCONTROL ": %s", first_line(output));

        *ret_output = take_ptr(&output);
        return 0;
}

int drain_node(const SlurmJob *job, const char *cause, usec_t deadline_usec, Failure *failure) {
        const char *const show[] = { SCONTROL, "show", "node", job->node, NULL };
        CLEANUP(free_ptr) char *shown = NULL, *updated = NULL;
        char node[300], reason[sizeof "reason=" + DRAIN_REASON_SIZE], text[DRAIN_REASON_SIZE];
        const char *const update[] = { SCONTROL, "update", node, "state=drain", reason, NULL };
        int r;

        if (!job->node)
                return failure_set(failure, CLI_FAILED, "SLURMD_NODENAME is not set");
        if (snprintf(node, sizeof node, "nodename=%s", job->node) >= (int) sizeof node)
                return failure_set(failure, CLI_FAILED, "SLURMD_NODENAME is too long");

        r = scontrol((char *const *) show, deadline_usec, &shown, failure);
        if (r < 0 || node_has_foreign_reason(shown))
                return r;
        drain_reason_format(cause, job->id, text);
        (void) snprintf(reason, sizeof reason, "reason=%s", text);
        return scontrol((char *const *) update, deadline_usec, &updated, failure);
}
