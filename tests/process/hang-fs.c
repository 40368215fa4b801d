/* SPDX-License-Identifier: MIT */
/* hang-fs FOLDER FILE-SIZE: mounts a file system with one file, FOLDER/hang, whose contents never come: who
 * reads it, waits in the kernel without listening to signals once the kernel has sent the request. It makes
 * the truly stuck process that a failing driver makes. Prints "mounted" when it is. On SIGTERM, or at the
 * end of stdin, it closes the connection, which ends every wait, and unmounts. Raw FUSE protocol 7.31,
 * <linux/fuse.h>. Needs root. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/base/io.h"
#include "agent/base/parse.h"
#include "agent/base/text.h"

#define NODE_FILE     2U /* FUSE_ROOT_ID is 1 */
#define VALID_SECONDS 3600

static uint64_t file_size;

static int reply(int fd, uint64_t unique, int error, const void *data, size_t size) {
        struct fuse_out_header header = {
                .len = (uint32_t) (sizeof header + size),
                .error = error,
                .unique = unique,
        };
        struct iovec parts[] = {
                { .iov_base = &header, .iov_len = sizeof header },
                { .iov_base = (void *) data, .iov_len = size },
        };

        /* ENOENT: who asked was interrupted meanwhile. */
        return writev(fd, parts, size > 0 ? 2 : 1) < 0 && errno != ENOENT ? -errno : 0;
}

static void fill_attr(uint64_t node, struct fuse_attr *ret) {
        *ret = (struct fuse_attr){
                .ino = node,
                .mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0755,
                .nlink = 1,
                .size = node == FUSE_ROOT_ID ? 0 : file_size,
                .blksize = 4096,
        };
}

static int answer_init(int fd, uint64_t unique, const struct fuse_init_in *in) {
        struct fuse_init_out out = {
                .major = FUSE_KERNEL_VERSION,
                .minor = 31,
                .max_readahead = in->max_readahead,
                .max_write = 4096,
                .max_background = 16,
                .congestion_threshold = 12,
        };

        return reply(fd, unique, 0, &out, sizeof out);
}

static int answer(int fd, const struct fuse_in_header *in, const void *data) {
        struct fuse_entry_out entry = {
                .nodeid = NODE_FILE, .entry_valid = VALID_SECONDS, .attr_valid = VALID_SECONDS
        };
        struct fuse_attr_out attr = { .attr_valid = VALID_SECONDS };
        struct fuse_open_out opened = {};
        struct fuse_statfs_out statfs_out = { .st = { .bsize = 4096, .namelen = 255 } };

        switch (in->opcode) {
        case FUSE_INIT: return answer_init(fd, in->unique, data);
        case FUSE_LOOKUP:
                if (in->nodeid != FUSE_ROOT_ID || !streq(data, "hang"))
                        return reply(fd, in->unique, -ENOENT, NULL, 0);
                fill_attr(NODE_FILE, &entry.attr);
                return reply(fd, in->unique, 0, &entry, sizeof entry);
        case FUSE_GETATTR:
                fill_attr(in->nodeid, &attr.attr);
                return reply(fd, in->unique, 0, &attr, sizeof attr);
        case FUSE_OPEN:
        case FUSE_OPENDIR: return reply(fd, in->unique, 0, &opened, sizeof opened);
        case FUSE_STATFS: return reply(fd, in->unique, 0, &statfs_out, sizeof statfs_out);
        case FUSE_READ:      /* this is what we are for */
        case FUSE_INTERRUPT: /* and we do not listen to who has enough of it */
        case FUSE_FORGET:
        case FUSE_BATCH_FORGET: return 0;
        case FUSE_READDIR: /* an empty reply is the end of the folder */
        case FUSE_READDIRPLUS:
        case FUSE_RELEASE:
        case FUSE_RELEASEDIR:
        case FUSE_FLUSH:
        case FUSE_ACCESS: return reply(fd, in->unique, 0, NULL, 0);
        default: return reply(fd, in->unique, -ENOSYS, NULL, 0);
        }
}

static int serve_one(int fd) {
        static _Alignas(struct fuse_in_header) char buffer[FUSE_MIN_READ_BUFFER * 4];
        ssize_t n = read(fd, buffer, sizeof buffer);

        if (n < 0)
                return errno == ENOENT || errno == EINTR || errno == EAGAIN ? 0 : -errno;
        if ((size_t) n < sizeof(struct fuse_in_header))
                return -EIO;
        return answer(fd, (const struct fuse_in_header *) buffer, buffer + sizeof(struct fuse_in_header));
}

static int serve(int fd) {
        CLEANUP(fd_close) int signal_fd = -1;
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGTERM);
        (void) sigaddset(&set, SIGINT);
        (void) sigprocmask(SIG_BLOCK, &set, NULL);
        signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
        if (signal_fd < 0)
                return -errno;

        for (;;) {
                struct pollfd fds[] = {
                        { .fd = fd, .events = POLLIN },
                        { .fd = signal_fd, .events = POLLIN },
                        { .fd = STDIN_FILENO, .events = POLLIN },
                };
                char end;

                if (poll(fds, ELEMENTSOF(fds), -1) < 0)
                        return errno == EINTR ? 0 : -errno;
                if (fds[1].revents || (fds[2].revents && read(STDIN_FILENO, &end, 1) <= 0))
                        return 0;
                if (fds[0].revents) {
                        int r = serve_one(fd);

                        if (r < 0)
                                return r;
                }
        }
}

int main(int argc, char *argv[]) {
        CLEANUP(fd_close) int fd = -1;
        char options[128];
        int r;

        if (argc != 3 || parse_u64(argv[2], UINT32_MAX, &file_size) < 0) {
                (void) fprintf(stderr, "Usage: hang-fs FOLDER FILE-SIZE\n");
                return 2;
        }
        fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
        if (fd < 0) {
                perror("/dev/fuse");
                return EXIT_FAILURE;
        }
        (void) snprintf(options, sizeof options,
                        "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions", fd);
        if (mount("hang-fs", argv[1], "fuse.hang-fs", MS_NOSUID | MS_NODEV, options) < 0) {
                perror(argv[1]);
                return EXIT_FAILURE;
        }
        (void) puts("mounted");
        (void) fflush(stdout);

        r = serve(fd);
        fd_close(&fd);
        fd = -1; /* the kernel ends every request with ENOTCONN now */
        if (umount2(argv[1], MNT_DETACH) < 0)
                perror(argv[1]);
        if (r < 0)
                (void) fprintf(stderr, "hang-fs: %s\n", strerror(-r));
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
