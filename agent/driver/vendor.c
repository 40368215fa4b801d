/* SPDX-License-Identifier: MIT */
#include "agent/driver/vendor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

/* A probe needs to open the device nodes, whoever owns them. The search looks into other users' processes,
 * and so does an emulated driver in every call: what a kernel module knows, it finds in /proc. The reset
 * asks the kernel module as an administrator (CAP_SYS_ADMIN is its question), lets nvidia-modprobe make
 * missing nodes, and goes to driver.root. Leftovers are searched for, and signalled. A check is an NVML or
 * CUDA client like any other. systemd asks no more of root than to be root; a command that quiesces other
 * monitoring may have to talk to sockets that are not root's. */
static const cap_value_t probe_capabilities[] = { CAP_DAC_OVERRIDE, CAP_SYS_PTRACE };
static const cap_value_t holders_capabilities[] = {
        CAP_DAC_OVERRIDE, CAP_SYS_PTRACE, CAP_CHECKPOINT_RESTORE /* /proc/PID/map_files */
};
static const cap_value_t leftovers_capabilities[] = { CAP_DAC_OVERRIDE, CAP_SYS_PTRACE,
        CAP_CHECKPOINT_RESTORE, CAP_KILL };
static const cap_value_t files_capabilities[] = { CAP_DAC_OVERRIDE };
static const cap_value_t reset_capabilities[] = {
        CAP_CHOWN,
        CAP_DAC_OVERRIDE,
        CAP_FOWNER,
        CAP_MKNOD,
        CAP_SYS_ADMIN,
        CAP_SYS_CHROOT,
        CAP_SYS_PTRACE,
        CAP_SYS_RAWIO,
};

static const struct {
        const cap_value_t *values;
        size_t n;
} kept[_TASK_KIND_MAX] = {
        [TASK_PROBE] = { probe_capabilities, ELEMENTSOF(probe_capabilities) },
        [TASK_RESET] = { reset_capabilities, ELEMENTSOF(reset_capabilities) },
        [TASK_HOLDERS] = { holders_capabilities, ELEMENTSOF(holders_capabilities) },
        [TASK_LEFTOVERS] = { leftovers_capabilities, ELEMENTSOF(leftovers_capabilities) },
        [TASK_QUIESCE] = { files_capabilities, ELEMENTSOF(files_capabilities) },
        [TASK_RESUME] = { files_capabilities, ELEMENTSOF(files_capabilities) },
        [TASK_CHECKS] = { probe_capabilities, ELEMENTSOF(probe_capabilities) },
        [TASK_TENANTS] = { probe_capabilities, ELEMENTSOF(probe_capabilities) },
};

static void caps_free(cap_t *caps) {
        if (*caps)
                (void) cap_free(*caps);
}

int vendor_drop_capabilities(TaskKind kind) {
        CLEANUP(caps_free) cap_t had = NULL, keep = NULL;

        /* With this, a program that root executes gets no more than what is permitted now. */
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;

        had = cap_get_proc();
        keep = cap_init();
        if (!had || !keep)
                return -errno;
        for (size_t i = 0; i < kept[kind].n; i++) {
                cap_value_t value = kept[kind].values[i];
                cap_flag_value_t permitted;

                /* An older kernel, or the unit's sandbox, may have taken it already. */
                if (cap_get_flag(had, value, CAP_PERMITTED, &permitted) < 0 || permitted == CAP_CLEAR)
                        continue;
                if (cap_set_flag(keep, CAP_PERMITTED, 1, &value, CAP_SET) < 0 ||
                                cap_set_flag(keep, CAP_EFFECTIVE, 1, &value, CAP_SET) < 0)
                        return -errno;
        }
        return cap_set_proc(keep) < 0 ? -errno : 0;
}

int vendor_open(const Task *task, Answer *answer, Nvml **ret) {
        CLEANUP(nvml_free_ptr) Nvml *nvml = NULL;
        CLEANUP(free_ptr) char *message = NULL;
        const Config *config = task->config;
        char text[64];
        NvmlReturn result;
        int r;

        r = nvml_load(config->driver.root, config->driver.library, &nvml, &message);
        if (r == -ENOENT)
                answer_fail(answer, ANSWER_MISSING, "no GPU driver: cannot load %s%s%s",
                                config->driver.library, message ? ": " : "", message ?: "");
        else if (r == -ENOSYS)
                answer_fail(answer, ANSWER_FAILED, "%s is too old or not NVML: it lacks %s",
                                config->driver.library, message ?: "a function");
        else if (r < 0)
                answer_fail(answer, ANSWER_FAILED, "cannot load %s: %s", config->driver.library,
                                strerror(-r));
        if (r < 0)
                return r;

        result = nvml->nvmlInit_v2();
        if (result == NVML_OK) {
                *ret = take_ptr(&nvml);
                return 0;
        }

        nvml_error_format(nvml, result, text, sizeof text);
        switch (result) {
        case NVML_DRIVER_NOT_LOADED:
        case NVML_LIBRARY_NOT_FOUND:
                answer_fail(answer, ANSWER_MISSING, "no GPU driver: NVML says \"%s\"", text);
                return -ENODEV;
        case NVML_LIB_RM_VERSION_MISMATCH:
                answer_fail(answer, ANSWER_FAILED,
                                "NVML says \"%s\": the driver's packages were upgraded while the old module "
                                "stayed loaded; load the module anew or reboot",
                                text);
                return -EIO;
        default:
                answer_fail(answer, ANSWER_FAILED, "NVML cannot start: \"%s\" (%d)", text, result);
                return -EIO;
        }
}

/* Asking for NVML would load the module. */
static bool module_is_absent(const Config *config) {
        char path[256];

        if (config->driver.module[0] == '\0')
                return false;
        (void) snprintf(path, sizeof path, "/sys/module/%s", config->driver.module);
        return access(path, F_OK) < 0;
}

void vendor_run(const Task *task, Answer *answer) {
        if (task_kind_needs_driver(task->kind) && module_is_absent(task->config)) {
                answer_fail(answer, ANSWER_MISSING, "no GPU driver: the kernel module %s is not loaded",
                                task->config->driver.module);
                return;
        }

        switch (task->kind) {
        case TASK_PROBE: probe_run(task, answer); return;
        case TASK_RESET: reset_run(task, answer); return;
        case TASK_HOLDERS: holders_run(task, answer); return;
        case TASK_LEFTOVERS: leftovers_run(task, answer); return;
        case TASK_QUIESCE: quiesce_run(task, answer); return;
        case TASK_RESUME: resume_run(task, answer); return;
        case TASK_CHECKS: checks_run(task, answer); return;
        case TASK_TENANTS: tenants_run(task, answer); return;
        case _TASK_KIND_MAX:
        case _TASK_KIND_INVALID: break;
        }
        answer_fail(answer, ANSWER_FAILED, "no such task");
}
