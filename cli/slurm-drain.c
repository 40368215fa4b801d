/* SPDX-License-Identifier: MIT */
#include "cli/slurm-drain.h"

#include <stdio.h>
#include <string.h>

#include "agent/base/text.h"
#include "cli/program.h"

#define SCONTROL "/usr/bin/scontrol"

void drain_reason_format(const char *cause, uint32_t job_id, char ret[static DRAIN_REASON_SIZE]) {
        static const char verb[] = " is held by ";
        char text[DRAIN_REASON_SIZE] = "", job[32] = "";
        size_t used = 0, room;

        if (job_id > 0)
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

/* The text of its line. NULL for none. */
static const char* node_reason(const char *scontrol_output) {
        static const char line[] = "\n   Reason=";
        const char *reason = strstr(scontrol_output, line);

        return reason ? reason + strlen(line) : NULL;
}

NodeDrain node_drain_parse(const char *scontrol_output) {
        const char *state = strstr(scontrol_output, "\n   State="), *reason = node_reason(scontrol_output);
        char word[256];

        if (!state)
                return NODE_IN_USE;
        (void) snprintf(word, sizeof word, "%.*s", (int) strcspn(state + 1, "\n"), state + 1);
        word[strcspn(word + 3, " ") + 3] = '\0'; /* behind the indentation */
        if (!strstr(word, "DRAIN"))
                return NODE_IN_USE;
        return reason && startswith(reason, "gpuagent:") ? NODE_DRAINED_BY_US : NODE_DRAINED_BY_OTHERS;
}

bool node_has_foreign_reason(const char *scontrol_output) {
        static const char *const passing[] = { "gpuagent:", "Epilog error", "Prolog error", "(null)" };
        const char *reason = node_reason(scontrol_output);

        if (!reason)
                return false;
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

static int show_node(const char *node, usec_t deadline_usec, char **ret_output, Failure *failure) {
        const char *const show[] = { SCONTROL, "show", "node", node, NULL };

        return scontrol((char *const *) show, deadline_usec, ret_output, failure);
}

static int update_node(const char *node, const char *state, const char *reason, usec_t deadline_usec,
                Failure *failure) {
        CLEANUP(free_ptr) char *output = NULL;
        char name[300];
        const char *const update[] = { SCONTROL, "update", name, state, reason, NULL };

        if (snprintf(name, sizeof name, "nodename=%s", node) >= (int) sizeof name)
                return failure_set(failure, CLI_FAILED, "the node's name is too long");
        return scontrol((char *const *) update, deadline_usec, &output, failure);
}

int node_drain_read(const char *node, usec_t deadline_usec, NodeDrain *ret, Failure *failure) {
        CLEANUP(free_ptr) char *shown = NULL;
        int r;

        r = show_node(node, deadline_usec, &shown, failure);
        if (r >= 0)
                *ret = node_drain_parse(shown);
        return r;
}

int resume_node(const char *node, usec_t deadline_usec, Failure *failure) {
        return update_node(node, "state=resume", NULL, deadline_usec, failure);
}

int drain_node(const SlurmJob *job, const char *cause, usec_t deadline_usec, Failure *failure) {
        char reason[sizeof "reason=" + DRAIN_REASON_SIZE], text[DRAIN_REASON_SIZE];
        CLEANUP(free_ptr) char *shown = NULL;
        int r;

        if (!job->node)
                return failure_set(failure, CLI_FAILED, "SLURMD_NODENAME is not set");
        r = show_node(job->node, deadline_usec, &shown, failure);
        if (r < 0 || node_has_foreign_reason(shown))
                return r;
        drain_reason_format(cause, job->id, text);
        (void) snprintf(reason, sizeof reason, "reason=%s", text);
        return update_node(job->node, "state=drain", reason, deadline_usec, failure);
}
