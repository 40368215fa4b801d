/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/array.h"
#include "agent/base/io.h"
#include "agent/base/text.h"
#include "agent/driver/device.h"
#include "agent/driver/owner.h"
#include "agent/driver/process.h"
#include "agent/driver/users.h"
#include "agent/driver/vendor.h"
#include "agent/driver/walk.h"

/* NVML's list may grow between the question how long it is and the answer; and a layout that was longer once
 * must not write past its end. */
#define LIST_SLACK 32
#define LIST_TRIES 4

/* What a search knows so far. */
typedef struct Search {
        const Task *task;
        WalkGpu *gpus;
        size_t n_gpus;
        GpuHolder *holders;
        size_t n;
} Search;

static void search_done(Search *search) {
        free(search->gpus);
        free(search->holders);
}

static int search_add(Search *search, const char *uuid, pid_t pid, uint64_t used_bytes) {
        int r;

        if (search->n >= PROTOCOL_HOLDERS_MAX)
                return 0; /* more than anybody will read */
        r = array_reserve(&search->holders, search->n, 1);
        if (r < 0)
                return r;

        search->holders[search->n] = (GpuHolder){ .pid = pid, .used_bytes = used_bytes };
        memcpy(search->holders[search->n].uuid, uuid, GPU_UUID_SIZE);
        search->n++;
        return 0;
}

static void search_add_gpu(Search *search, const char *uuid, uint32_t minor_number) {
        WalkGpu *gpu = &search->gpus[search->n_gpus];

        memcpy(gpu->uuid, uuid, sizeof gpu->uuid);
        gpu->minor = minor_number;
        search->n_gpus++;
}

/* Takes the GPUs from the table. 1 · 0 one that was asked for is not in it, or it is empty · -ENOMEM. */
static int search_from_table(Search *search) {
        const GpuTable *table = search->task->table;
        size_t n = strv_length(search->task->uuids);

        search->gpus = calloc((n > 0 ? n : table->n) + 1, sizeof *search->gpus);
        if (!search->gpus)
                return -ENOMEM;
        if (n == 0)
                for (size_t i = 0; i < table->n; i++)
                        search_add_gpu(search, table->entries[i].uuid, table->entries[i].minor);

        STRV_FOREACH (uuid, search->task->uuids) {
                const GpuEntry *entry = table_find(table, *uuid);

                if (!entry)
                        return 0;
                search_add_gpu(search, entry->uuid, entry->minor);
        }
        return search->n_gpus > 0;
}

/* Asks NVML which GPUs there are. 0 · -ENODEV one that was asked for is not there, which the answer says ·
 * -errno. */
static int search_from_nvml(Search *search, const Nvml *nvml, Answer *answer) {
        char *const *uuids = search->task->uuids;
        unsigned count = 0;

        if (nvml->nvmlDeviceGetCount_v2(&count) != NVML_OK || count > PROTOCOL_GPUS_MAX)
                return -EIO;
        free(search->gpus);
        search->n_gpus = 0;
        search->gpus = calloc(count + 1, sizeof *search->gpus);
        if (!search->gpus)
                return -ENOMEM;

        for (unsigned i = 0; i < count; i++) {
                NvmlDevice device = NULL;
                GpuSample sample;

                gpu_sample_init(&sample);
                if (nvml->nvmlDeviceGetHandleByIndex_v2(i, &device) != NVML_OK || !device ||
                                device_read_identity(nvml, device, &sample) < 0)
                        continue;
                if (!uuids || !*uuids || strv_contains(uuids, sample.uuid))
                        search_add_gpu(search, sample.uuid, sample.minor);
        }

        if (search->n_gpus < strv_length(uuids)) {
                answer_fail(answer, ANSWER_NO_SUCH_GPU, "a GPU that was asked for is not on this tray");
                return -ENODEV;
        }
        return 0;
}

typedef NvmlReturn (*ListFunction)(NvmlDevice device, unsigned *count, NvmlProcessInfo *infos);

/* 0 · -ENOMEM. A list that the driver does not give is empty. */
static int search_list(Search *search, ListFunction list, NvmlDevice device, const char *uuid) {
        unsigned count = 0;

        for (int i = 0; list && i < LIST_TRIES; i++) {
                CLEANUP(free_ptr) NvmlProcessInfo *infos = NULL;
                unsigned room = count + LIST_SLACK;
                NvmlReturn result;

                infos = calloc(2 * (size_t) room, sizeof *infos); /* twice: the slack behind the array */
                if (!infos)
                        return -ENOMEM;
                count = room;
                result = list(device, &count, infos);
                if (result == NVML_INSUFFICIENT_SIZE && count <= PROTOCOL_HOLDERS_MAX)
                        continue;
                if (result != NVML_OK || count > room)
                        return 0;

                for (unsigned k = 0; k < count; k++) {
                        int r = search_add(search, uuid, (pid_t) infos[k].pid, infos[k].used_bytes);

                        if (r < 0)
                                return r;
                }
                return 0;
        }
        return 0;
}

static int search_lists(Search *search, const Nvml *nvml) {
        const ListFunction lists[] = {
                nvml->nvmlDeviceGetComputeRunningProcesses_v3,
                nvml->nvmlDeviceGetGraphicsRunningProcesses_v3,
                nvml->nvmlDeviceGetMPSComputeRunningProcesses_v3,
        };

        for (size_t i = 0; i < search->n_gpus; i++) {
                const char *uuid = search->gpus[i].uuid;
                const GpuEntry *entry = table_find(search->task->table, uuid);
                NvmlDevice device = NULL;
                NvmlReturn result;

                result = entry ? nvml->nvmlDeviceGetHandleByPciBusId_v2(entry->bus_id, &device)
                               : nvml->nvmlDeviceGetHandleByUUID(uuid, &device);
                if (result != NVML_OK || !device)
                        continue; /* the walk does not need it */
                for (size_t k = 0; k < ELEMENTSOF(lists); k++) {
                        int r = search_list(search, lists[k], device, uuid);

                        if (r < 0)
                                return r;
                }
        }
        return 0;
}

static int on_found(const WalkGpu *gpu, pid_t pid, int process_dir_fd, void *userdata) {
        return search_add(userdata, gpu->uuid, pid, UNKNOWN_U64);
}

/* By process, and the best known memory first. */
static int compare_holders(const void *a, const void *b) {
        const GpuHolder *x = a, *y = b;
        int order = strcmp(x->uuid, y->uuid);

        if (x->pid != y->pid)
                return x->pid < y->pid ? -1 : 1;
        if (order != 0)
                return order;
        return x->used_bytes < y->used_bytes ? -1 : x->used_bytes > y->used_bytes;
}

/* What a process is. -ESRCH it is gone. */
static int holder_describe(GpuHolder *holder) {
        CLEANUP(fd_close) int process_fd = -1;
        char path[sizeof "/proc/" + 11];
        ProcessStat stat;
        int r;

        r = process_stat_read(holder->pid, &stat);
        if (r < 0)
                return r;
        holder->start_time = stat.start_time;
        text_escape(stat.command, holder->command, sizeof holder->command);
        r = process_uid_read(holder->pid, &holder->uid);
        if (r < 0)
                return r;

        (void) snprintf(path, sizeof path, "/proc/%d", (int) holder->pid);
        process_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (process_fd < 0)
                return -ESRCH;
        owner_find(process_fd, holder->uid, holder->where, sizeof holder->where);
        return 0;
}

/* One of each process and GPU, described; those that are gone meanwhile are left out. */
static void search_describe(Search *search) {
        const GpuHolder *last = NULL;
        pid_t gone = 0;
        size_t n = 0;

        if (search->n > 0) /* qsort() takes no NULL */
                qsort(search->holders, search->n, sizeof *search->holders, compare_holders);
        for (size_t i = 0; i < search->n; i++) {
                GpuHolder holder = search->holders[i];

                if (holder.pid <= 0 || holder.pid == gone || holder.pid == getpid() ||
                                holder.pid == getppid() ||
                                (last && last->pid == holder.pid && streq(last->uuid, holder.uuid)))
                        continue;
                if (last && last->pid == holder.pid) {
                        GpuHolder same = *last;

                        memcpy(same.uuid, holder.uuid, sizeof same.uuid);
                        same.used_bytes = holder.used_bytes;
                        holder = same;
                } else if (holder_describe(&holder) < 0) {
                        gone = holder.pid;
                        continue;
                }
                search->holders[n] = holder;
                last = &search->holders[n++];
        }
        search->n = n;
}

static int compare_users(const void *a, const void *b) {
        uid_t x = ((const UserName *) a)->uid, y = ((const UserName *) b)->uid;

        return x < y ? -1 : x > y;
}

static int search_name_users(Search *search) {
        UserName *users;
        size_t n = 0;

        if (search->n == 0)
                return 0;
        users = calloc(search->n, sizeof *users);
        if (!users)
                return -ENOMEM;
        for (size_t i = 0; i < search->n; i++)
                users[i].uid = search->holders[i].uid;
        qsort(users, search->n, sizeof *users, compare_users);
        for (size_t i = 0; i < search->n; i++)
                if (n == 0 || users[n - 1].uid != users[i].uid)
                        users[n++] = users[i];

        users_name(users, n);
        for (size_t i = 0; i < search->n; i++) {
                const UserName key = { .uid = search->holders[i].uid };
                const UserName *user = bsearch(&key, users, n, sizeof *users, compare_users);

                if (user)
                        memcpy(search->holders[i].user, user->name, sizeof user->name);
        }
        return 0; /* a look-up that hangs may still use the array: it goes with the process */
}

/* Which GPUs, and what NVML lists on them. 0 · -errno, and the answer says what is wrong if it is not the
 * memory. */
static int search_ask_nvml(Search *search, Answer *answer) {
        CLEANUP(nvml_free_ptr) Nvml *nvml = NULL;
        int r, known;

        known = search_from_table(search);
        if (known < 0)
                return known;
        r = vendor_open(search->task, answer, &nvml);
        if (r < 0 && known > 0) {
                /* The walk finds the holders all the same. */
                answer_warn(answer, "%s", answer->message);
                answer->error = ANSWER_OK;
                answer->message[0] = '\0';
                return 0;
        }
        if (r < 0)
                return r;
        if (known == 0) {
                r = search_from_nvml(search, nvml, answer);
                if (r < 0)
                        return r;
        }
        return search_lists(search, nvml);
}

void holders_run(const Task *task, Answer *answer) {
        CLEANUP(search_done) Search search = { .task = task };
        const pid_t except[] = { getpid(), getppid() };
        int r;

        r = search_ask_nvml(&search, answer);
        if (r >= 0)
                r = walk_processes(search.gpus, search.n_gpus, task->config->driver.devices, except,
                                ELEMENTSOF(except), on_found, &search);
        if (r >= 0) {
                search_describe(&search);
                r = search_name_users(&search);
        }
        if (r < 0) {
                if (answer->error == ANSWER_OK)
                        answer_fail(answer, ANSWER_FAILED, "cannot search for processes: %s", strerror(-r));
                return;
        }

        answer->holders = take_ptr(&search.holders);
        answer->n = answer->n_asked = search.n;
}
