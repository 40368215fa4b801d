/* SPDX-License-Identifier: MIT */
#include "agent/driver/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/base/io.h"

#define STAT_MAX 4096

int process_stat_parse(const char *text, ProcessStat *ret) {
        const char *open = strchr(text, '('), *close = strrchr(text, ')');
        ProcessStat stat = {};
        size_t n;

        if (!open || !close || close < open)
                return -EINVAL;
        n = (size_t) (close - open) - 1;
        if (n >= sizeof stat.command)
                n = sizeof stat.command - 1;
        memcpy(stat.command, open + 1, n);

        /* Field 3 is the state, field 22 the start time. */
        if (sscanf(close + 1,
                            " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
                            "%" SCNu64,
                            &stat.state, &stat.start_time) != 2)
                return -EINVAL;

        *ret = stat;
        return 0;
}

int process_uid_parse(const char *text, uid_t *ret) {
        const char *line = strstr(text, "\nUid:\t");
        uint32_t uid;

        if (!line || sscanf(line + strlen("\nUid:\t"), "%" SCNu32, &uid) != 1)
                return -EINVAL;
        *ret = uid;
        return 0;
}

/* Reads a small file of /proc/PID. 0 · -ESRCH · -errno. */
static int process_read(pid_t pid, const char *name, char text[static STAT_MAX]) {
        char path[sizeof "/proc//status" + 11];
        CLEANUP(fd_close) int fd = -1;
        ssize_t n;

        (void) snprintf(path, sizeof path, "/proc/%d/%s", (int) pid, name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? -ESRCH : -errno;
        n = read(fd, text, STAT_MAX - 1);
        if (n < 0)
                return -errno;
        text[n] = '\0';
        return 0;
}

int process_stat_read(pid_t pid, ProcessStat *ret) {
        char text[STAT_MAX];
        int r;

        r = process_read(pid, "stat", text);
        return r < 0 ? r : process_stat_parse(text, ret);
}

int process_uid_read(pid_t pid, uid_t *ret) {
        char text[STAT_MAX];
        int r;

        r = process_read(pid, "status", text);
        return r < 0 ? r : process_uid_parse(text, ret);
}

int process_id_read(pid_t pid, ProcessId *ret) {
        ProcessStat stat;
        int r;

        r = process_stat_read(pid, &stat);
        if (r < 0)
                return r;
        *ret = (ProcessId){ .pid = pid, .start_time = stat.start_time };
        return 0;
}

int process_open(const ProcessId *id, int *ret_fd) {
        CLEANUP(fd_close) int fd = -1;
        struct pollfd poll_fd;
        ProcessId now;
        int r;

        fd = (int) syscall(SYS_pidfd_open, id->pid, 0);
        if (fd < 0)
                return errno == EINVAL ? -ESRCH : -errno; /* EINVAL: the pid is a thread's by now */

        /* Read after the descriptor was opened: what it stands for cannot change any more. */
        r = process_id_read(id->pid, &now);
        if (r < 0)
                return r;
        if (now.start_time != id->start_time)
                return -ESRCH;

        poll_fd = (struct pollfd){ .fd = fd, .events = POLLIN };
        if (poll(&poll_fd, 1, 0) > 0)
                return -ESRCH; /* a zombie: it holds nothing any more */

        *ret_fd = take_fd(&fd);
        return 0;
}
