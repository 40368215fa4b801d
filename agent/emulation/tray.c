/* SPDX-License-Identifier: MIT */
#include "agent/emulation/tray.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "agent/base/array.h"
#include "agent/base/io.h"
#include "agent/base/text.h"

#define TRAY_MAGIC   "gpuagemu"
#define TRAY_VERSION 1

static size_t tray_size(uint32_t n_gpus, uint32_t n_partitions) {
        return sizeof(TrayHeader) + n_gpus * sizeof(TrayGpu) + n_partitions * sizeof(TrayPartition);
}

static bool header_is_valid(const TrayHeader *header, size_t size) {
        return memcmp(header->magic, TRAY_MAGIC, sizeof header->magic) == 0 &&
                        header->version == TRAY_VERSION && header->n_gpus <= TRAY_GPUS_MAX &&
                        header->n_partitions <= TRAY_PARTITIONS_MAX && header->size == size &&
                        tray_size(header->n_gpus, header->n_partitions) == size;
}

static void tray_set_parts(Tray *tray, void *data, uint32_t n_gpus) {
        tray->header = data;
        tray->gpus = (TrayGpu *) ((char *) data + sizeof(TrayHeader));
        tray->partitions = (TrayPartition *) ((char *) tray->gpus + n_gpus * sizeof(TrayGpu));
}

int tray_open(Tray *ret) {
        CLEANUP(fd_close) int fd = -1;
        struct stat st;
        void *data;

        fd = open(TRAY_PATH, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || st.st_size < (off_t) sizeof(TrayHeader))
                return -EPROTO;

        /* The file is never written again, and its inode's number is not given away while it is mapped. */
        data = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (data == MAP_FAILED)
                return -errno;
        if (!header_is_valid(data, (size_t) st.st_size)) {
                (void) munmap(data, (size_t) st.st_size);
                return -EPROTO;
        }

        *ret = (Tray){
                .map_size = (size_t) st.st_size, .device = st.st_dev, .inode = st.st_ino, .lock_fd = -1
        };
        tray_set_parts(ret, data, ((TrayHeader *) data)->n_gpus);
        return 0;
}

bool tray_is_current(const Tray *tray) {
        struct stat st;

        return tray->header && stat(TRAY_PATH, &st) >= 0 && st.st_ino == tray->inode &&
                        st.st_dev == tray->device;
}

void tray_done(Tray *tray) {
        if (tray->header && tray->map_size > 0) {
                (void) munmap(tray->header, tray->map_size);
        } else if (tray->header) {
                free(tray->header);
                free(tray->gpus);
                free(tray->partitions);
        }
        fd_close(&tray->lock_fd);
        *tray = TRAY_INIT;
}

static int tray_lock(int *ret_fd) {
        CLEANUP(fd_close) int fd = -1;

        fd = open(TRAY_LOCK_PATH, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return -errno;
        while (flock(fd, LOCK_EX) < 0)
                if (errno != EINTR)
                        return -errno;

        *ret_fd = take_fd(&fd);
        return 0;
}

/* Room for one partition more than there is, so that an edit can add one. */
static int tray_allocate(uint32_t n_gpus, uint32_t n_partitions, Tray *ret) {
        CLEANUP(tray_done) Tray tray = TRAY_INIT;

        tray.header = calloc(1, sizeof(TrayHeader));
        if (!tray.header)
                return -ENOMEM;
        tray.gpus = calloc(n_gpus + 1U, sizeof(TrayGpu));
        tray.partitions = calloc(n_partitions + 1U, sizeof(TrayPartition));
        if (!tray.gpus || !tray.partitions)
                return -ENOMEM;

        *ret = tray;
        tray = TRAY_INIT;
        return 0;
}

int tray_edit(Tray *ret) {
        CLEANUP(tray_done) Tray copy = TRAY_INIT, now = TRAY_INIT;
        CLEANUP(fd_close) int lock_fd = -1;
        usec_t usec;
        int r;

        r = tray_lock(&lock_fd);
        if (r >= 0)
                r = tray_open(&now);
        if (r >= 0)
                r = tray_allocate(now.header->n_gpus, now.header->n_partitions, &copy);
        if (r < 0)
                return r;

        *copy.header = *now.header;
        memcpy(copy.gpus, now.gpus, now.header->n_gpus * sizeof(TrayGpu));
        memcpy(copy.partitions, now.partitions, now.header->n_partitions * sizeof(TrayPartition));

        usec = now_monotonic_usec();
        for (uint32_t i = 0; i < copy.header->n_gpus; i++)
                tray_gpu_at(copy.header, &copy.gpus[i], usec);

        copy.lock_fd = take_fd(&lock_fd);
        *ret = copy;
        copy = TRAY_INIT;
        return 0;
}

int tray_make(uint32_t n_gpus, Tray *ret) {
        CLEANUP(tray_done) Tray tray = TRAY_INIT;
        CLEANUP(fd_close) int lock_fd = -1;
        int r;

        r = tray_lock(&lock_fd);
        if (r >= 0)
                r = tray_allocate(n_gpus, 0, &tray);
        if (r < 0)
                return r;

        memcpy(tray.header->magic, TRAY_MAGIC, sizeof tray.header->magic);
        tray.header->version = TRAY_VERSION;
        tray.header->n_gpus = n_gpus;
        tray.lock_fd = take_fd(&lock_fd);
        *ret = tray;
        tray = TRAY_INIT;
        return 0;
}

int tray_commit(Tray *tray) {
        CLEANUP(free_ptr) char *text = NULL;
        TrayHeader *header = tray->header;
        size_t size = tray_size(header->n_gpus, header->n_partitions);
        Tray parts = TRAY_INIT;

        text = malloc(size);
        if (!text)
                return -ENOMEM;

        header->size = (uint32_t) size;
        header->generation++;
        tray_set_parts(&parts, text, header->n_gpus);
        *parts.header = *header;
        memcpy(parts.gpus, tray->gpus, header->n_gpus * sizeof(TrayGpu));
        memcpy(parts.partitions, tray->partitions, header->n_partitions * sizeof(TrayPartition));
        return file_write_atomic(TRAY_PATH, text, size, 0644);
}

TrayGpu* tray_find_gpu(const Tray *tray, const GpuId *id) {
        if (id->kind == GPU_ID_INDEX)
                return id->index < tray->header->n_gpus ? &tray->gpus[id->index] : NULL;

        for (uint32_t i = 0; i < tray->header->n_gpus; i++) {
                TrayGpu *gpu = &tray->gpus[i];

                if (id->kind == GPU_ID_UUID ? streq(gpu->uuid, id->uuid) : streq(gpu->bus_id, id->bus_id))
                        return gpu;
        }
        return NULL;
}

TrayPartition* tray_find_partition(const Tray *tray, uint32_t id) {
        for (uint32_t i = 0; i < tray->header->n_partitions; i++)
                if (tray->partitions[i].id == id)
                        return &tray->partitions[i];
        return NULL;
}

TrayPartition* tray_find_partition_by_name(const Tray *tray, const char *name) {
        for (uint32_t i = 0; i < tray->header->n_partitions; i++)
                if (streq(tray->partitions[i].name, name))
                        return &tray->partitions[i];
        return NULL;
}

int tray_add_partition(Tray *tray, TrayPartition **ret) {
        uint32_t n = tray->header->n_partitions;
        int r;

        if (n >= TRAY_PARTITIONS_MAX)
                return -ENOSPC;
        r = array_reserve(&tray->partitions, n, 1);
        if (r < 0)
                return r;

        tray->header->n_partitions = n + 1;
        tray->partitions[n] = (TrayPartition){};
        *ret = &tray->partitions[n];
        return 0;
}

int tray_node_path(const TrayHeader *header, const TrayGpu *gpu, char *ret, size_t size) {
        int n = snprintf(ret, size, "%s/nvidia%u", header->devices, gpu->minor);

        return n < 0 || (size_t) n >= size ? -ENAMETOOLONG : 0;
}
