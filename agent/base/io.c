/* SPDX-License-Identifier: MIT */
#include "agent/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/array.h"
#include "agent/base/cleanup.h"

/* With the NUL behind it a page, which is what /proc gives at a time. */
#define READ_SIZE 4095U

void fd_close(int *fd) {
        if (*fd >= 0)
                (void) close(*fd);
}

int take_fd(int *fd) {
        int taken = *fd;

        *fd = -1;
        return taken;
}

int fd_read_all(int fd, size_t max, char **ret_text, size_t *ret_size) {
        CLEANUP(free_ptr) char *text = NULL;
        size_t size = 0;

        for (;;) {
                ssize_t n;
                int r;

                r = array_reserve(&text, size, READ_SIZE + 1);
                if (r < 0)
                        return r;

                n = read(fd, text + size, READ_SIZE);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;

                size += (size_t) n;
                if (size > max)
                        return -EFBIG;
        }

        text[size] = '\0';
        *ret_text = take_ptr(&text);
        if (ret_size)
                *ret_size = size;
        return 0;
}

int file_read(int dir_fd, const char *path, size_t max, char **ret_text, size_t *ret_size) {
        CLEANUP(fd_close) int fd = -1;
        struct stat st;

        /* O_NONBLOCK: a fifo put in the place of a file must not stop us. */
        fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -EINVAL;

        return fd_read_all(fd, max, ret_text, ret_size);
}

int fd_write_all(int fd, const void *data, size_t size) {
        const char *p = data;

        while (size > 0) {
                ssize_t n = write(fd, p, size);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                p += n;
                size -= (size_t) n;
        }

        return 0;
}

int file_write_atomic(const char *path, const char *text, size_t size, mode_t mode) {
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
        CLEANUP(free_ptr) char *temporary = NULL;
        CLEANUP(fd_close) int fd = -1;
        int r;

        /* Who reads all files of a folder passes over such names. Nobody else who writes the file has this
         * one. */
        if (asprintf(&temporary, "%.*s.%s.%d.new", (int) (name - path), path, name, (int) getpid()) < 0)
                return -ENOMEM;

        /* What is there already was left by somebody who did not get to the rename, or is no file: a fifo
         * would stop us for good. */
        if (unlink(temporary) < 0 && errno != ENOENT)
                return -errno;
        fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
        if (fd < 0)
                return -errno;

        r = fd_write_all(fd, text, size);
        if (r >= 0 && fchmod(fd, mode) < 0)
                r = -errno;
        /* Some file systems have the new name on disk before what is in the file, and say only here that
         * they are full. */
        if (r >= 0 && fsync(fd) < 0)
                r = -errno;
        if (r >= 0 && rename(temporary, path) < 0)
                r = -errno;
        if (r < 0)
                (void) unlink(temporary); /* what could not be written is of no use */
        return r;
}
