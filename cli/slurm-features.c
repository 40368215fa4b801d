/* SPDX-License-Identifier: MIT */
#include "cli/slurm-features.h"

#include <errno.h>
#include <string.h>

#include "agent/base/text-stream.h"
#include "agent/base/text.h"
#include "cli/program.h"

#define SINFO    "/usr/bin/sinfo"
#define SCONTROL "/usr/bin/scontrol"

/* "block" and at least three digits. */
static bool is_ours(const char *feature, size_t n) {
        size_t digits = n > strlen("block") ? strspn(feature + strlen("block"), "0123456789") : 0;

        return startswith(feature, "block") && digits >= 3 && digits == n - strlen("block");
}

int features_replace(const char *features, uint32_t block, char **ret) {
        CLEANUP(text_stream_done) TextStream stream = {};
        FILE *file = text_stream_open(&stream);
        const char *comma = "";

        if (!file)
                return -ENOMEM;
        for (size_t n; *features != '\0' && !streq(features, "(null)");
                        features += n + (features[n] == ',')) {
                n = strcspn(features, ",");
                if (n == 0 || is_ours(features, n))
                        continue;
                (void) fprintf(file, "%s%.*s", comma, (int) n, features);
                comma = ",";
        }
        if (block > 0)
                (void) fprintf(file, "%sblock%03u", comma, block);
        return text_stream_take(&stream, ret);
}

static int run(char *const argv[], usec_t deadline_usec, char **ret_output, Failure *failure) {
        CLEANUP(free_ptr) char *output = NULL;
        int r;

        r = program_run(argv, deadline_usec, &output);
        if (r < 0)
                return failure_errno(failure, r, "cannot run %s", argv[0]);
        if (r > 0)
                return failure_set(failure, CLI_FAILED, "%s: %.*s", argv[0], (int) strcspn(output, "\n"),
                                output);

        *ret_output = take_ptr(&output);
        return 0;
}

static int update_node(const TopologyNode *node, const char *available, const char *active,
                usec_t deadline_usec, Failure *failure) {
        CLEANUP(free_ptr) char *wanted = NULL, *wanted_active = NULL, *output = NULL;
        CLEANUP(free_ptr) char *name = NULL, *available_is = NULL, *active_is = NULL;

        if (features_replace(available, node->block, &wanted) < 0 ||
                        features_replace(active, node->block, &wanted_active) < 0)
                return failure_errno(failure, -ENOMEM, "cannot read the features of %s", node->name);
        if (streq(wanted, streq(available, "(null)") ? "" : available) &&
                        streq(wanted_active, streq(active, "(null)") ? "" : active))
                return 0;
        if (asprintf(&name, "NodeName=%s", node->name) < 0)
                name = NULL;
        if (asprintf(&available_is, "AvailableFeatures=%s", wanted) < 0)
                available_is = NULL;
        if (asprintf(&active_is, "ActiveFeatures=%s", wanted_active) < 0)
                active_is = NULL;
        if (!name || !available_is || !active_is)
                return failure_errno(failure, -ENOMEM, "cannot change the features of %s", node->name);

        return run((char *[]){ (char *) SCONTROL, (char *) "update", name, available_is, active_is, NULL },
                        deadline_usec, &output, failure);
}

int features_apply(const Topology *topology, usec_t deadline_usec, Failure *failure) {
        char *const ask[] = { (char *) SINFO, (char *) "--noheader", (char *) "--Node",
                (char *) "--format=%N %f %b", NULL };
        CLEANUP(free_ptr) char *output = NULL;
        char *saved = NULL;
        int r;

        r = run(ask, deadline_usec, &output, failure);
        if (r < 0)
                return r;
        for (char *line = strtok_r(output, "\n", &saved); line; line = strtok_r(NULL, "\n", &saved)) {
                char *words = NULL;
                const char *name = strtok_r(line, " ", &words), *available = strtok_r(NULL, " ", &words);
                const char *active = strtok_r(NULL, " ", &words);
                TopologyNode *node = name && active ? topology_find(topology, name) : NULL;

                if (!node)
                        continue;
                r = update_node(node, available, active, deadline_usec, failure);
                if (r < 0)
                        return r;
        }
        return 0;
}
