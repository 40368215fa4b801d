/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/text.h"
#include "agent/driver/checks.h"
#include "agent/driver/device.h"
#include "agent/driver/fabric-query.h"
#include "agent/driver/vendor.h"

/* The samples of a probe while it is made. */
typedef struct Probe {
        const Task *task;
        const Nvml *nvml;
        GpuSample *samples;
        size_t n;
} Probe;

static void sample_from_entry(GpuSample *sample, const GpuEntry *entry) {
        memcpy(sample->uuid, entry->uuid, sizeof sample->uuid);
        memcpy(sample->bus_id, entry->bus_id, sizeof sample->bus_id);
        sample->index = entry->index;
        sample->minor = entry->minor;
}

int probe_gpu(const Nvml *nvml, const GpuEntry *entry, GpuSample *sample) {
        NvmlDevice device = NULL;
        NvmlReturn result;

        gpu_sample_init(sample);
        result = nvml->nvmlDeviceGetHandleByPciBusId_v2(entry->bus_id, &device);
        if (result == NVML_NOT_FOUND || result == NVML_GPU_NOT_FOUND || result == NVML_INVALID_ARGUMENT)
                return -ESTALE;
        if (result != NVML_OK || !device) {
                (void) device_note(nvml, result, sample);
                nvml_error_format(nvml, result, sample->error, sizeof sample->error);
                sample_from_entry(sample, entry);
                return 0;
        }

        if (device_read_identity(nvml, device, sample) < 0) {
                sample_from_entry(sample, entry);
                return 0;
        }
        if (!streq(sample->uuid, entry->uuid))
                return -ESTALE;
        device_read_state(nvml, device, sample);
        return 0;
}

/* 0 · -ESTALE the table does not fit the tray any more · -ENOMEM. */
static int probe_asked(Probe *probe) {
        size_t n = strv_length(probe->task->uuids);

        probe->samples = calloc(n, sizeof *probe->samples);
        if (!probe->samples)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                const GpuEntry *entry = table_find(probe->task->table, probe->task->uuids[i]);
                int r;

                if (!entry)
                        return -ESTALE;
                r = probe_gpu(probe->nvml, entry, &probe->samples[i]);
                if (r < 0)
                        return r;
        }
        probe->n = n;
        return 0;
}

static void probe_index(const Nvml *nvml, unsigned index, GpuSample *sample) {
        NvmlDevice device = NULL;
        NvmlReturn result;

        gpu_sample_init(sample);
        sample->index = index;
        result = nvml->nvmlDeviceGetHandleByIndex_v2(index, &device);
        if (result != NVML_OK || !device) {
                (void) device_note(nvml, result, sample);
                nvml_error_format(nvml, result, sample->error, sizeof sample->error);
                return;
        }
        if (device_read_identity(nvml, device, sample) >= 0)
                device_read_state(nvml, device, sample);
}

static bool probe_has(const Probe *probe, const char *uuid) {
        for (size_t i = 0; i < probe->n; i++)
                if (streq(probe->samples[i].uuid, uuid))
                        return true;
        return false;
}

/* A GPU that no longer says who it is: by its bus id or, if it does not say that either, its index, it is
 * one of those that a former probe saw and this one did not. NULL if it is none. */
static const GpuEntry* probe_recognise(const Probe *probe, const GpuSample *sample) {
        const GpuTable *table = probe->task->table;

        for (size_t i = 0; i < table->n; i++) {
                const GpuEntry *entry = &table->entries[i];
                bool same = sample->bus_id[0] ? streq(sample->bus_id, entry->bus_id)
                                              : sample->index == entry->index;

                if (same && !probe_has(probe, entry->uuid))
                        return entry;
        }
        return NULL;
}

/* Names those that did not answer and were recognised. The others are dropped: nobody could call them by a
 * name. */
static void probe_name_silent(Probe *probe, Answer *answer) {
        size_t n = 0;

        for (size_t i = 0; i < probe->n; i++) {
                GpuSample *sample = &probe->samples[i];
                const GpuEntry *entry = NULL;

                if (sample->uuid[0] == '\0') {
                        entry = probe_recognise(probe, sample);
                        if (!entry) {
                                answer_warn(answer, "GPU %u does not answer, and was never seen before: %s",
                                                sample->index, sample->error);
                                continue;
                        }
                        sample_from_entry(sample, entry);
                }
                if (n < i)
                        probe->samples[n] = *sample;
                n++;
        }
        probe->n = n;
}

static int probe_all(Probe *probe, Answer *answer) {
        unsigned count = 0;
        NvmlReturn result;
        char text[64];

        result = probe->nvml->nvmlDeviceGetCount_v2(&count);
        if (result != NVML_OK) {
                nvml_error_format(probe->nvml, result, text, sizeof text);
                answer_fail(answer, ANSWER_FAILED, "NVML cannot count the GPUs: %s", text);
                return -EIO;
        }
        if (count > PROTOCOL_GPUS_MAX) {
                answer_fail(answer, ANSWER_FAILED, "NVML counts %u GPUs", count);
                return -EIO;
        }

        free(probe->samples);
        probe->samples = calloc(count + 1, sizeof *probe->samples);
        if (!probe->samples)
                return -ENOMEM;
        for (unsigned i = 0; i < count; i++)
                probe_index(probe->nvml, i, &probe->samples[i]);
        probe->n = count;
        probe_name_silent(probe, answer);
        return 0;
}

static int compare_pointers(const void *a, const void *b) {
        return strcmp((*(const GpuSample *const *) a)->uuid, (*(const GpuSample *const *) b)->uuid);
}

static int compare_uuid(const void *uuid, const void *pointer) {
        return strcmp(uuid, (*(const GpuSample *const *) pointer)->uuid);
}

/* Brings those that were asked for to the front. 0 · -ENODEV one is not there, which the answer says ·
 * -ENOMEM. */
static int probe_sort(Probe *probe, Answer *answer) {
        CLEANUP(free_ptr) const GpuSample **pointers = NULL;
        CLEANUP(free_ptr) GpuSample *sorted = NULL;
        CLEANUP(free_ptr) bool *taken = NULL;
        size_t n = 0;

        pointers = calloc(probe->n + 1, sizeof *pointers);
        sorted = calloc(probe->n + 1, sizeof *sorted);
        taken = calloc(probe->n + 1, sizeof *taken);
        if (!pointers || !sorted || !taken)
                return -ENOMEM;
        for (size_t i = 0; i < probe->n; i++)
                pointers[i] = &probe->samples[i];
        qsort(pointers, probe->n, sizeof *pointers, compare_pointers);

        STRV_FOREACH (uuid, probe->task->uuids) {
                const GpuSample **found = bsearch(*uuid, pointers, probe->n, sizeof *pointers, compare_uuid);

                if (!found) {
                        answer_fail(answer, ANSWER_NO_SUCH_GPU, "no GPU %s on this tray", *uuid);
                        return -ENODEV;
                }
                taken[*found - probe->samples] = true;
                sorted[n++] = **found;
        }
        answer->n_asked = n > 0 ? n : probe->n;
        for (size_t i = 0; i < probe->n; i++)
                if (!taken[i])
                        sorted[n++] = probe->samples[i];

        free(probe->samples);
        probe->samples = take_ptr(&sorted);
        return 0;
}

static int probe_read(Probe *probe, Answer *answer) {
        int r;

        if (probe->task->uuids && *probe->task->uuids) {
                r = probe_asked(probe);
                answer->n_asked = probe->n;
                if (r != -ESTALE)
                        return r;
        }

        answer->complete = true;
        r = probe_all(probe, answer);
        return r < 0 ? r : probe_sort(probe, answer);
}

void probe_complete(const Task *task, Answer *answer) {
        bool checks = checks_exist(task->config->handover.checks_directory);

        for (size_t i = 0; i < answer->n; i++)
                answer->samples[i].checks = checks;
        fabric_query_run(task, answer);
}

void probe_run(const Task *task, Answer *answer) {
        CLEANUP(nvml_free_ptr) Nvml *nvml = NULL;
        Probe probe = { .task = task };
        char version[NVML_VERSION_SIZE + 1] = "";
        int r;

        r = vendor_open(task, answer, &nvml);
        if (r < 0)
                return;
        if (nvml->nvmlSystemGetDriverVersion(version, NVML_VERSION_SIZE) == NVML_OK)
                text_escape(version, answer->driver_version, sizeof answer->driver_version);

        probe.nvml = nvml;
        r = probe_read(&probe, answer);
        nvml = nvml_free(nvml); /* not held while a site's program runs */
        if (r < 0) {
                free(probe.samples);
                if (answer->error == ANSWER_OK)
                        answer_fail(answer, ANSWER_FAILED, "cannot probe the GPUs: %s", strerror(-r));
                return;
        }

        answer->samples = probe.samples;
        answer->n = probe.n;
        probe_complete(task, answer);
}
