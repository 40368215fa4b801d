/* SPDX-License-Identifier: MIT */
#include "cli/gres.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "agent/base/text-stream.h"
#include "agent/base/text.h"

void gres_type_format(const char *name, char *ret, size_t size) {
        size_t n = 0;

        name = startswith(name, "NVIDIA ") ?: name;
        for (; *name != '\0' && n + 1 < size; name++)
                ret[n++] = isalnum((unsigned char) *name) || *name == '-'
                                ? (char) tolower((unsigned char) *name)
                                : '_';
        ret[n] = '\0';
}

static bool is_on_tray(const Tray *tray, const char *bus_id) {
        for (size_t i = 0; i < tray->n_gpus; i++)
                if (streq(tray->gpus[i].bus_id, bus_id))
                        return true;
        return false;
}

/* Links that end at no GPU of the tray end at a switch. */
static uint32_t count_links(const Tray *tray, const GpuView *gpu, const GpuView *peer) {
        uint32_t n = 0;

        for (size_t i = 0; i < gpu->n_links_known; i++) {
                const char *remote = gpu->links[i].remote;

                n += peer ? streq(remote, peer->bus_id) : remote[0] != '\0' && !is_on_tray(tray, remote);
        }
        return n;
}

static uint32_t links_between(const Tray *tray, const GpuView *a, const GpuView *b) {
        uint32_t by_switch_a = count_links(tray, a, NULL), by_switch_b = count_links(tray, b, NULL);

        return count_links(tray, a, b) + (by_switch_a < by_switch_b ? by_switch_a : by_switch_b);
}

static void print_links(const Tray *tray, const GpuView *gpu, FILE *file) {
        bool any = false;

        for (size_t i = 0; i < tray->n_gpus && !any; i++)
                any = &tray->gpus[i] != gpu && links_between(tray, gpu, &tray->gpus[i]) > 0;
        if (!any)
                return;
        for (size_t i = 0; i < tray->n_gpus; i++) {
                (void) fputs(i == 0 ? " Links=" : ",", file);
                if (&tray->gpus[i] == gpu)
                        (void) fputs("-1", file);
                else
                        (void) fprintf(file, "%u", links_between(tray, gpu, &tray->gpus[i]));
        }
}

static int check(const GpuView *gpu, Failure *failure) {
        char name[GPU_UUID_SIZE];

        gpu_view_format(gpu, name, sizeof name);
        if (streq(gpu->state, "lost") || gpu->index == UNKNOWN_U32 || gpu->minor == UNKNOWN_U32)
                return failure_set(failure, CLI_FAILED, "GPU %s does not answer the driver", name);
        if (gpu->mig)
                return failure_set(failure, CLI_FAILED,
                                "GPU %s is in MIG mode, for which slurmd needs AutoDetect=nvml", name);
        return 0;
}

int gres_format(const Tray *tray, char **ret, Failure *failure) {
        CLEANUP(text_stream_done) TextStream stream = {};
        FILE *file;
        int r;

        if (tray->n_gpus == 0)
                return failure_set(failure, CLI_FAILED, "the agent knows of no GPU: the driver is %s",
                                tray->driver_state);
        file = text_stream_open(&stream);
        if (!file)
                return failure_errno(failure, -ENOMEM, "cannot write the lines");
        for (size_t i = 0; i < tray->n_gpus; i++) {
                const GpuView *gpu = &tray->gpus[i];
                char type[64];

                r = check(gpu, failure);
                if (r < 0)
                        return r;
                gres_type_format(gpu->name, type, sizeof type);
                (void) fprintf(file, "Name=gpu%s%s File=/dev/nvidia%u", type[0] ? " Type=" : "", type,
                                gpu->minor);
                print_links(tray, gpu, file);
                (void) fputc('\n', file);
        }
        r = text_stream_take(&stream, ret);
        return r < 0 ? failure_errno(failure, r, "cannot write the lines") : 0;
}
