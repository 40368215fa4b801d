/* SPDX-License-Identifier: MIT */
/* gpuagent-emulate: one function a verb. Each gets the arguments after its name, has said what is wrong when
 * it fails, and returns the exit code: 0 done, 1 failed, 2 wrong usage. */
#pragma once

#include <stdbool.h>

#include "agent/base/cleanup.h"
#include "agent/emulation/tray.h"

typedef struct EmulateOptions {
        const char *config;  /* --config */
        const char *devices; /* --devices */
        const char *path;    /* --path */
        uint32_t count;      /* --count; TRAY_COUNT_UNLIMITED */
        uint32_t id;         /* --id; UINT32_MAX: none given */
        uint32_t clique;     /* --clique; UINT32_MAX: none given */
        uint32_t load;       /* --load, percent */
        uint64_t memory;     /* --memory, bytes */
        uint64_t offset;     /* --offset, bytes */
        usec_t time_usec;    /* --time; USEC_INFINITY: for ever */
        bool export;         /* --export */
} EmulateOptions;

int verb_boot(char **args, const EmulateOptions *options);
int verb_status(char **args, const EmulateOptions *options);
int verb_fabric_query(char **args, const EmulateOptions *options);
int verb_partition(char **args, const EmulateOptions *options);
int verb_tenant(char **args, const EmulateOptions *options);
int verb_fail_reset(char **args, const EmulateOptions *options);
int verb_reset_lies(char **args, const EmulateOptions *options);
int verb_lost(char **args, const EmulateOptions *options);
int verb_xid(char **args, const EmulateOptions *options);
int verb_recovery(char **args, const EmulateOptions *options);
int verb_settle(char **args, const EmulateOptions *options);
int verb_link(char **args, const EmulateOptions *options);
int verb_mig(char **args, const EmulateOptions *options);
int verb_clique(char **args, const EmulateOptions *options);
int verb_field_error(char **args, const EmulateOptions *options);
int verb_phantoms(char **args, const EmulateOptions *options);
int verb_ecc(char **args, const EmulateOptions *options);
int verb_remap(char **args, const EmulateOptions *options);
int verb_hang(char **args, const EmulateOptions *options);
int verb_init_error(char **args, const EmulateOptions *options);
int verb_blank(char **args, const EmulateOptions *options);
int verb_heal(char **args, const EmulateOptions *options);

/* Says so on stderr; the exit code. */
int fail(const char *format, ...) PRINTF_FORMAT(1, 2);
int fail_usage(const char *usage);
int fail_errno(int error, const char *what);

/* Opens the tray to change it, or says why not. 0, or the exit code. */
int open_tray(Tray *ret);

/* Writes it, or says why not. The exit code. */
int save_tray(Tray *tray);

/* The GPU that `s` names, or NULL, said on stderr. */
TrayGpu* name_gpu(const Tray *tray, const char *s);

/* Changes each of the GPUs that `args` name (lists with commas, too), and saves. The exit code; on a failure
 * nothing is changed. */
int change_gpus(char **args, void (*change)(Tray *tray, TrayGpu *gpu, const void *value), const void *value);
