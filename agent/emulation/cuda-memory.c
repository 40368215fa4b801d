/* SPDX-License-Identifier: MIT */
/* The GPU's memory as CUDA programs use it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/emulation/cuda-session.h"

/* Allocations begin at multiples of this. */
#define GRANULE   UINT64_C(512)
#define COPY_SIZE 65536

/* Which device's memory an address is in, and where. CUDA_OK · CUDA_INVALID_VALUE. */
static CudaResult address_find(CudaAddress address, size_t size, CudaGpu **ret_gpu, uint64_t *ret_offset) {
        uint64_t distance = address - CUDA_ADDRESS_BASE, offset = distance % CUDA_ADDRESS_PER_GPU;
        CudaGpu *gpu = NULL;

        if (address >= CUDA_ADDRESS_BASE && distance / CUDA_ADDRESS_PER_GPU < TRAY_GPUS_MAX)
                gpu = session_gpu((CudaDevice) (distance / CUDA_ADDRESS_PER_GPU));
        for (const CudaAllocation *i = gpu ? gpu->allocations : NULL; i; i = i->next)
                if (offset >= i->offset && offset - i->offset <= i->size &&
                                size <= i->size - (offset - i->offset)) {
                        *ret_gpu = gpu;
                        *ret_offset = offset;
                        return CUDA_OK;
                }
        return CUDA_INVALID_VALUE;
}

/* The end of what another process has in that range, or 0. */
static uint64_t range_taken_until(int fd, uint64_t offset, uint64_t size) {
        struct flock lock = {
                .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t) offset, .l_len = (off_t) size
        };

        if (fcntl(fd, F_OFD_GETLK, &lock) < 0 || lock.l_type == F_UNLCK)
                return 0;
        /* Somebody who locks everything leaves no memory, as somebody who allocates everything does. */
        return lock.l_len == 0 ? UINT64_MAX : (uint64_t) lock.l_start + (uint64_t) lock.l_len;
}

static bool range_lock(int fd, uint64_t offset, uint64_t size, short type) {
        struct flock lock = {
                .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t) offset, .l_len = (off_t) size
        };

        return fcntl(fd, F_OFD_SETLK, &lock) >= 0;
}

/* The first room between the allocations of all processes: fresh memory is what the last tenant had. */
static bool find_room(const CudaGpu *gpu, uint64_t size, uint64_t limit, uint64_t *ret) {
        unsigned attempts = 0;
        uint64_t offset = 0;

        while (size <= limit && offset <= limit - size && attempts < 1000) {
                uint64_t until = range_taken_until(gpu->memory_fd, offset, size);

                for (const CudaAllocation *i = gpu->allocations; i; i = i->next)
                        if (offset < i->offset + i->size && i->offset < offset + size &&
                                        i->offset + i->size > until)
                                until = i->offset + i->size;
                if (until == 0) {
                        if (range_lock(gpu->memory_fd, offset, size, F_WRLCK)) {
                                *ret = offset;
                                return true;
                        }
                        attempts++; /* somebody was faster */
                        continue;
                }
                if (until > limit)
                        return false;
                offset = (until + GRANULE - 1) / GRANULE * GRANULE;
        }
        return false;
}

EXPORT CudaResult cuMemAlloc_v2(CudaAddress *address, size_t size) {
        CLEANUP(session_end) bool locked = false;
        CLEANUP(tray_done) Tray tray = TRAY_INIT;
        CLEANUP(free_ptr) CudaAllocation *allocation = NULL;
        CudaDevice device;
        CudaResult r;
        CudaGpu *gpu;
        TrayGpu now;

        r = session_begin(&locked);
        if (r == CUDA_OK)
                r = session_current(&device);
        if (r != CUDA_OK)
                return r;
        if (!address || size == 0)
                return CUDA_INVALID_VALUE;
        gpu = session_gpu(device);
        r = session_look(gpu, &tray, &now);
        if (r != CUDA_OK)
                return r;

        allocation = calloc(1, sizeof *allocation);
        if (!allocation || size > INT64_MAX - GRANULE)
                return CUDA_OUT_OF_MEMORY;
        allocation->size = (size + GRANULE - 1) / GRANULE * GRANULE;
        if (!find_room(gpu, allocation->size,
                            tray.header->model.memory_total - tray.header->model.memory_reserved,
                            &allocation->offset))
                return CUDA_OUT_OF_MEMORY;

        *address = CUDA_ADDRESS_BASE + (uint64_t) device * CUDA_ADDRESS_PER_GPU + allocation->offset;
        gpu->used_bytes += allocation->size;
        allocation->next = gpu->allocations;
        gpu->allocations = take_ptr(&allocation);
        session_tell(gpu);
        return CUDA_OK;
}

EXPORT CudaResult cuMemFree_v2(CudaAddress address) {
        CLEANUP(session_end) bool locked = false;
        uint64_t offset;
        CudaResult r;
        CudaGpu *gpu;

        r = session_begin(&locked);
        if (r == CUDA_OK && address == 0)
                return CUDA_OK;
        if (r == CUDA_OK)
                r = address_find(address, 0, &gpu, &offset);
        if (r != CUDA_OK)
                return r;

        for (CudaAllocation **i = &gpu->allocations; *i; i = &(*i)->next)
                if ((*i)->offset == offset) {
                        CudaAllocation *allocation = *i;

                        *i = allocation->next;
                        (void) range_lock(gpu->memory_fd, allocation->offset, allocation->size, F_UNLCK);
                        gpu->used_bytes -= allocation->size;
                        free(allocation);
                        session_tell(gpu);
                        return CUDA_OK;
                }
        return CUDA_INVALID_VALUE;
}

EXPORT CudaResult cuMemGetAddressRange_v2(CudaAddress *base, size_t *size, CudaAddress address) {
        CLEANUP(session_end) bool locked = false;
        uint64_t offset;
        CudaResult r;
        CudaGpu *gpu;

        r = session_begin(&locked);
        if (r == CUDA_OK)
                r = address_find(address, 1, &gpu, &offset);
        if (r != CUDA_OK)
                return r;
        for (const CudaAllocation *i = gpu->allocations; i; i = i->next)
                if (offset >= i->offset && offset < i->offset + i->size) {
                        if (base)
                                *base = address - (offset - i->offset);
                        if (size)
                                *size = i->size;
                }
        return CUDA_OK;
}

EXPORT CudaResult cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
        CLEANUP(session_end) bool locked = false;
        CLEANUP(tray_done) Tray tray = TRAY_INIT;
        CLEANUP(clients_done) Clients clients = {};
        uint64_t used, room;
        CudaDevice device;
        CudaResult r;
        TrayGpu now;

        r = session_begin(&locked);
        if (r == CUDA_OK)
                r = session_current(&device);
        if (r == CUDA_OK)
                r = session_look(session_gpu(device), &tray, &now);
        if (r != CUDA_OK)
                return r;
        if (!free_bytes || !total)
                return CUDA_INVALID_VALUE;
        if (clients_read(tray.header, now_monotonic_usec(), &clients) < 0)
                return CUDA_OUT_OF_MEMORY;

        room = tray.header->model.memory_total - tray.header->model.memory_reserved;
        used = clients_used_bytes(&clients, now.index);
        *total = room;
        *free_bytes = used < room ? room - used : 0;
        return CUDA_OK;
}

/* --- copies */

/* What nobody has written yet reads as zeros. */
static CudaResult memory_read(const CudaGpu *gpu, uint64_t offset, void *to, size_t size) {
        char *p = to;

        while (size > 0) {
                ssize_t n = pread(gpu->memory_fd, p, size, (off_t) offset);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return CUDA_UNKNOWN;
                if (n == 0) {
                        memset(p, 0, size);
                        return CUDA_OK;
                }
                p += n;
                offset += (uint64_t) n;
                size -= (size_t) n;
        }
        return CUDA_OK;
}

static CudaResult memory_write(const CudaGpu *gpu, uint64_t offset, const void *from, size_t size) {
        const char *p = from;

        while (size > 0) {
                ssize_t n = pwrite(gpu->memory_fd, p, size, (off_t) offset);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return CUDA_UNKNOWN;
                p += n;
                offset += (uint64_t) n;
                size -= (size_t) n;
        }
        return CUDA_OK;
}

EXPORT CudaResult cuMemcpyHtoD_v2(CudaAddress to, const void *from, size_t size) {
        CLEANUP(session_end) bool locked = false;
        uint64_t offset;
        CudaResult r;
        CudaGpu *gpu;

        r = session_begin(&locked);
        if (r == CUDA_OK)
                r = address_find(to, size, &gpu, &offset);
        if (r != CUDA_OK)
                return r;
        return from ? memory_write(gpu, offset, from, size) : CUDA_INVALID_VALUE;
}

EXPORT CudaResult cuMemcpyDtoH_v2(void *to, CudaAddress from, size_t size) {
        CLEANUP(session_end) bool locked = false;
        uint64_t offset;
        CudaResult r;
        CudaGpu *gpu;

        r = session_begin(&locked);
        if (r == CUDA_OK)
                r = address_find(from, size, &gpu, &offset);
        if (r != CUDA_OK)
                return r;
        return to ? memory_read(gpu, offset, to, size) : CUDA_INVALID_VALUE;
}

EXPORT CudaResult cuMemcpyDtoD_v2(CudaAddress to, CudaAddress from, size_t size) {
        CLEANUP(session_end) bool locked = false;
        CLEANUP(free_ptr) char *buffer = NULL;
        uint64_t from_offset, to_offset;
        CudaGpu *from_gpu, *to_gpu;
        CudaResult r;

        r = session_begin(&locked);
        if (r == CUDA_OK)
                r = address_find(from, size, &from_gpu, &from_offset);
        if (r == CUDA_OK)
                r = address_find(to, size, &to_gpu, &to_offset);
        if (r != CUDA_OK)
                return r;

        buffer = malloc(COPY_SIZE);
        if (!buffer)
                return CUDA_OUT_OF_MEMORY;
        for (uint64_t done = 0; done < size && r == CUDA_OK;) {
                size_t n = size - done < COPY_SIZE ? (size_t) (size - done) : COPY_SIZE;

                r = memory_read(from_gpu, from_offset + done, buffer, n);
                if (r == CUDA_OK)
                        r = memory_write(to_gpu, to_offset + done, buffer, n);
                done += n;
        }
        return r;
}

/* Nothing runs beside the caller here: what is asynchronous is done at once. */
EXPORT CudaResult cuMemcpyHtoDAsync_v2(CudaAddress to, const void *from, size_t size, CudaStream stream) {
        return cuMemcpyHtoD_v2(to, from, size);
}

EXPORT CudaResult cuMemcpyDtoHAsync_v2(void *to, CudaAddress from, size_t size, CudaStream stream) {
        return cuMemcpyDtoH_v2(to, from, size);
}

EXPORT CudaResult cuMemcpyDtoDAsync_v2(CudaAddress to, CudaAddress from, size_t size, CudaStream stream) {
        return cuMemcpyDtoD_v2(to, from, size);
}

static CudaResult fill(CudaAddress to, unsigned value, size_t width, size_t n) {
        CLEANUP(session_end) bool locked = false;
        CLEANUP(free_ptr) char *buffer = NULL;
        uint64_t offset, size;
        CudaResult r;
        CudaGpu *gpu;

        r = session_begin(&locked);
        if (r != CUDA_OK)
                return r;
        if (__builtin_mul_overflow(n, width, &size))
                return CUDA_INVALID_VALUE;
        r = address_find(to, size, &gpu, &offset);
        if (r != CUDA_OK)
                return r;

        buffer = malloc(COPY_SIZE);
        if (!buffer)
                return CUDA_OUT_OF_MEMORY;
        for (size_t i = 0; i < COPY_SIZE; i += width)
                memcpy(buffer + i, &value, width);
        for (uint64_t done = 0; done < size && r == CUDA_OK;) {
                size_t part = size - done < COPY_SIZE ? (size_t) (size - done) : COPY_SIZE;

                r = memory_write(gpu, offset + done, buffer, part);
                done += part;
        }
        return r;
}

EXPORT CudaResult cuMemsetD8_v2(CudaAddress to, unsigned char value, size_t n) {
        return fill(to, value, 1, n);
}

EXPORT CudaResult cuMemsetD32_v2(CudaAddress to, unsigned value, size_t n) {
        return fill(to, value, sizeof value, n);
}

EXPORT CudaResult cuMemsetD8Async(CudaAddress to, unsigned char value, size_t n, CudaStream stream) {
        return fill(to, value, 1, n);
}

/* Memory is not shared between processes; clients look these up all the same. */
static CudaResult not_supported(void) {
        CLEANUP(session_end) bool locked = false;
        CudaResult r;

        r = session_begin(&locked);
        return r == CUDA_OK ? CUDA_NOT_SUPPORTED : r;
}

EXPORT CudaResult cuIpcGetMemHandle(void *handle, CudaAddress address) {
        return not_supported();
}

EXPORT CudaResult cuIpcOpenMemHandle_v2(CudaAddress *address, CudaIpcHandle handle, unsigned flags) {
        return not_supported();
}

EXPORT CudaResult cuIpcOpenMemHandle(CudaAddress *address, CudaIpcHandle handle, unsigned flags) {
        return not_supported();
}

EXPORT CudaResult cuIpcCloseMemHandle(CudaAddress address) {
        return not_supported();
}

/* CU_POINTER_ATTRIBUTE_CONTEXT, _MEMORY_TYPE, _DEVICE_POINTER, _DEVICE_ORDINAL. */
EXPORT CudaResult cuPointerGetAttribute(void *value, int attribute, CudaAddress address) {
        CLEANUP(session_end) bool locked = false;
        uint64_t offset;
        CudaResult r;
        CudaGpu *gpu;

        r = session_begin(&locked);
        if (r == CUDA_OK)
                r = address_find(address, 1, &gpu, &offset);
        if (r != CUDA_OK)
                return r;
        if (!value)
                return CUDA_INVALID_VALUE;

        if (attribute == 1)
                *(CudaContextHandle *) value = gpu->primary;
        else if (attribute == 2)
                *(unsigned *) value = 2; /* the device's */
        else if (attribute == 3)
                *(CudaAddress *) value = address;
        else if (attribute == 9)
                *(int *) value = (int) ((address - CUDA_ADDRESS_BASE) / CUDA_ADDRESS_PER_GPU);
        else
                return CUDA_NOT_SUPPORTED;
        return CUDA_OK;
}
