/* SPDX-License-Identifier: MIT */
/* gpuagent-emulate's faults. */
#include <fcntl.h>
#include <stdio.h>

#include "agent/base/io.h"
#include "agent/base/sample.h"
#include "agent/base/text.h"
#include "agent/driver/nvml-abi.h"
#include "agent/emulation/emulate.h"

/* Cuts the last argument off. NULL if there are fewer than two. */
static char* take_last(char **args) {
        size_t n = strv_length(args);
        char *last;

        if (n < 2)
                return NULL;
        last = args[n - 1];
        args[n - 1] = NULL;
        return last;
}

static void set_fail_resets(Tray *tray, TrayGpu *gpu, const void *value) {
        gpu->fail_resets = *(const uint32_t *) value;
}

int verb_fail_reset(char **args, const EmulateOptions *options) {
        if (!*args)
                return fail_usage("fail-reset GPU… [--count N]");
        return change_gpus(args, set_fail_resets, &options->count);
}

static void set_reset_lies(Tray *tray, TrayGpu *gpu, const void *value) {
        gpu->reset_lies = *(const bool *) value;
}

int verb_reset_lies(char **args, const EmulateOptions *options) {
        char *last = strv_length(args) > 1 ? take_last(args) : NULL;
        bool on = true;

        if (!*args || (last && parse_boolean(last, &on) < 0))
                return fail_usage("reset-lies GPU… [on|off]");
        return change_gpus(args, set_reset_lies, &on);
}

static void set_lost(Tray *tray, TrayGpu *gpu, const void *value) {
        gpu->lost = 1;
        gpu->recovery_action = NVML_RECOVERY_NODE_REBOOT;
}

int verb_lost(char **args, const EmulateOptions *options) {
        if (!*args)
                return fail_usage("lost GPU…");
        return change_gpus(args, set_lost, NULL);
}

/* After the vendor's catalogue of Xids: those that ask for a reset of the GPU, and the one that asks for a
 * reboot. */
static void set_xid(Tray *tray, TrayGpu *gpu, const void *value) {
        static const uint32_t need_reset[] = { 46, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156,
                158 };
        uint32_t xid = *(const uint32_t *) value;

        gpu->last_xid = xid;
        if (xid == 79)
                set_lost(tray, gpu, NULL);
        for (size_t i = 0; i < ELEMENTSOF(need_reset); i++)
                if (need_reset[i] == xid)
                        gpu->recovery_action = NVML_RECOVERY_GPU_RESET;
}

/* The boot's id as the journal has it: 32 digits. "" if it cannot be read. */
static void read_boot_id(char ret[static 40]) {
        CLEANUP(free_ptr) char *text = NULL;
        size_t n = 0;

        ret[0] = '\0';
        if (file_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 64, &text, NULL) < 0)
                return;
        for (const char *p = text; *p != '\0' && n < 32; p++)
                if (*p != '-')
                        ret[n++] = *p;
        ret[n] = '\0';
}

/* The kernel's line as an entry that systemd-journal-remote takes: what it imports counts as the kernel's
 * word, and nothing that a user can log does. */
static void export_xid(const TrayGpu *gpu, uint32_t xid) {
        char boot_id[40];

        read_boot_id(boot_id);
        (void) printf("__REALTIME_TIMESTAMP=%llu\n__MONOTONIC_TIMESTAMP=%llu\n_BOOT_ID=%s\n"
                      "_TRANSPORT=kernel\n"
                      "PRIORITY=3\nSYSLOG_FACILITY=0\nSYSLOG_IDENTIFIER=kernel\n"
                      "MESSAGE=NVRM: Xid (PCI:%.10s): %u, pid='<unknown>', name=<unknown>%s\n\n",
                        (unsigned long long) now_realtime_usec(), (unsigned long long) now_monotonic_usec(),
                        boot_id, gpu->bus_id + 4, xid, xid == 79 ? ", GPU has fallen off the bus." : "");
}

int verb_xid(char **args, const EmulateOptions *options) {
        CLEANUP(tray_done) Tray tray = TRAY_INIT;
        TrayGpu *gpu;
        uint32_t xid;
        int r;

        if (strv_length(args) != 2 || parse_u32(args[1], 9999, &xid) < 0)
                return fail_usage("xid GPU NUMBER [--export]");
        r = open_tray(&tray);
        if (r != 0)
                return r;
        gpu = name_gpu(&tray, args[0]);
        if (!gpu)
                return 1;

        set_xid(&tray, gpu, &xid);
        r = save_tray(&tray);
        if (r == 0 && options->export)
                export_xid(gpu, xid);
        return r;
}

static void set_recovery(Tray *tray, TrayGpu *gpu, const void *value) {
        gpu->recovery_action = *(const uint32_t *) value;
}

int verb_recovery(char **args, const EmulateOptions *options) {
        const char *last = take_last(args);
        uint32_t action = UINT32_MAX;

        if (!last)
                return fail_usage("recovery GPU… ACTION");
        if (parse_u32(last, UINT32_MAX - 1, &action) < 0)
                for (int32_t i = 0; i < _RECOVERY_ACTION_MAX; i++) {
                        char name[32];

                        recovery_action_format(i, name, sizeof name);
                        if (streq(last, name))
                                action = (uint32_t) i;
                }
        if (action == UINT32_MAX)
                return fail("there is no recovery action \"%s\"", last);
        return change_gpus(args, set_recovery, &action);
}

static void set_settle(Tray *tray, TrayGpu *gpu, const void *value) {
        gpu->settle_usec = *(const usec_t *) value;
}

int verb_settle(char **args, const EmulateOptions *options) {
        const char *last = take_last(args);
        usec_t usec = TRAY_SETTLE_DEFAULT;

        if (!last || (!streq(last, "never") && !streq(last, "default") && parse_duration(last, &usec) < 0))
                return fail_usage("settle GPU… TIME|never|default");
        if (streq(last, "never"))
                usec = USEC_INFINITY;
        return change_gpus(args, set_settle, &usec);
}

typedef struct LinkChange {
        uint32_t link;
        bool up;
} LinkChange;

static void set_link(Tray *tray, TrayGpu *gpu, const void *value) {
        const LinkChange *change = value;
        uint64_t bit = UINT64_C(1) << change->link;

        gpu->links_up = change->up ? gpu->links_up | bit : gpu->links_up & ~bit;
}

int verb_link(char **args, const EmulateOptions *options) {
        LinkChange change = {};

        if (strv_length(args) != 3 || parse_u32(args[1], NVML_LINKS_MAX - 1, &change.link) < 0 ||
                        (!streq(args[2], "up") && !streq(args[2], "down")))
                return fail_usage("link GPU LINK up|down");
        change.up = streq(args[2], "up");
        args[1] = NULL;
        return change_gpus(args, set_link, &change);
}

static void set_mig(Tray *tray, TrayGpu *gpu, const void *value) {
        gpu->mig = gpu->mig_pending = *(const bool *) value;
}

int verb_mig(char **args, const EmulateOptions *options) {
        const char *last = take_last(args);
        bool on;

        if (!last || parse_boolean(last, &on) < 0)
                return fail_usage("mig GPU… on|off");
        return change_gpus(args, set_mig, &on);
}

/* A live update from the fabric manager: partition and clique as if the reset had been. */
static void set_clique(Tray *tray, TrayGpu *gpu, const void *value) {
        gpu->clique = *(const uint32_t *) value;
        gpu->applied_partition = gpu->partition;
}

int verb_clique(char **args, const EmulateOptions *options) {
        const char *last = take_last(args);
        uint32_t clique;

        if (!last || parse_u32(last, UINT32_MAX - 1, &clique) < 0)
                return fail_usage("clique GPU… CLIQUE");
        return change_gpus(args, set_clique, &clique);
}

typedef struct FieldError {
        uint32_t field;
        uint32_t error;
} FieldError;

static void set_field_error(Tray *tray, TrayGpu *gpu, const void *value) {
        const FieldError *error = value;

        gpu->field_error_id = error->field;
        gpu->field_error = (int32_t) error->error;
}

int verb_field_error(char **args, const EmulateOptions *options) {
        FieldError error = {};

        if (strv_length(args) != 3 || parse_u32(args[1], 1000, &error.field) < 0 ||
                        (!streq(args[2], "off") && parse_u32(args[2], 999, &error.error) < 0))
                return fail_usage("field-error GPU FIELD CODE|off");
        args[1] = NULL;
        return change_gpus(args, set_field_error, &error);
}

static void set_phantoms(Tray *tray, TrayGpu *gpu, const void *value) {
        gpu->phantoms = *(const uint32_t *) value;
}

int verb_phantoms(char **args, const EmulateOptions *options) {
        uint32_t n;

        if (strv_length(args) != 2 || parse_u32(args[1], 100000, &n) < 0)
                return fail_usage("phantoms GPU N");
        args[1] = NULL;
        return change_gpus(args, set_phantoms, &n);
}

static void add_corrected(Tray *tray, TrayGpu *gpu, const void *value) {
        gpu->ecc_corrected += *(const uint32_t *) value;
        gpu->ecc_corrected_aggregate += *(const uint32_t *) value;
}

static void add_uncorrected(Tray *tray, TrayGpu *gpu, const void *value) {
        gpu->ecc_uncorrected += *(const uint32_t *) value;
        gpu->ecc_uncorrected_aggregate += *(const uint32_t *) value;
}

int verb_ecc(char **args, const EmulateOptions *options) {
        bool corrected;
        uint32_t n;

        if (strv_length(args) != 3 || parse_u32(args[2], UINT32_MAX, &n) < 0 ||
                        (!streq(args[1], "corrected") && !streq(args[1], "uncorrected")))
                return fail_usage("ecc GPU corrected|uncorrected N");
        corrected = streq(args[1], "corrected");
        args[1] = NULL;
        return change_gpus(args, corrected ? add_corrected : add_uncorrected, &n);
}

static void set_remap(Tray *tray, TrayGpu *gpu, const void *value) {
        gpu->row_remap_pending = 1;
        gpu->recovery_action = NVML_RECOVERY_DRAIN_AND_RESET;
}

int verb_remap(char **args, const EmulateOptions *options) {
        if (!*args)
                return fail_usage("remap GPU…");
        return change_gpus(args, set_remap, NULL);
}
