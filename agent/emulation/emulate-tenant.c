/* SPDX-License-Identifier: MIT */
/* gpuagent-emulate tenant: a job's use of a GPU, as any user. Its memory is a file that keeps what was
 * written until a reset, and the node is held open for as long as the tenant stays. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/io.h"
#include "agent/base/text.h"
#include "agent/emulation/clients.h"
#include "agent/emulation/emulate.h"

#define READ_MAX 4096

/* The node, opened as a CUDA program does. 0 and *ret_fd, or the exit code. */
static int hold_node(const Tray *tray, const TrayGpu *gpu, int *ret_fd) {
        char path[192];
        int fd;

        if (tray_node_path(tray->header, gpu, path, sizeof path) < 0)
                return fail("the GPU's node has too long a name");
        fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY);
        /* Behind a node of the vendor's major is no driver: registering has to do. */
        if (fd < 0 && errno != ENXIO && errno != ENODEV)
                return fail_errno(errno, path);
        *ret_fd = fd;
        return 0;
}

static int open_memory(const TrayGpu *gpu, int flags, int *ret_fd) {
        char path[64];
        int fd;

        (void) snprintf(path, sizeof path, TRAY_MEMORY_DIRECTORY "/%u", gpu->index);
        fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return fail_errno(errno, path);
        *ret_fd = fd;
        return 0;
}

static int tenant_write(
                const Tray *tray, const TrayGpu *gpu, const char *text, const EmulateOptions *options) {
        CLEANUP(fd_close) int fd = -1;
        size_t size = strlen(text);
        int r;

        r = open_memory(gpu, O_WRONLY, &fd);
        if (r != 0)
                return r;
        if (options->offset + size > tray->header->model.memory_total)
                return fail("the GPU's memory ends before that");
        if (pwrite(fd, text, size, (off_t) options->offset) != (ssize_t) size)
                return fail_errno(errno, "cannot write to the GPU's memory");
        return 0;
}

static int tenant_read(
                const Tray *tray, const TrayGpu *gpu, const char *text, const EmulateOptions *options) {
        CLEANUP(fd_close) int fd = -1;
        char bytes[READ_MAX];
        ssize_t n;
        int r;

        r = open_memory(gpu, O_RDONLY, &fd);
        if (r != 0)
                return r;
        n = pread(fd, bytes, sizeof bytes, (off_t) options->offset);
        if (n < 0)
                return fail_errno(errno, "cannot read the GPU's memory");

        /* As far as somebody wrote something; memory that was cleared reads as zeros. */
        n = (ssize_t) strnlen(bytes, (size_t) n);
        (void) printf("%.*s\n", (int) n, bytes);
        return 0;
}

static int tenant_stay(const TrayGpu *gpu, uint32_t load, const EmulateOptions *options) {
        ClientRecord record;
        char path[96];
        usec_t end;
        int r;

        r = client_register(gpu->index, options->memory, load, &record, path);
        if (r < 0)
                return fail_errno(r, TRAY_CLIENTS_DIRECTORY);

        end = usec_add(record.since_usec, options->time_usec);
        for (;;) {
                usec_t now = now_monotonic_usec();

                if (now >= end)
                        break;
                (void) poll(NULL, 0,
                                end - now < USEC_PER_SEC ? (int) ((end - now) / USEC_PER_MSEC) + 1 : 1000);
                (void) client_update(path, &record); /* if it is gone, nobody counts us any more */
        }
        /* A GPU that never worked leaves no warmth behind. */
        if (load == 0)
                (void) unlink(path);
        return 0;
}

static int tenant_hold(
                const Tray *tray, const TrayGpu *gpu, const char *text, const EmulateOptions *options) {
        return tenant_stay(gpu, 0, options);
}

static int tenant_load(
                const Tray *tray, const TrayGpu *gpu, const char *text, const EmulateOptions *options) {
        return tenant_stay(gpu, options->load, options);
}

static const struct {
        const char *name;
        int (*run)(const Tray *tray, const TrayGpu *gpu, const char *text, const EmulateOptions *options);
        size_t n_args;
} tenant_verbs[] = {
        { "write", tenant_write, 3 },
        { "read", tenant_read, 2 },
        { "hold", tenant_hold, 2 },
        { "load", tenant_load, 2 },
};

int verb_tenant(char **args, const EmulateOptions *options) {
        CLEANUP(tray_done) Tray tray = TRAY_INIT;
        CLEANUP(fd_close) int node_fd = -1;
        const TrayGpu *gpu;
        int r;

        for (size_t i = 0; *args && i < ELEMENTSOF(tenant_verbs); i++) {
                if (!streq(args[0], tenant_verbs[i].name) || strv_length(args) != tenant_verbs[i].n_args)
                        continue;

                r = tray_open(&tray);
                if (r < 0)
                        return fail_errno(r, TRAY_PATH);
                gpu = name_gpu(&tray, args[1]);
                if (!gpu)
                        return 1;
                r = hold_node(&tray, gpu, &node_fd);
                if (r != 0)
                        return r;
                return tenant_verbs[i].run(&tray, gpu, args[2], options);
        }
        return fail_usage("tenant write GPU TEXT [--offset N] | read GPU [--offset N] | hold GPU "
                          "[--memory MIB] [--time T] | load GPU [--load N] [--memory MIB] [--time T]");
}
