/* SPDX-License-Identifier: MIT */
/* --gpu-reset, with the words of driver 550 and later, or of the reference lab's tool. */
#include "agent/emulation/reset.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cli/nvidia-smi.h"

static void sleep_until(usec_t end) {
        struct timespec at = { .tv_sec = (time_t) (end / USEC_PER_SEC),
                .tv_nsec = (long) (end % USEC_PER_SEC * 1000) };

        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
                continue;
}

static size_t count(const Smi *smi, const TrayReset *results, TrayReset what) {
        size_t n = 0;

        for (uint32_t i = 0; i < smi->tray.header->n_gpus; i++)
                n += results[i] == what;
        return n;
}

static int report_lab(const Smi *smi, const TrayReset *results) {
        size_t n_failed = 0;

        for (uint32_t i = 0; i < smi->tray.header->n_gpus; i++) {
                const char *bus_id = smi->tray.gpus[i].bus_id;

                if (results[i] == TRAY_RESET_NONE)
                        continue;
                if (results[i] == TRAY_RESET_DONE) {
                        (void) printf("GPU %s was successfully reset.\n", bus_id);
                        continue;
                }
                n_failed++;
                (void) fflush(stdout);
                if (results[i] == TRAY_RESET_BUSY)
                        (void) fprintf(stderr,
                                        "Unable to reset GPU %s because it's being used by some other "
                                        "process (e.g. CUDA "
                                        "application). Please first kill all processes using this GPU.\n",
                                        bus_id);
                else
                        (void) fprintf(stderr, "Unable to reset GPU %s: Unknown Error\n", bus_id);
        }

        if (n_failed > 0)
                (void) fprintf(stderr, "Some GPUs could not be reset.\n");
        else
                (void) printf("All done.\n");
        return n_failed > 0 ? SMI_LAB_FAILED : SMI_OK;
}

/* The frame around the GPUs that were refused. */
static void print_refused(const Smi *smi, const TrayReset *results) {
        size_t n_busy = count(smi, results, TRAY_RESET_BUSY);

        (void) printf("The following GPUs could not be reset:\n");
        for (uint32_t i = 0; i < smi->tray.header->n_gpus; i++)
                if (results[i] == TRAY_RESET_BUSY || results[i] == TRAY_RESET_LOST)
                        (void) printf("  GPU %s: %s\n", smi->tray.gpus[i].bus_id,
                                        nvml_error_text(results[i] == TRAY_RESET_BUSY ? NVML_IN_USE
                                                                                      : NVML_GPU_IS_LOST));
        if (n_busy > 0)
                (void) printf("\n%zu %s currently being used by one or more other processes (e.g., Fabric "
                              "Manager, CUDA "
                              "application, graphics application such as an X server, or a monitoring "
                              "application such as "
                              "another instance of nvidia-smi). Please first kill all processes using %s "
                              "and all compute "
                              "applications running in the system.\n",
                                n_busy, n_busy == 1 ? "device is" : "devices are",
                                n_busy == 1 ? "this device" : "these devices");
}

static int report(const Smi *smi, const TrayReset *results) {
        size_t n_busy = count(smi, results, TRAY_RESET_BUSY), n_lost = count(smi, results, TRAY_RESET_LOST);
        size_t n_failed = count(smi, results, TRAY_RESET_FAILED);
        size_t n_unsupported = count(smi, results, TRAY_RESET_NOT_SUPPORTED);

        for (uint32_t i = 0; i < smi->tray.header->n_gpus; i++) {
                const char *bus_id = smi->tray.gpus[i].bus_id;

                if (results[i] == TRAY_RESET_DONE)
                        (void) printf("GPU %s was successfully reset.\n", bus_id);
                else if (results[i] == TRAY_RESET_FAILED)
                        (void) printf("GPU %s did not complete reset successfully, and may be in an "
                                      "unstable state. Please "
                                      "reboot your system.\n",
                                        bus_id);
                else if (results[i] == TRAY_RESET_NOT_SUPPORTED)
                        (void) printf("Resetting GPU %s is not supported.\n", bus_id);
        }

        if (n_busy + n_lost > 0)
                print_refused(smi, results);
        if (n_busy + n_failed > 0)
                return SMI_FAILED;
        if (n_lost > 0)
                return SMI_GPU_IS_LOST;
        if (n_unsupported > 0)
                return SMI_NOT_SUPPORTED;
        (void) printf("All done.\n");
        return SMI_OK;
}

static int report_not_permitted(const Smi *smi) {
        if (smi->dialect == DIALECT_AI_LAB) {
                (void) fprintf(stderr, "Unable to reset GPU: Insufficient Permissions\n");
                return SMI_LAB_FAILED;
        }
        for (uint32_t i = 0; i < smi->tray.header->n_gpus; i++)
                if (smi->selected[i])
                        (void) printf("Unable to reset GPU %s: Insufficient Permissions\n",
                                        smi->tray.gpus[i].bus_id);
        return SMI_NO_PERMISSION;
}

int smi_reset(Smi *smi) {
        CLEANUP(free_ptr) TrayReset *results = NULL;
        usec_t end;
        int r;

        if (geteuid() != 0)
                return report_not_permitted(smi);

        results = calloc(smi->tray.header->n_gpus + 1, sizeof(TrayReset));
        if (!results)
                return SMI_FAILED;
        r = tray_reset(smi->selected, smi->tray.header->n_gpus, results, &end);
        if (r < 0) {
                (void) printf("GPU Reset couldn't run: %s\n",
                                nvml_error_text(r == -EACCES ? NVML_NO_PERMISSION : NVML_UNKNOWN));
                return SMI_FAILED;
        }

        /* What is refused is refused at once. */
        if (count(smi, results, TRAY_RESET_DONE) + count(smi, results, TRAY_RESET_FAILED) > 0)
                sleep_until(end);
        return smi->dialect == DIALECT_AI_LAB ? report_lab(smi, results) : report(smi, results);
}
