/* SPDX-License-Identifier: MIT */
#include "cli/nvidia-smi.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

static int run_mode(Smi *smi, const SmiOptions *options) {
        switch (options->mode) {
        case SMI_MODE_LIST: return smi_list(smi);
        case SMI_MODE_LOG: return options->xml ? smi_log_xml(smi) : smi_log_text(smi, options);
        case SMI_MODE_QUERY_GPU: return smi_query_gpu(smi, options);
        case SMI_MODE_QUERY_APPS: return smi_query_apps(smi, options);
        case SMI_MODE_RESET: return smi_reset(smi);
        case SMI_MODE_PERSISTENCE: return smi_persistence(smi, options->persistence);
        case SMI_MODE_TOPOLOGY: return smi_topology(smi);
        case SMI_MODE_NVLINK: return smi_nvlink(smi);
        case SMI_MODE_TABLE:
        case SMI_MODE_HELP:
        case SMI_MODE_HELP_QUERY_GPU:
        case SMI_MODE_HELP_QUERY_APPS:
        case SMI_MODE_VERSION: break;
        }
        return smi_table(smi);
}

static int version(const Smi *smi) {
        const char *driver = smi->tray.header->driver_version;
        const char *end = strrchr(driver, '.');
        unsigned cuda = driver_cuda_version(driver);

        /* NVML's version is the driver's without its last part. */
        (void) printf("NVIDIA-SMI version  : %s\nNVML version        : %.*s\nDRIVER version      : %s\n"
                      "CUDA Version        : %u.%u\n",
                        driver, end ? (int) (end - driver) : (int) strlen(driver), driver, driver,
                        cuda / 1000, cuda % 1000 / 10);
        return SMI_OK;
}

static int run_once(const SmiOptions *options, FILE *out, bool header) {
        CLEANUP(smi_done) Smi smi = { .tray = TRAY_INIT };
        SmiOptions now = *options;
        int r;

        r = smi_open(options, &smi);
        if (r != SMI_OK)
                return r;
        smi.out = out;
        now.header = options->header && header;
        if (options->mode == SMI_MODE_VERSION)
                return version(&smi);
        r = run_mode(&smi, &now);
        if (fflush(out) != 0)
                return SMI_FAILED;
        return r;
}

int main(int argc, char **argv) {
        CLEANUP(file_close) FILE *file = NULL;
        SmiOptions options;
        int r;

        smi_options_parse(argc, argv, &options);
        if (options.problem) {
                (void) printf("%s\n", options.problem);
                return SMI_INVALID;
        }
        if (options.mode == SMI_MODE_HELP)
                return smi_help();
        if (options.mode == SMI_MODE_HELP_QUERY_GPU)
                return smi_help_query_gpu();
        if (options.mode == SMI_MODE_HELP_QUERY_APPS)
                return smi_help_query_apps();

        if (options.filename) {
                file = fopen(options.filename, "we");
                if (!file) {
                        (void) printf("Failed to open file %s: %s\n", options.filename, strerror(errno));
                        return SMI_FAILED;
                }
        }

        for (bool first = true;; first = false) {
                r = run_once(&options, file ?: stdout, first);
                if (options.loop_usec == 0 || r != SMI_OK)
                        return r;
                (void) poll(NULL, 0, (int) (options.loop_usec / USEC_PER_MSEC));
        }
}
