/* SPDX-License-Identifier: MIT */
/* gpuagent-emulate boot, status, fabric-query. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/sample.h"
#include "agent/emulation/boot.h"
#include "agent/emulation/emulate.h"

int verb_boot(char **args, const EmulateOptions *options) {
        CLEANUP(emulation_config_free_ptr) EmulationConfig *config = NULL;
        CLEANUP(free_ptr) char *message = NULL;
        const char *devices = options->devices ?: getenv("GPUAGENT_EMULATION_DEVICES");
        int r;

        if (*args)
                return fail_usage("boot [--config FILE] [--devices DIR]");

        r = emulation_config_load(options->config, &config, &message);
        if (r < 0)
                return message ? fail("%s", message) : fail_errno(r, "cannot read the configuration");
        if (devices) {
                free(config->devices);
                config->devices = strdup(devices);
                if (!config->devices || strlen(devices) > 127)
                        return fail("the devices' folder has too long a name");
        }

        r = tray_boot(config, &message);
        if (r < 0)
                return message ? fail("%s", message) : fail_errno(r, "cannot make the tray");
        return 0;
}

static int open_now(Tray *ret) {
        int r;

        r = tray_open(ret);
        if (r == -ENOENT)
                return fail("there is no emulated tray; \"gpuagent-emulate boot\" makes one");
        return r < 0 ? fail_errno(r, TRAY_PATH) : 0;
}

static void print_gpu(const Tray *tray, const TrayGpu *stored, usec_t now) {
        TrayGpu gpu = *stored;
        uint32_t active = 0;
        char action[32];

        tray_gpu_at(tray->header, &gpu, now);
        for (uint32_t i = 0; i < tray->header->model.n_links; i++)
                active += gpu.links_up >> i & 1;
        recovery_action_format((int32_t) tray_gpu_recovery_action(tray, &gpu), action, sizeof action);
        (void) printf("%3u  %s  %s  %5u  partition %u  clique %u  fabric %s  links %u/%u  recovery %s%s%s%s",
                        gpu.index, gpu.uuid, gpu.bus_id, gpu.minor, gpu.partition, gpu.clique,
                        fabric_state_to_string(tray_gpu_fabric_state(tray->header, &gpu, now)), active,
                        tray->header->model.n_links, action, gpu.lost ? "  lost" : "",
                        gpu.mig ? "  mig" : "", tray_gpu_is_resetting(&gpu, now) ? "  resetting" : "");
        if (gpu.last_xid != 0)
                (void) printf("  xid %u", gpu.last_xid);
        if (gpu.fail_resets != 0)
                (void) printf("  fails resets");
        if (gpu.reset_lies)
                (void) printf("  lies about resets");
        (void) printf("  resets %u\n", gpu.reset_count);
}

int verb_status(char **args, const EmulateOptions *options) {
        CLEANUP(tray_done) Tray tray = TRAY_INIT;
        const TrayHeader *header;
        int r;

        if (*args)
                return fail_usage("status");
        r = open_now(&tray);
        if (r != 0)
                return r;

        header = tray.header;
        (void) printf("%s: %u x %s, driver %s, dialect %s, nodes in %s%s%s%s\n", header->name,
                        header->n_gpus, header->model.name, header->driver_version,
                        dialect_to_string(header->dialect), header->devices,
                        header->hang != HANG_OFF ? ", hanging" : "",
                        header->init_error != 0 ? ", failing nvmlInit" : "", header->blank ? ", blank" : "");
        for (uint32_t i = 0; i < header->n_gpus; i++)
                print_gpu(&tray, &tray.gpus[i], now_monotonic_usec());
        return 0;
}

int verb_fabric_query(char **args, const EmulateOptions *options) {
        CLEANUP(tray_done) Tray tray = TRAY_INIT;
        int r;

        if (*args)
                return fail_usage("fabric-query");
        r = open_now(&tray);
        if (r != 0)
                return r;

        for (uint32_t i = 0; i < tray.header->n_gpus; i++) {
                const TrayGpu *gpu = &tray.gpus[i];
                const TrayPartition *partition = tray_find_partition(&tray, gpu->partition);

                (void) printf("%s %u %s %u\n", gpu->uuid, gpu->partition, partition ? partition->name : "-",
                                tray_wanted_clique(&tray, gpu));
        }
        return 0;
}
