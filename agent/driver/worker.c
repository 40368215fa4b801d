/* SPDX-License-Identifier: MIT */
#include "agent/driver/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/io.h"
#include "agent/driver/record.h"
#include "agent/driver/vendor.h"

static const char *const comm_table[_TASK_KIND_MAX] = {
        [TASK_PROBE] = "gpuagent-probe",
        [TASK_RESET] = "gpuagent-reset",
        [TASK_HOLDERS] = "gpuagent-ps",
        [TASK_LEFTOVERS] = "gpuagent-end",
        [TASK_QUIESCE] = "gpuagent-stop",
        [TASK_RESUME] = "gpuagent-start",
        [TASK_CHECKS] = "gpuagent-check",
        [TASK_TENANTS] = "gpuagent-tenant",
};

static void signals_reset(void) {
        sigset_t none;

        for (int number = 1; number < NSIG; number++)
                (void) signal(number, SIG_DFL); /* KILL, STOP and libc's own say no */
        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The bus connections above all: a worker that hangs must not keep them open when the service is gone. */
static int descriptors_close(int a, int b) {
        unsigned low = (unsigned) (a < b ? a : b), high = (unsigned) (a < b ? b : a);

        if ((low > 3 && close_range(3, low - 1, 0) < 0) ||
                        (high > low + 1 && close_range(low + 1, high - 1, 0) < 0) ||
                        close_range(high + 1, ~0U, 0) < 0)
                return -errno;
        return 0;
}

static _Noreturn void worker_main(const Task *task, pid_t parent, int go_fd, int answer_fd) {
        Answer answer = { .kind = task->kind };
        char go;
        int r;

        /* A group of its own, to be killed with; a session, so that no terminal's signals arrive. */
        (void) setsid();
        signals_reset();
        (void) prctl(PR_SET_NAME, comm_table[task->kind]);

        /* A reset runs to its end; the record keeps a service that was started again from beginning another
         * one. */
        if (task->kind != TASK_RESET) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (getppid() != parent)
                        _exit(EXIT_FAILURE);
        }
        if (descriptors_close(go_fd, answer_fd) < 0)
                _exit(EXIT_FAILURE);

        /* Nothing comes if the parent died, or could not write the record. */
        if (read(go_fd, &go, 1) != 1)
                _exit(EXIT_FAILURE);

        r = vendor_drop_capabilities(task->kind);
        if (r < 0)
                answer_fail(&answer, ANSWER_FAILED, "the driver service cannot drop its capabilities: %s",
                                strerror(-r));
        else
                vendor_run(task, &answer);

        r = answer_write(&answer, answer_fd);
        _exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

static void worker_end(pid_t pid) {
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0); /* it only waits for our word, in no driver */
}

int worker_start(const Task *task, ProcessId *ret_id, int *ret_pidfd, int *ret_pipe_fd) {
        CLEANUP(fd_close)
        int go_read = -1, go_write = -1, answer_read = -1, answer_write_fd = -1, pidfd = -1;
        Record record = { .kind = task->kind, .deadline_usec = task->deadline_usec, .n_processes = 1 };
        ProcessId *id = &record.processes[0];
        int fds[2], r;
        pid_t pid, parent = getpid();

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        go_read = fds[0], go_write = fds[1];
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        answer_read = fds[0], answer_write_fd = fds[1];
        if (fcntl(answer_read, F_SETFL, O_NONBLOCK) < 0)
                return -errno;

        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0)
                worker_main(task, parent, go_read, answer_write_fd);

        /* Recorded before it may begin: whatever happens to us from here on, our successor knows about
         * it. */
        r = process_id_read(pid, id);
        if (r >= 0)
                r = process_open(id, &pidfd);
        if (r >= 0)
                r = record_write(task->record, &record);
        if (r >= 0 && write(go_write, "", 1) != 1)
                r = -errno;
        if (r < 0) {
                worker_end(pid);
                return r;
        }

        *ret_id = *id;
        *ret_pidfd = take_fd(&pidfd);
        *ret_pipe_fd = take_fd(&answer_read);
        return 0;
}
