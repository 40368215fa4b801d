/* SPDX-License-Identifier: MIT */
/* gpuagent-emulate's faults of the whole driver, and heal. */
#include <stdio.h>
#include <string.h>

#include "agent/base/text.h"
#include "agent/driver/nvml-abi.h"
#include "agent/emulation/emulate.h"

int verb_hang(char **args, const EmulateOptions *options) {
        CLEANUP(tray_done) Tray tray = TRAY_INIT;
        bool on;
        int r;

        if (strv_length(args) != 1 || parse_boolean(args[0], &on) < 0)
                return fail_usage("hang on|off [--path FILE]");
        if (options->path && strlen(options->path) >= sizeof tray.header->hang_path)
                return fail("the file to hang on has too long a name");
        r = open_tray(&tray);
        if (r != 0)
                return r;

        tray.header->hang = HANG_OFF;
        if (on)
                tray.header->hang = options->path ? HANG_FILE : HANG_SLEEP;
        (void) snprintf(tray.header->hang_path, sizeof tray.header->hang_path, "%s", options->path ?: "");
        return save_tray(&tray);
}

int verb_init_error(char **args, const EmulateOptions *options) {
        CLEANUP(tray_done) Tray tray = TRAY_INIT;
        uint32_t code = NVML_OK;
        int r;

        if (strv_length(args) != 1 || (!streq(args[0], "off") && parse_u32(args[0], 999, &code) < 0))
                return fail_usage("init-error CODE|off [--count N]");
        r = open_tray(&tray);
        if (r != 0)
                return r;

        tray.header->init_error = options->count == 0 ? NVML_OK : (int32_t) code;
        tray.header->init_error_left = options->count;
        return save_tray(&tray);
}

int verb_blank(char **args, const EmulateOptions *options) {
        CLEANUP(tray_done) Tray tray = TRAY_INIT;
        bool on;
        int r;

        if (strv_length(args) != 1 || parse_boolean(args[0], &on) < 0)
                return fail_usage("blank on|off");
        r = open_tray(&tray);
        if (r != 0)
                return r;
        tray.header->blank = on;
        return save_tray(&tray);
}

static void gpu_heal(Tray *tray, TrayGpu *gpu, const void *value) {
        gpu->settle_usec = TRAY_SETTLE_DEFAULT;
        gpu->settled_usec = 0;
        gpu->links_up = UINT64_MAX;
        gpu->recovery_action = NVML_RECOVERY_NONE;
        gpu->last_xid = 0;
        gpu->fail_resets = 0;
        gpu->reset_lies = 0;
        gpu->lost = 0;
        gpu->mig = gpu->mig_pending = 0;
        gpu->phantoms = 0;
        gpu->field_error = NVML_OK;
        gpu->ecc_corrected = gpu->ecc_uncorrected = 0;
        gpu->row_remap_pending = 0;
}

int verb_heal(char **args, const EmulateOptions *options) {
        CLEANUP(tray_done) Tray tray = TRAY_INIT;
        int r;

        if (*args)
                return change_gpus(args, gpu_heal, NULL);

        r = open_tray(&tray);
        if (r != 0)
                return r;
        tray.header->hang = HANG_OFF;
        tray.header->init_error = NVML_OK;
        tray.header->blank = 0;
        for (uint32_t i = 0; i < tray.header->n_gpus; i++)
                gpu_heal(&tray, &tray.gpus[i], NULL);
        return save_tray(&tray);
}
