/* SPDX-License-Identifier: MIT */
#include "agent/emulation/reset.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/io.h"
#include "agent/emulation/holders.h"
#include "agent/emulation/telemetry.h"

/* The next tenant gets an empty file. Whoever kept the old one open, against the rules, keeps the old
 * content and meets nobody there. */
static int memory_clear(const TrayGpu *gpu) {
        CLEANUP(fd_close) int fd = -1;
        char path[64], fresh[64];

        (void) snprintf(path, sizeof path, TRAY_MEMORY_DIRECTORY "/%u", gpu->index);
        (void) snprintf(fresh, sizeof fresh, TRAY_MEMORY_DIRECTORY "/%u.new", gpu->index);
        fd = open(fresh, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd < 0)
                return -errno;
        if (fchmod(fd, 0666) < 0 || rename(fresh, path) < 0)
                return -errno;
        return 0;
}

static void fold_link_bytes(const ClientRecord *record, void *userdata) {
        Tray *tray = userdata;

        tray->gpus[record->gpu].link_bytes += telemetry_link_bytes(record);
}

/* A node of major 195 cannot be opened without the vendor's module: who uses such a GPU is known by its
 * registration. */
static int add_registered(const Tray *tray, Holders *holders) {
        CLEANUP(clients_done) Clients clients = {};
        int r;

        r = clients_read(tray->header, now_monotonic_usec(), &clients);
        for (size_t i = 0; r >= 0 && i < clients.n; i++)
                if (clients.items[i].alive && clients.items[i].record.pid != getpid())
                        r = holders_add(holders, clients.items[i].record.pid, clients.items[i].record.gpu,
                                        false);
        return r;
}

static TrayReset gpu_start_reset(const Tray *tray, TrayGpu *gpu, const Holders *holders, usec_t now) {
        ResetOutcome outcome = gpu->reset_lies ? RESET_OUTCOME_LIES : RESET_OUTCOME_DONE;

        if (gpu->lost)
                return TRAY_RESET_LOST;
        if (gpu->mig)
                return TRAY_RESET_NOT_SUPPORTED;
        if (tray_gpu_is_resetting(gpu, now) || holders_count(holders, gpu->index, true) > 0)
                return TRAY_RESET_BUSY;

        if (gpu->fail_resets > 0) {
                outcome = RESET_OUTCOME_FAILED;
                if (gpu->fail_resets != TRAY_COUNT_UNLIMITED)
                        gpu->fail_resets--;
        } else if (memory_clear(gpu) < 0) {
                outcome = RESET_OUTCOME_FAILED;
        }

        gpu->reset_outcome = outcome;
        gpu->reset_partition = gpu->partition;
        gpu->reset_clique = tray_wanted_clique(tray, gpu);
        gpu->reset_end_usec = usec_add(now, tray->header->reset_usec);
        return outcome == RESET_OUTCOME_FAILED ? TRAY_RESET_FAILED : TRAY_RESET_DONE;
}

int tray_reset(const bool *wanted, uint32_t n, TrayReset *ret_results, usec_t *ret_end_usec) {
        CLEANUP(tray_done) Tray tray = TRAY_INIT;
        CLEANUP(holders_done) Holders holders = {};
        usec_t now;
        int r;

        r = tray_edit(&tray);
        if (r >= 0 && tray.header->n_gpus != n)
                r = -ESTALE;
        if (r >= 0)
                r = holders_find(&tray, wanted, &holders);
        if (r >= 0)
                r = add_registered(&tray, &holders);
        if (r < 0)
                return r;

        now = now_monotonic_usec();
        for (uint32_t i = 0; i < tray.header->n_gpus; i++)
                ret_results[i] = wanted[i] ? gpu_start_reset(&tray, &tray.gpus[i], &holders, now)
                                           : TRAY_RESET_NONE;

        clients_tidy(tray.header, now, fold_link_bytes, &tray);
        r = tray_commit(&tray);
        if (r < 0)
                return r;
        *ret_end_usec = usec_add(now, tray.header->reset_usec);
        return 0;
}
