/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "agent/base/io.h"
#include "agent/base/text-stream.h"
#include "agent/base/text.h"
#include "agent/driver/device.h"
#include "agent/driver/program.h"
#include "agent/driver/smi-text.h"
#include "agent/driver/vendor.h"

#define NUMA_STATUS_MAX 4096

/* The GPUs of a reset: where each is, and what became of it. */
typedef struct Reset {
        const Task *task;
        GpuEntry *gpus;
        GpuReset *resets;
        size_t n;
        GpuSample *looks; /* at those that were reset, after it */
        size_t n_looks;
} Reset;

static void reset_done(Reset *reset) {
        free(reset->gpus);
        free(reset->resets);
        free(reset->looks);
}

static void reset_set(Reset *reset, size_t i, ResetVerdict verdict, const char *format, ...)
                PRINTF_FORMAT(4, 5);

static void reset_set(Reset *reset, size_t i, ResetVerdict verdict, const char *format, ...) {
        char detail[512];
        va_list arguments;

        va_start(arguments, format);
        (void) vsnprintf(detail, sizeof detail, format, arguments);
        va_end(arguments);
        reset->resets[i].verdict = (uint32_t) verdict;
        text_escape_words(detail, reset->resets[i].detail, sizeof reset->resets[i].detail);
}

/* By a probe of all the tray, for GPUs that were not seen before. */
static int reset_look_up(Reset *reset, Answer *answer) {
        Task task = *reset->task;
        Answer probe = { .kind = TASK_PROBE };

        task.kind = TASK_PROBE;
        probe_run(&task, &probe);
        if (probe.error != ANSWER_OK) {
                answer_fail(answer, probe.error, "%s", probe.message);
                return -EIO;
        }
        for (size_t i = 0; i < reset->n; i++) {
                const GpuSample *sample = &probe.samples[i]; /* in the order that was asked for */

                memcpy(reset->gpus[i].bus_id, sample->bus_id, sizeof reset->gpus[i].bus_id);
                reset->gpus[i].index = sample->index;
                reset->gpus[i].mig = sample->mig;
        }
        answer_done(&probe);
        return 0;
}

/* 0 · -errno; for what is not the memory the answer says why. */
static int reset_init(Reset *reset, Answer *answer) {
        char *const *uuids = reset->task->uuids;
        bool known = true;
        int r;

        reset->n = strv_length(uuids);
        reset->gpus = calloc(reset->n + 1, sizeof *reset->gpus);
        reset->resets = calloc(reset->n + 1, sizeof *reset->resets);
        reset->looks = calloc(reset->n + 1, sizeof *reset->looks);
        if (!reset->gpus || !reset->resets || !reset->looks)
                return -ENOMEM;

        for (size_t i = 0; i < reset->n; i++) {
                const GpuEntry *entry = table_find(reset->task->table, uuids[i]);

                if (entry)
                        reset->gpus[i] = *entry;
                known = known && entry && entry->bus_id[0];
                (void) snprintf(reset->gpus[i].uuid, sizeof reset->gpus[i].uuid, "%s", uuids[i]);
                (void) snprintf(reset->resets[i].uuid, sizeof reset->resets[i].uuid, "%s", uuids[i]);
                reset->resets[i].verdict = _RESET_VERDICT_MAX; /* nothing has become of it yet */
        }
        if (!known) {
                r = reset_look_up(reset, answer);
                if (r < 0)
                        return r;
        }

        for (size_t i = 0; i < reset->n; i++)
                if (reset->gpus[i].mig)
                        reset_set(reset, i, RESET_NOT_SUPPORTED, "the GPU is in MIG mode");
                else if (reset->gpus[i].bus_id[0] == '\0')
                        reset_set(reset, i, RESET_FAILED, "the GPU does not say its PCI bus id");
        return 0;
}

static bool reset_is_open(const Reset *reset, size_t i) {
        return reset->resets[i].verdict == _RESET_VERDICT_MAX;
}

/* The list for -i, of the GPUs that nothing speaks against. NULL if there is none. 0 · -ENOMEM. */
static int reset_list(const Reset *reset, char **ret) {
        CLEANUP(text_stream_done) TextStream stream = {};
        FILE *file = text_stream_open(&stream);
        bool any = false;

        if (!file)
                return -ENOMEM;
        for (size_t i = 0; i < reset->n; i++) {
                const GpuEntry *gpu = &reset->gpus[i];

                if (!reset_is_open(reset, i))
                        continue;
                if (any)
                        (void) fputc(',', file);
                any = true;
                switch ((ResetId) reset->task->config->driver.reset_id) {
                case RESET_ID_BUS_ID: (void) fputs(gpu->bus_id, file); break;
                case RESET_ID_UUID: (void) fputs(gpu->uuid, file); break;
                case RESET_ID_INDEX: (void) fprintf(file, "%u", gpu->index); break;
                }
        }
        if (any)
                return text_stream_take(&stream, ret);

        *ret = NULL;
        return 0;
}

/* Where the GPU's memory is a NUMA node (GB200), the driver takes it offline for the reset. That fails where
 * the kernel has pages of its own in it, and is told nowhere else: an earlier tenant's data may be there
 * still. The kernel's spelling of the address has a domain of four digits. */
static bool memory_offline_failed(const char *bus_id) {
        CLEANUP(free_ptr) char *text = NULL;
        unsigned domain, bus, device, function;
        char path[96];

        if (sscanf(bus_id, "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4)
                return false;
        (void) snprintf(path, sizeof path, "/proc/driver/nvidia/gpus/%04x:%02x:%02x.%x/numa_status", domain,
                        bus, device, function);
        if (file_read(AT_FDCWD, path, NUMA_STATUS_MAX, &text, NULL) < 0)
                return false; /* another driver, or memory that is no node */
        return strstr(text, "offline_failed") != NULL;
}

/* The verdict of a GPU that nvidia-smi says it has reset: it must answer, and need nothing graver than
 * another reset. That may be for a partition that came meanwhile, or be refreshed late: who looks next
 * decides. */
static void reset_verify(Reset *reset, const Nvml *nvml, size_t i) {
        const GpuEntry *gpu = &reset->gpus[i];
        char uuid[NVML_UUID_SIZE + 1] = "", seen[GPU_UUID_SIZE], text[64];
        int32_t action = RECOVERY_UNKNOWN;
        NvmlDevice device = NULL;
        NvmlReturn result;

        result = nvml->nvmlDeviceGetHandleByPciBusId_v2(gpu->bus_id, &device);
        if (result == NVML_OK)
                result = nvml->nvmlDeviceGetUUID(device, uuid, NVML_UUID_SIZE);
        if (result == NVML_OK && (gpu_uuid_parse(uuid, seen) < 0 || !streq(seen, gpu->uuid))) {
                reset_set(reset, i, RESET_FAILED, "after the reset, another GPU answers at %s", gpu->bus_id);
                return;
        }
        if (result == NVML_OK)
                result = device_read_recovery(nvml, device, &action);

        /* Drivers before 570 have no recovery action. */
        if (result != NVML_OK && result != NVML_NOT_SUPPORTED && result != NVML_INVALID_ARGUMENT &&
                        result != NVML_FUNCTION_NOT_FOUND) {
                nvml_error_format(nvml, result, text, sizeof text);
                reset_set(reset, i, RESET_FAILED, "the GPU does not answer after the reset: %s", text);
        } else if (action != RECOVERY_NONE && action != RECOVERY_UNKNOWN && action != RECOVERY_GPU_RESET) {
                recovery_action_format(action, text, sizeof text);
                reset_set(reset, i, RESET_FAILED, "recovery action %s is pending after the reset", text);
        } else if (memory_offline_failed(gpu->bus_id))
                reset_set(reset, i, RESET_FAILED,
                                "its memory could not be taken offline (NUMA status offline_failed); reboot "
                                "the tray");
        else
                reset->resets[i].verdict = RESET_DONE;
}

/* While NVML is open: what a probe would see. One that sees nothing is left to a probe. */
static void reset_look(Reset *reset, const Nvml *nvml, size_t i) {
        GpuSample *look = &reset->looks[reset->n_looks];

        if (probe_gpu(nvml, &reset->gpus[i], look) >= 0 && look->error[0] == '\0')
                reset->n_looks++;
}

/* What nvidia-smi's end means for each GPU that it was asked to reset. */
static void reset_judge(Reset *reset, const ProgramResult *result) {
        CLEANUP(nvml_free_ptr) Nvml *nvml = NULL;
        bool clean_exit = WIFEXITED(result->status) && WEXITSTATUS(result->status) == 0;
        Answer trouble = { .kind = TASK_RESET };
        int r;

        /* All that is left is to look, and a site's program needs no more for that than in a probe. */
        r = vendor_drop_capabilities(TASK_PROBE);
        if (r < 0)
                answer_fail(&trouble, ANSWER_FAILED, "cannot drop capabilities: %s", strerror(-r));
        else
                r = vendor_open(reset->task, &trouble, &nvml);
        for (size_t i = 0; i < reset->n; i++) {
                const GpuEntry *gpu = &reset->gpus[i];
                GpuReset *one = &reset->resets[i];
                ResetVerdict verdict;

                if (!reset_is_open(reset, i))
                        continue;
                verdict = clean_exit ? RESET_DONE : smi_text_verdict(result->output, gpu->bus_id, gpu->uuid);
                smi_text_detail(result->output, gpu->bus_id, gpu->uuid, one->detail, sizeof one->detail);
                if (verdict != RESET_DONE)
                        one->verdict = (uint32_t) verdict;
                else if (r < 0)
                        reset_set(reset, i, RESET_FAILED, "after the reset: %s", trouble.message);
                else
                        reset_verify(reset, nvml, i);
                if (one->verdict == RESET_DONE)
                        reset_look(reset, nvml, i);

                if (one->detail[0] == '\0' && !clean_exit)
                        reset_set(reset, i, verdict, "nvidia-smi ended with %s %d and no word",
                                        WIFEXITED(result->status) ? "status" : "signal",
                                        WIFEXITED(result->status) ? WEXITSTATUS(result->status)
                                                                  : WTERMSIG(result->status));
        }
}

static void reset_fail_open(Reset *reset, const char *what, int error) {
        for (size_t i = 0; i < reset->n; i++)
                if (reset_is_open(reset, i))
                        reset_set(reset, i, RESET_FAILED, "cannot execute %s: %s", what, strerror(-error));
}

static int reset_execute(Reset *reset) {
        CLEANUP(free_ptr) char *list = NULL, *output = NULL;
        const Config *config = reset->task->config;
        char option[] = "--gpu-reset", ids[] = "-i";
        ProgramResult result;
        Program program = {};
        int r;

        r = reset_list(reset, &list);
        if (r < 0 || !list)
                return r;

        program.argv = (char *[]){ config->driver.smi, option, ids, list, NULL };
        program.root = config->driver.root;
        program.deadline_usec = USEC_INFINITY; /* at ours, the service kills both */
        r = program_run(reset->task, &program, &result);
        if (r < 0) {
                reset_fail_open(reset, config->driver.smi, r);
                return 0;
        }

        output = result.output;
        reset_judge(reset, &result);
        return 0;
}

/* The rest of the look, as a probe has it, and in no more time. */
static void reset_complete_looks(Reset *reset, Answer *answer) {
        Answer look = { .kind = TASK_PROBE, .samples = reset->looks, .n = reset->n_looks };
        usec_t deadline_usec =
                        usec_add(now_monotonic_usec(), reset->task->config->driver.probe_timeout_usec);
        Task task = *reset->task;

        if (task.deadline_usec > deadline_usec)
                task.deadline_usec = deadline_usec;
        probe_complete(&task, &look);
        answer->query_hangs = look.query_hangs;
        memcpy(answer->warning, look.warning, sizeof answer->warning);
}

void reset_run(const Task *task, Answer *answer) {
        CLEANUP(reset_done) Reset reset = { .task = task };
        int r;

        r = reset_init(&reset, answer);
        if (r >= 0)
                r = reset_execute(&reset);
        if (r < 0) {
                if (answer->error == ANSWER_OK)
                        answer_fail(answer, ANSWER_FAILED, "cannot reset: %s", strerror(-r));
                return;
        }

        reset_complete_looks(&reset, answer);
        answer->looks = take_ptr(&reset.looks);
        answer->n_looks = reset.n_looks;
        answer->resets = take_ptr(&reset.resets);
        answer->n = answer->n_asked = reset.n;
}
