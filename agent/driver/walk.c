/* SPDX-License-Identifier: MIT */
#include "agent/driver/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/base/io.h"

/* NV_MAJOR_DEVICE_NUMBER of the kernel module; minors from 254 on are not GPUs (nvidia-modeset,
 * nvidiactl). */
#define NVIDIA_MAJOR  195U
#define NVIDIA_MINORS 254U

#define FDINFO_MAX 65536

/* A node by the file system it lies in; two GPUs never share one. */
typedef struct Node {
        uint64_t device;
        uint64_t inode;
        size_t gpu;
} Node;

typedef struct Walk {
        const WalkGpu *gpus;
        size_t n_gpus;
        size_t by_minor[NVIDIA_MINORS]; /* index + 1 of the GPU with that minor */
        Node *nodes;                    /* sorted by inode */
        size_t n_nodes;
        pid_t *seen; /* per GPU: the pid that was last found to hold it */
        WalkFound found;
        void *userdata;
        _Alignas(struct dirent64) char buffer[32768]; /* of getdents64 and maps */
} Walk;

static Walk* walk_free(Walk *walk) {
        if (!walk)
                return NULL;
        free(walk->nodes);
        free(walk->seen);
        free(walk);
        return NULL;
}

DEFINE_CLEANUP(Walk, walk_free_ptr, walk_free)

static uint64_t device_of(const struct statx *st) {
        return makedev(st->stx_dev_major, st->stx_dev_minor);
}

/* Without asking a file system for news: one that never answers would hold us, too. */
static int node_stat(int dir_fd, const char *path, struct statx *ret) {
        return statx(dir_fd, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE | STATX_INO, ret) < 0
                        ? -errno
                        : 0;
}

static int compare_nodes(const void *a, const void *b) {
        const Node *x = a, *y = b;

        return x->inode < y->inode ? -1 : x->inode > y->inode;
}

static int walk_find_nodes(Walk *walk, const char *devices) {
        walk->nodes = calloc(walk->n_gpus + 1, sizeof *walk->nodes);
        walk->seen = calloc(walk->n_gpus + 1, sizeof *walk->seen);
        if (!walk->nodes || !walk->seen)
                return -ENOMEM;

        for (size_t i = 0; i < walk->n_gpus; i++) {
                CLEANUP(free_ptr) char *path = NULL;
                uint32_t minor_number = walk->gpus[i].minor;
                struct statx st;

                if (minor_number == UNKNOWN_U32)
                        continue;
                if (minor_number < NVIDIA_MINORS)
                        walk->by_minor[minor_number] = i + 1;
                if (asprintf(&path, "%s/nvidia%u", devices, minor_number) < 0) {
                        path = NULL;
                        return -ENOMEM;
                }
                if (node_stat(AT_FDCWD, path, &st) < 0)
                        continue; /* no such node: nobody can have it open by that name */
                walk->nodes[walk->n_nodes++] =
                                (Node){ .device = device_of(&st), .inode = st.stx_ino, .gpu = i };
        }

        qsort(walk->nodes, walk->n_nodes, sizeof *walk->nodes, compare_nodes);
        return 0;
}

/* Index + 1 of the GPU whose node it is, or 0. */
static size_t walk_match_node(const Walk *walk, uint64_t device, uint64_t inode) {
        size_t low = 0, high = walk->n_nodes;

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (walk->nodes[middle].inode < inode)
                        low = middle + 1;
                else
                        high = middle;
        }
        for (; low < walk->n_nodes && walk->nodes[low].inode == inode; low++)
                if (walk->nodes[low].device == device)
                        return walk->nodes[low].gpu + 1;
        return 0;
}

static size_t walk_match(const Walk *walk, const struct statx *st) {
        if (S_ISCHR(st->stx_mode) && st->stx_rdev_major == NVIDIA_MAJOR &&
                        st->stx_rdev_minor < NVIDIA_MINORS && walk->by_minor[st->stx_rdev_minor] > 0)
                return walk->by_minor[st->stx_rdev_minor];
        return walk_match_node(walk, device_of(st), st->stx_ino);
}

/* Tells about a GPU (index + 1; 0 is none) that the process holds. */
static int walk_tell(Walk *walk, size_t match, pid_t pid, int process_fd) {
        if (match == 0 || walk->seen[match - 1] == pid)
                return 0;
        walk->seen[match - 1] = pid;
        return walk->found(&walk->gpus[match - 1], pid, process_fd, walk->userdata);
}

static bool is_number(const char *s) {
        return *s >= '0' && *s <= '9';
}

/* An O_PATH descriptor only names the node: the driver knows nothing of it. */
static bool is_path_only(int process_fd, const char *number) {
        CLEANUP(free_ptr) char *text = NULL;
        char path[32];
        const char *flags;

        (void) snprintf(path, sizeof path, "fdinfo/%.20s", number);
        if (file_read(process_fd, path, FDINFO_MAX, &text, NULL) < 0)
                return false;
        flags = strstr(text, "flags:\t");
        return flags && (strtoul(flags + strlen("flags:\t"), NULL, 8) & O_PATH);
}

static int walk_descriptors(Walk *walk, pid_t pid, int process_fd) {
        CLEANUP(fd_close) int fd = -1;
        ssize_t size;

        fd = openat(process_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return 0;

        while ((size = syscall(SYS_getdents64, fd, walk->buffer, sizeof walk->buffer)) > 0)
                for (ssize_t at = 0; at < size;) {
                        const struct dirent64 *entry = (const struct dirent64 *) (walk->buffer + at);
                        struct statx st;
                        size_t match;
                        int r;

                        at += entry->d_reclen;
                        if (!is_number(entry->d_name) || node_stat(fd, entry->d_name, &st) < 0)
                                continue;
                        match = walk_match(walk, &st);
                        if (match > 0 && is_path_only(process_fd, entry->d_name))
                                continue;
                        r = walk_tell(walk, match, pid, process_fd);
                        if (r < 0)
                                return r;
                }
        return 0;
}

/* A number that ends with `end`, and what follows that; NULL if it is none. */
static const char* scan_number(const char *s, int base, char end, unsigned long long *ret) {
        char *rest;

        if (!s || *s == ' ' || *s == '-')
                return NULL;
        *ret = strtoull(s, &rest, base);
        return rest > s && *rest == end ? rest + 1 : NULL;
}

int maps_line_parse(const char *line, uint32_t *ret_major, uint32_t *ret_minor, uint64_t *ret_inode,
                char *ret_range, size_t range_size) {
        unsigned long long start, end, offset, device_major, device_minor, inode;
        const char *p = line, *perms;

        /* "start-end perms offset major:minor inode   path" */
        p = scan_number(p, 16, '-', &start);
        perms = scan_number(p, 16, ' ', &end);
        p = perms ? strchr(perms, ' ') : NULL;
        p = scan_number(p ? p + 1 : NULL, 16, ' ', &offset);
        p = scan_number(p, 16, ':', &device_major);
        p = scan_number(p, 16, ' ', &device_minor);
        if (!p || *p < '0' || *p > '9')
                return -EINVAL;
        inode = strtoull(p, NULL, 10);
        if (inode == 0)
                return -ENOENT;

        *ret_major = (uint32_t) device_major;
        *ret_minor = (uint32_t) device_minor;
        *ret_inode = inode;
        (void) snprintf(ret_range, range_size, "map_files/%llx-%llx", start, end);
        return 0;
}

/* A line of maps names the node's own place, not the device that it stands for; the link in map_files, which
 * needs rights that a container may lack, leads to that. */
static int walk_map(Walk *walk, const char *line, pid_t pid, int process_fd) {
        uint32_t device_major, device_minor;
        char range[64];
        struct statx st;
        uint64_t inode;
        size_t match;

        if (maps_line_parse(line, &device_major, &device_minor, &inode, range, sizeof range) < 0)
                return 0;
        match = walk_match_node(walk, makedev(device_major, device_minor), inode);
        if (match == 0 && strstr(line, "/nvidia") && node_stat(process_fd, range, &st) >= 0)
                match = walk_match(walk, &st);
        return walk_tell(walk, match, pid, process_fd);
}

static int walk_maps(Walk *walk, pid_t pid, int process_fd) {
        CLEANUP(fd_close) int fd = -1;
        size_t kept = 0;
        ssize_t size;

        fd = openat(process_fd, "maps", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return 0;

        while ((size = read(fd, walk->buffer + kept, sizeof walk->buffer - kept)) > 0) {
                char *line = walk->buffer, *end;
                size_t n = kept + (size_t) size;

                while ((end = memchr(line, '\n', n))) {
                        int r;

                        *end = '\0';
                        r = walk_map(walk, line, pid, process_fd);
                        if (r < 0)
                                return r;
                        n -= (size_t) (end + 1 - line);
                        line = end + 1;
                }
                if (n == sizeof walk->buffer)
                        return 0; /* no path is that long */
                memmove(walk->buffer, line, n);
                kept = n;
        }
        return 0;
}

static int walk_process(Walk *walk, int proc_fd, const char *name) {
        CLEANUP(fd_close) int process_fd = -1;
        pid_t pid = (pid_t) strtol(name, NULL, 10);
        int r;

        process_fd = openat(proc_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (process_fd < 0)
                return 0; /* gone */
        r = walk_descriptors(walk, pid, process_fd);
        return r < 0 ? r : walk_maps(walk, pid, process_fd);
}

static bool is_excepted(pid_t pid, const pid_t *except, size_t n_except) {
        for (size_t i = 0; i < n_except; i++)
                if (except[i] == pid)
                        return true;
        return false;
}

int walk_processes(const WalkGpu *gpus, size_t n_gpus, const char *devices, const pid_t *except,
                size_t n_except, WalkFound found, void *userdata) {
        CLEANUP(walk_free_ptr) Walk *walk = NULL;
        CLEANUP(fd_close) int proc_fd = -1;
        _Alignas(struct dirent64) char buffer[8192];
        ssize_t size;
        int r;

        walk = calloc(1, sizeof *walk);
        if (!walk)
                return -ENOMEM;
        walk->gpus = gpus;
        walk->n_gpus = n_gpus;
        walk->found = found;
        walk->userdata = userdata;
        r = walk_find_nodes(walk, devices);
        if (r < 0)
                return r;

        proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (proc_fd < 0)
                return -errno;
        while ((size = syscall(SYS_getdents64, proc_fd, buffer, sizeof buffer)) > 0)
                for (ssize_t at = 0; at < size;) {
                        const struct dirent64 *entry = (const struct dirent64 *) (buffer + at);

                        at += entry->d_reclen;
                        if (!is_number(entry->d_name) ||
                                        is_excepted((pid_t) strtol(entry->d_name, NULL, 10), except,
                                                        n_except))
                                continue;
                        r = walk_process(walk, proc_fd, entry->d_name);
                        if (r < 0)
                                return r;
                }
        return size < 0 ? -errno : 0;
}
