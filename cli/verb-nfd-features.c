/* SPDX-License-Identifier: MIT */
/* gpuagentctl nfd-features: the tray as node-feature-discovery's local source reads it, so that GPUs can
 * be chosen by label. No tenants are named: labels are for the whole cluster. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/base/io.h"
#include "agent/base/text-stream.h"
#include "agent/base/text.h"
#include "cli/gpu.h"

/* Without a fresh file the labels go: an agent that is down must not leave "clean" behind. Some times the
 * minute of gpuagent-nfd.timer. */
#define EXPIRY_USEC (5 * 60 * USEC_PER_SEC)

/* NFD's own, which every version takes; names without any are not for all. */
#define PREFIX "feature.node.kubernetes.io/gpuagent."

static size_t count_state(const Tray *tray, const char *state) {
        size_t n = 0;

        for (size_t i = 0; i < tray->n_gpus; i++)
                if (streq(tray->gpus[i].state, state))
                        n++;
        return n;
}

/* The GPU whose clique is that of all GPUs; NULL if they have several, or none. */
static const GpuView* common_clique(const Tray *tray) {
        const GpuView *first = tray->n_gpus > 0 ? &tray->gpus[0] : NULL;

        for (size_t i = 0; i < tray->n_gpus; i++) {
                const GpuView *gpu = &tray->gpus[i];

                if (gpu->clique_id == UNKNOWN_U32 || !gpu->cluster_uuid[0] ||
                                gpu->clique_id != first->clique_id ||
                                !streq(gpu->cluster_uuid, first->cluster_uuid))
                        return NULL;
        }
        return first;
}

/* The format is of NFD's "local" source (docs/usage/customization-guide.md, 0.14 and later). */
static void write_features(FILE *file, const Tray *tray) {
        time_t expiry = (time_t) ((now_realtime_usec() + EXPIRY_USEC) / USEC_PER_SEC);
        const GpuView *clique = common_clique(tray);
        char text[32] = "";
        struct tm tm;

        if (gmtime_r(&expiry, &tm))
                (void) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
        print_line(file, "# +expiry-time=%s", text);
        print_line(file, PREFIX "gpus=%zu", tray->n_gpus);
        print_line(file, PREFIX "clean=%zu", count_state(tray, "clean"));
        print_line(file, PREFIX "quarantined=%zu", count_state(tray, "quarantined"));
        if (clique) {
                print_line(file, PREFIX "clique=%u", clique->clique_id);
                print_line(file, PREFIX "cluster-uuid=%s", clique->cluster_uuid);
        }
}

int verb_nfd_features(const Options *options, int argc, char **argv) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(client_free_ptr) Client *client = NULL;
        CLEANUP(text_stream_done) TextStream stream = {};
        CLEANUP(tray_done) Tray tray = {};
        FILE *file;
        int r;

        r = client_open(options, &client, &failure);
        if (r >= 0)
                r = tray_read(client, &tray, &failure);
        if (r < 0)
                return failure_report(&failure);
        if (argc < 2) {
                write_features(stdout, &tray);
                return CLI_DONE;
        }

        file = text_stream_open(&stream);
        if (!file)
                return fail_with(CLI_FAILED, "cannot write the features: %s", strerror(ENOMEM));
        write_features(file, &tray);
        r = text_stream_end(&stream);
        if (r >= 0)
                r = file_write_atomic(argv[1], stream.text, stream.size, 0644);
        return r < 0 ? fail_with(CLI_FAILED, "cannot write %s: %s", argv[1], strerror(-r)) : CLI_DONE;
}
