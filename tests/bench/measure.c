/* SPDX-License-Identifier: MIT */
/* measure RUNS CMD ARG...: runs a command that often and prints, per run, the wall time that one in ten
 * stays below, so that others on the machine disturb little, and the mean CPU time of all processes of this
 * PID namespace, services that worked for it included, both in microseconds. The command's output is thrown
 * away. */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/base/clock.h"
#include "agent/base/io.h"
#include "agent/base/parse.h"

#define RUNS_MAX 10000

/* utime, stime, cutime and cstime: fields 14 to 17 of proc(5). */
static uint64_t process_ticks(const char *pid) {
        CLEANUP(free_ptr) char *text = NULL;
        unsigned long long times[4];
        char path[64];
        const char *p;

        (void) snprintf(path, sizeof path, "/proc/%s/stat", pid);
        if (file_read(AT_FDCWD, path, 4096, &text, NULL) < 0)
                return 0; /* gone meanwhile: in its parent's sums */
        p = strrchr(text, ')');
        if (!p ||
                        sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu",
                                        &times[0], &times[1], &times[2], &times[3]) != 4)
                return 0;
        return times[0] + times[1] + times[2] + times[3];
}

static uint64_t all_ticks(void) {
        const struct dirent *entry;
        uint64_t sum = 0;
        DIR *proc = opendir("/proc");

        if (!proc) {
                perror("measure: /proc");
                exit(1);
        }
        while ((entry = readdir(proc)))
                if (isdigit((unsigned char) entry->d_name[0]))
                        sum += process_ticks(entry->d_name);
        (void) closedir(proc);
        return sum;
}

static usec_t run(char **argv, int null_fd) {
        usec_t start;
        pid_t pid;
        int status;

        (void) lseek(STDIN_FILENO, 0, SEEK_SET); /* a file on it is read anew by each run */
        start = now_monotonic_usec();
        pid = vfork();
        if (pid == 0) {
                (void) dup2(null_fd, STDOUT_FILENO);
                (void) execvp(argv[0], argv);
                _exit(127);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
                (void) fprintf(stderr, "measure: %s failed\n", argv[0]);
                exit(1);
        }
        return now_monotonic_usec() - start;
}

static int compare(const void *a, const void *b) {
        const usec_t *x = a, *y = b;

        return *x < *y ? -1 : *x > *y;
}

int main(int argc, char **argv) {
        static usec_t times[RUNS_MAX];
        CLEANUP(fd_close) int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
        uint64_t ticks;
        uint32_t n;

        if (null_fd < 0 || argc < 3 || parse_u32(argv[1], RUNS_MAX, &n) < 0 || n == 0) {
                (void) fputs("Usage: measure RUNS CMD ARG...\n", stderr);
                return 2;
        }
        (void) run(argv + 2, null_fd); /* caches are warm for every candidate */

        ticks = all_ticks();
        for (uint32_t i = 0; i < n; i++)
                times[i] = run(argv + 2, null_fd);
        ticks = all_ticks() - ticks;

        qsort(times, n, sizeof *times, compare);
        (void) printf("%llu %llu\n", (unsigned long long) times[n / 10],
                        (unsigned long long) (ticks * (USEC_PER_SEC / (uint64_t) sysconf(_SC_CLK_TCK)) / n));
        return 0;
}
