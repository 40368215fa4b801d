/* SPDX-License-Identifier: MIT */
#include "agent/emulation/holders.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "agent/base/array.h"
#include "agent/base/io.h"

/* A file whose holders count: a node, or a GPU's memory. */
typedef struct Mark {
        uint64_t inode;
        uint32_t major, minor; /* of the file system */
        uint32_t gpu;
} Mark;

/* Documentation/admin-guide/devices.txt: 195 char, NVIDIA graphics devices. */
#define NVIDIA_MAJOR 195

typedef struct Walk {
        Mark *marks; /* sorted */
        size_t n_marks;
        bool mappable; /* one of them can be mapped: /proc/PID/maps has to be read, too */
        Holders *holders;
} Walk;

/* The kernel's record, for readers of /proc that cannot afford readdir's copies. */
struct linux_dirent64 {
        uint64_t inode;
        int64_t offset;
        uint16_t length;
        uint8_t type;
        char name[];
};

static int mark_compare(const void *a, const void *b) {
        const Mark *x = a, *y = b;

        if (x->inode != y->inode)
                return x->inode < y->inode ? -1 : 1;
        if (x->major != y->major)
                return x->major < y->major ? -1 : 1;
        return x->minor == y->minor ? 0 : x->minor < y->minor ? -1 : 1;
}

static const Mark* walk_find(const Walk *walk, uint64_t inode, uint32_t major, uint32_t minor) {
        Mark key = { .inode = inode, .major = major, .minor = minor };

        return bsearch(&key, walk->marks, walk->n_marks, sizeof(Mark), mark_compare);
}

/* A write lease is given on a file that nobody else has open or mapped: an answer that needs no walk. Root
 * can ask. */
static bool file_is_idle(const char *path) {
        CLEANUP(fd_close) int fd = -1;

        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0 || fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
                return false;
        (void) fcntl(fd, F_SETLEASE, F_UNLCK); /* closing it would do */
        return true;
}

static void walk_mark(Walk *walk, const char *path, uint32_t gpu, bool memory) {
        struct stat st;

        if (stat(path, &st) < 0)
                return;
        /* Nobody can have used the memory of a GPU whose file is empty, and /dev/null's nodes cannot be
         * mapped. */
        if (memory && (st.st_size == 0 || file_is_idle(path)))
                return;
        /* The real driver's node cannot be opened without it: its users are known by registration. */
        if (S_ISCHR(st.st_mode) && major(st.st_rdev) == NVIDIA_MAJOR)
                return;
        if (S_ISREG(st.st_mode) && st.st_size > 0)
                walk->mappable = true;
        walk->marks[walk->n_marks++] = (Mark){
                .inode = st.st_ino,
                .major = major(st.st_dev),
                .minor = minor(st.st_dev),
                .gpu = gpu,
        };
}

static int walk_prepare(Walk *walk, const Tray *tray, const bool *wanted) {
        walk->marks = calloc(2 * tray->header->n_gpus + 1, sizeof(Mark));
        if (!walk->marks)
                return -ENOMEM;

        for (uint32_t i = 0; i < tray->header->n_gpus; i++) {
                char path[192];

                if (wanted && !wanted[i])
                        continue;
                if (tray_node_path(tray->header, &tray->gpus[i], path, sizeof path) >= 0)
                        walk_mark(walk, path, i, false);
                (void) snprintf(path, sizeof path, TRAY_MEMORY_DIRECTORY "/%u", i);
                walk_mark(walk, path, i, true);
        }
        qsort(walk->marks, walk->n_marks, sizeof(Mark), mark_compare);
        return 0;
}

int holders_add(Holders *holders, pid_t pid, uint32_t gpu, bool nvml) {
        int r;

        /* A process's entries are added one after the other. */
        for (size_t i = holders->n; i > 0 && holders->items[i - 1].pid == pid; i--)
                if (holders->items[i - 1].gpu == gpu) {
                        holders->items[i - 1].nvml = holders->items[i - 1].nvml && nvml;
                        return 0;
                }

        r = array_reserve(&holders->items, holders->n, 1);
        if (r < 0)
                return r;
        holders->items[holders->n++] = (Holder){ .pid = pid, .gpu = gpu, .nvml = nvml };
        return 0;
}

/* Whether the descriptor was opened the way NVML does it. */
static bool is_nvml_descriptor(int proc_fd, const char *pid, const char *descriptor) {
        CLEANUP(free_ptr) char *text = NULL;
        char path[64];
        const char *flags;
        unsigned long value;

        (void) snprintf(path, sizeof path, "%s/fdinfo/%s", pid, descriptor);
        if (file_read(proc_fd, path, 65536, &text, NULL) < 0)
                return false;
        flags = strstr(text, "flags:");
        value = flags ? strtoul(flags + strlen("flags:"), NULL, 8) : 0;
        return (value & (O_NONBLOCK | O_DSYNC)) == (O_NONBLOCK | O_DSYNC);
}

static int walk_descriptor(Walk *walk, int proc_fd, int dir_fd, const char *pid, const char *name) {
        struct statx stx;
        const Mark *mark;

        /* Not a stat of old: that would ask the server of a network file system, which may never answer. */
        if (statx(dir_fd, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_INO, &stx) < 0)
                return 0;
        mark = walk_find(walk, stx.stx_ino, stx.stx_dev_major, stx.stx_dev_minor);
        if (!mark)
                return 0;
        return holders_add(walk->holders, (pid_t) strtol(pid, NULL, 10), mark->gpu,
                        is_nvml_descriptor(proc_fd, pid, name));
}

/* Calls `visit` for each name that starts with a digit. */
static int each_number(int dir_fd, int (*visit)(Walk *, int, int, const char *, const char *), Walk *walk,
                int proc_fd, const char *pid) {
        union {
                struct linux_dirent64 entry;
                char bytes[16384];
        } buffer;

        for (;;) {
                long n = syscall(SYS_getdents64, dir_fd, buffer.bytes, sizeof buffer.bytes);

                if (n <= 0)
                        return n < 0 && errno != ENOENT && errno != ESRCH ? -errno : 0;
                for (long at = 0; at < n;) {
                        const struct linux_dirent64 *entry = (const void *) (buffer.bytes + at);
                        int r = 0;

                        at += entry->length;
                        if (entry->name[0] >= '0' && entry->name[0] <= '9')
                                r = visit(walk, proc_fd, dir_fd, pid, entry->name);
                        if (r < 0)
                                return r;
                }
        }
}

/* Lines of "FROM-TO RIGHTS OFFSET MAJOR:MINOR INODE PATH". */
static int walk_maps(Walk *walk, int proc_fd, const char *pid) {
        CLEANUP(free_ptr) char *text = NULL;
        char path[32];
        char *rest, *line;

        (void) snprintf(path, sizeof path, "%s/maps", pid);
        if (file_read(proc_fd, path, 64U << 20, &text, NULL) < 0)
                return 0;

        rest = text;
        while ((line = strsep(&rest, "\n"))) {
                unsigned device_major, device_minor;
                unsigned long long inode;
                const Mark *mark;
                int r;

                if (sscanf(line, "%*s %*s %*s %x:%x %llu", &device_major, &device_minor, &inode) != 3 ||
                                inode == 0)
                        continue;
                mark = walk_find(walk, inode, device_major, device_minor);
                if (!mark)
                        continue;
                r = holders_add(walk->holders, (pid_t) strtol(pid, NULL, 10), mark->gpu, false);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int walk_process(Walk *walk, int proc_fd, int dir_fd, const char *unused, const char *pid) {
        CLEANUP(fd_close) int fd = -1;
        char path[32];
        int r;

        if (strtol(pid, NULL, 10) == getpid())
                return 0;

        (void) snprintf(path, sizeof path, "%.16s/fd", pid);
        fd = openat(proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return 0; /* gone, or not ours to look into */
        r = each_number(fd, walk_descriptor, walk, proc_fd, pid);
        if (r == -ENOMEM)
                return r;
        return walk->mappable ? walk_maps(walk, proc_fd, pid) : 0;
}

int holders_find(const Tray *tray, const bool *wanted, Holders *ret) {
        CLEANUP(fd_close) int proc_fd = -1;
        CLEANUP(holders_done) Holders holders = {};
        CLEANUP(free_ptr) Mark *marks = NULL;
        Walk walk = { .holders = &holders };
        int r;

        r = walk_prepare(&walk, tray, wanted);
        marks = walk.marks;
        if (r < 0)
                return r;
        if (walk.n_marks == 0) {
                *ret = holders;
                return 0;
        }

        proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (proc_fd < 0)
                return -errno;
        r = each_number(proc_fd, walk_process, &walk, proc_fd, NULL);
        if (r < 0)
                return r;

        *ret = holders;
        holders = (Holders){};
        return 0;
}

size_t holders_count(const Holders *holders, uint32_t gpu, bool nvml) {
        size_t n = 0;

        for (size_t i = 0; i < holders->n; i++)
                if (holders->items[i].gpu == gpu && (nvml || !holders->items[i].nvml))
                        n++;
        return n;
}

void holders_done(Holders *holders) {
        free(holders->items);
        *holders = (Holders){};
}
