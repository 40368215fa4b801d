/* SPDX-License-Identifier: MIT */
/* A busy node: crowd PROCESSES FILES has that many processes with that many open files each, says "ready"
 * once they are there, and keeps them until its own end. */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/parse.h"

static void member(uint32_t n_files) __attribute__((noreturn));
static void member(uint32_t n_files) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (uint32_t i = 0; i < n_files; i++)
                if (open("/etc/passwd", O_RDONLY) < 0)
                        _exit(1);
        for (;;)
                (void) pause();
}

int main(int argc, char **argv) {
        uint32_t n_processes, n_files;

        if (argc != 3 || parse_u32(argv[1], 100000, &n_processes) < 0 ||
                        parse_u32(argv[2], 1000, &n_files) < 0) {
                (void) fputs("Usage: crowd PROCESSES FILES\n", stderr);
                return 2;
        }
        for (uint32_t i = 0; i < n_processes; i++) {
                pid_t pid = fork();

                if (pid < 0) {
                        perror("crowd");
                        return 1;
                }
                if (pid == 0)
                        member(n_files);
        }
        (void) sleep(1); /* for the last of them to have opened its files */
        (void) puts("ready");
        (void) fflush(stdout);
        (void) wait(NULL); /* none of them ends by itself */
        return 1;
}
