/* SPDX-License-Identifier: MIT */
/* gpuagentctl metrics: the file that the agent keeps for Prometheus. There is one writer, so what is scraped
 * by the textfile collector and what is printed here cannot differ. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "agent/base/io.h"
#include "cli/options.h"
#include "cli/print.h"

#define METRICS_PATH     "/run/gpuagent/metrics.prom"
#define METRICS_SIZE_MAX (64 << 20)

int verb_metrics(const Options *options, int argc, char **argv) {
        CLEANUP(free_ptr) char *text = NULL;
        int r;

        r = file_read(AT_FDCWD, METRICS_PATH, METRICS_SIZE_MAX, &text, NULL);
        if (r == -ENOENT)
                return fail_with(CLI_NO_AGENT,
                                "there is no " METRICS_PATH ": gpuagentd was not started in this boot; "
                                "start it with: systemctl start gpuagentd");
        if (r == -EACCES)
                return fail_with(CLI_DENIED, "cannot read " METRICS_PATH ": %s", strerror(-r));
        if (r < 0)
                return fail_with(CLI_FAILED, "cannot read " METRICS_PATH ": %s", strerror(-r));
        (void) fputs(text, stdout);
        return CLI_DONE;
}
