/* SPDX-License-Identifier: MIT */
#include "agent/driver/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/io.h"
#include "agent/base/text.h"
#include "agent/driver/child.h"
#include "agent/driver/quiesced.h"
#include "agent/driver/watch.h"
#include "agent/log/log.h"

/* A killed process that is not stuck is gone after this. */
#define KILL_GRACE_USEC (2 * USEC_PER_SEC)

#define WAITING_MAX 256

#define STOPPING_MESSAGE "the driver service is stopping"

typedef enum WorkerState {
        WORKER_IDLE,
        WORKER_RUNNING, /* our own worker, before its deadline */
        WORKER_FOREIGN, /* what an earlier run, or a worker that died, left behind; before its deadline */
        WORKER_KILLED,  /* past it; it should be gone any moment */
        WORKER_STUCK,   /* it is not */
} WorkerState;

/* A request that waits or is at work. */
typedef struct Job {
        WorkerRequest request;
        Worker *worker;
        sd_event_source *deadline;
        struct Job *next;
} Job;

struct Worker {
        sd_event *event;
        Settings *settings;
        char *record_path, *quiesced_path;
        GpuTable table;

        Job *waiting;
        WorkerState state;
        sd_event_source *timer; /* of WORKER_FOREIGN and WORKER_KILLED */

        TaskKind kind; /* of what is at work */
        Job *job;      /* NULL once it was answered, or for an earlier run's */
        ProcessId child;
        WatchSet watched;
        int pipe_fd;
        sd_event_source *pipe_source;
        char *data;
        size_t size, room;

        bool stopping;
        void (*stopped)(void *userdata);
        void *stopped_userdata;
};

static void worker_kick(Worker *worker);

static Job* job_free(Job *job) {
        if (!job)
                return NULL;
        (void) sd_event_source_disable_unref(job->deadline);
        strv_free(job->request.uuids);
        strv_free(job->request.tenants);
        free(job);
        return NULL;
}

DEFINE_CLEANUP(Job, job_free_ptr, job_free)

/* Answers and frees a job that is no longer in any list. */
static void job_finish(Job *job, Answer *answer) {
        answer->kind = job->request.kind;
        job->request.done(answer, job->request.userdata);
        answer_done(answer);
        job_free(job);
}

static void job_fail(Job *job, AnswerError error, const char *message) {
        Answer answer = { .kind = job->request.kind };

        answer_fail(&answer, error, "%s", message);
        job_finish(job, &answer);
}

static void worker_refuse_waiting(Worker *worker, AnswerError error, const char *message) {
        Job *job;

        while ((job = worker->waiting)) {
                worker->waiting = job->next;
                job_fail(job, error, message);
        }
}

/* What keeps the driver busy, for people. */
static void worker_describe(const Worker *worker, char *ret, size_t size) {
        int pid = (int) watch_first(&worker->watched);
        const char *what = task_kind_to_string(worker->kind);

        switch (worker->state) {
        case WORKER_IDLE: (void) snprintf(ret, size, "the GPU driver is idle"); return;
        case WORKER_RUNNING:
                (void) snprintf(ret, size, "the GPU driver is still busy with a %s (pid %d)", what, pid);
                return;
        case WORKER_FOREIGN:
                (void) snprintf(ret, size,
                                "the GPU driver is still busy with a %s (pid %d) that an earlier run left "
                                "behind",
                                what, pid);
                return;
        case WORKER_KILLED:
        case WORKER_STUCK:
                (void) snprintf(ret, size,
                                "the GPU driver hangs: an earlier %s (pid %d) cannot be killed; "
                                "if it stays, reboot the tray",
                                what, pid);
                return;
        }
}

static void worker_pipe_close(Worker *worker) {
        worker->pipe_source = sd_event_source_disable_unref(worker->pipe_source);
        fd_close(&worker->pipe_fd);
        worker->pipe_fd = -1;
        free(worker->data);
        worker->data = NULL;
        worker->size = worker->room = 0;
}

/* Reads what is there. 1 more may come · 0 the end · -EBADMSG more than an answer · -errno. */
static int worker_drain(Worker *worker) {
        for (;;) {
                ssize_t n;

                if (worker->size == worker->room) {
                        size_t room = worker->room == 0 ? 65536 : worker->room * 2;
                        char *larger;

                        if (worker->size > answer_size_max(worker->kind))
                                return -EBADMSG;
                        larger = realloc(worker->data, room);
                        if (!larger)
                                return -ENOMEM;
                        worker->data = larger;
                        worker->room = room;
                }

                n = read(worker->pipe_fd, worker->data + worker->size, worker->room - worker->size);
                if (n < 0)
                        return errno == EAGAIN || errno == EINTR ? 1 : -errno;
                if (n == 0)
                        return 0;
                worker->size += (size_t) n;
        }
}

static int on_pipe_readable(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Worker *worker = userdata;

        /* At the end, or with nonsense, all that is left is to wait for the process to go. */
        if (worker_drain(worker) <= 0)
                worker->pipe_source = sd_event_source_disable_unref(worker->pipe_source);
        return 0;
}

/* Watches what is recorded and still there. */
static void worker_watch_recorded(Worker *worker) {
        Record record;
        int r;

        r = record_read(worker->record_path, &record);
        if (r >= 0)
                r = watch_add_recorded(&worker->watched, &record);
        if (r < 0 && r != -ENOENT)
                (void) log_errno(r, "Cannot watch the processes in %s", worker->record_path);
}

static int on_kill_grace(sd_event_source *source, uint64_t now, void *userdata) {
        Worker *worker = userdata;
        char message[256];

        worker->timer = sd_event_source_disable_unref(worker->timer);
        worker->state = WORKER_STUCK;
        worker_describe(worker, message, sizeof message);
        log_message(LOG_CRIT, "%s", message);
        worker_refuse_waiting(worker, ANSWER_UNRESPONSIVE, message);
        if (worker->stopping)
                worker->stopped(worker->stopped_userdata);
        return 0;
}

static int worker_arm(Worker *worker, usec_t at_usec, sd_event_time_handler_t handler) {
        worker->timer = sd_event_source_disable_unref(worker->timer);
        return sd_event_add_time(
                        worker->event, &worker->timer, CLOCK_MONOTONIC, at_usec, 1, handler, worker);
}

/* Kills what is at work with all its programs. The state is WORKER_KILLED until they are gone. */
static void worker_kill(Worker *worker) {
        int r;

        worker_watch_recorded(worker);
        watch_kill(&worker->watched);
        worker->state = WORKER_KILLED;
        r = worker_arm(worker, now_monotonic_usec() + KILL_GRACE_USEC, on_kill_grace);
        if (r < 0)
                (void) log_errno(r, "Cannot arm a timer");
}

static int on_foreign_deadline(sd_event_source *source, uint64_t now, void *userdata) {
        Worker *worker = userdata;

        log_message(LOG_ERR, "The %s that was left behind did not end in time, killing it",
                        task_kind_to_string(worker->kind));
        worker_kill(worker);
        return 0;
}

/* Nothing of the last operation is left. */
static void worker_settle(Worker *worker) {
        if (worker->state == WORKER_STUCK)
                log_message(LOG_NOTICE, "The process that was stuck in the GPU driver is gone");
        worker->timer = sd_event_source_disable_unref(worker->timer);
        worker->state = WORKER_IDLE;
        if (unlink(worker->record_path) < 0 && errno != ENOENT)
                (void) log_errno(-errno, "Cannot remove %s", worker->record_path);
        worker_kick(worker);
}

static void table_learn(Worker *worker, const Answer *answer) {
        int r;

        table_update(&worker->table, answer->looks, answer->n_looks);
        if (answer->kind != TASK_PROBE || answer->error != ANSWER_OK)
                return;
        if (!answer->complete) {
                table_update(&worker->table, answer->samples, answer->n);
                return;
        }
        r = table_replace(&worker->table, answer->samples, answer->n);
        if (r < 0)
                (void) log_errno(r, "Cannot remember the GPUs");
}

/* Our own worker has ended: what it said, or how it died, is the answer. */
static void worker_child_gone(Worker *worker, int pidfd) {
        Answer answer = { .kind = worker->kind };
        Job *job = take_ptr(&worker->job);
        siginfo_t info = {};
        int r;

        (void) worker_drain(worker);
        if (waitid(P_PIDFD, (id_t) pidfd, &info, WEXITED | WNOHANG) < 0)
                (void) log_errno(-errno, "Cannot learn how process %d ended", (int) worker->child.pid);
        worker->child = (ProcessId){};

        if (!job) {
                worker_pipe_close(worker);
                return;
        }

        r = answer_parse(worker->kind, worker->data, worker->size, &answer);
        worker_pipe_close(worker);
        if (r < 0 && info.si_code != CLD_EXITED)
                answer_fail(&answer, ANSWER_FAILED,
                                "the %s died by signal %d inside the GPU driver's library",
                                task_kind_to_string(worker->kind), info.si_status);
        else if (r < 0)
                answer_fail(&answer, ANSWER_FAILED, "the %s ended without a valid answer",
                                task_kind_to_string(worker->kind));
        if (answer.warning[0])
                log_message(LOG_WARNING, "%s", answer.warning);

        table_learn(worker, &answer);
        job_finish(job, &answer);
}

static void on_process_gone(const ProcessId *id, int pidfd, void *userdata) {
        Worker *worker = userdata;

        if (id->pid == worker->child.pid) {
                usec_t deadline_usec = worker->job ? worker->job->request.deadline_usec : 0;

                worker_child_gone(worker, pidfd);

                /* It may have gone before its program. That one has the time that the worker had, or is
                 * killed, too. */
                worker_watch_recorded(worker);
                if (worker->watched.n > 0 && worker->state != WORKER_RUNNING)
                        watch_kill(&worker->watched);
                else if (worker->watched.n > 0) {
                        worker->state = WORKER_FOREIGN;
                        if (worker_arm(worker, deadline_usec, on_foreign_deadline) < 0)
                                worker_kill(worker);
                }
        }

        if (worker->watched.n == 0)
                worker_settle(worker);
}

static void waiting_remove(Worker *worker, const Job *job) {
        for (Job **link = &worker->waiting; *link; link = &(*link)->next)
                if (*link == job) {
                        *link = job->next;
                        return;
                }
}

static int on_job_deadline(sd_event_source *source, uint64_t now, void *userdata) {
        Job *job = userdata;
        Worker *worker = job->worker;
        char message[256];

        if (job != worker->job) {
                worker_describe(worker, message, sizeof message);
                waiting_remove(worker, job);
                job_fail(job, ANSWER_UNRESPONSIVE, message);
                return 0;
        }

        (void) snprintf(message, sizeof message, "%s a %s in time; its process (pid %d) was killed",
                        task_kind_needs_driver(worker->kind) ? "the GPU driver did not answer"
                                                             : "the system did not finish",
                        task_kind_to_string(worker->kind), (int) worker->child.pid);
        log_message(LOG_ERR, "%s", message);
        worker->job = NULL;
        worker_kill(worker);
        job_fail(job, ANSWER_UNRESPONSIVE, message);
        return 0;
}

/* Begins the job. 0 · -errno, and the job is still the caller's. */
static int worker_start(Worker *worker, Job *job) {
        CLEANUP(fd_close) int pidfd = -1, pipe_fd = -1;
        Task task = {
                .kind = job->request.kind,
                .config = settings_get(worker->settings),
                .table = &worker->table,
                .record = worker->record_path,
                .quiesced = worker->quiesced_path,
                .uuids = job->request.uuids,
                .tenants = job->request.tenants,
                .deadline_usec = job->request.deadline_usec,
        };
        int r;

        r = child_start(&task, &worker->child, &pidfd, &pipe_fd);
        if (r < 0)
                return r;

        worker->kind = task.kind;
        worker->state = WORKER_RUNNING;
        r = watch_add(&worker->watched, &worker->child, take_fd(&pidfd));
        if (r < 0) {
                /* Out of memory: without a watch nothing would ever be noticed. The record keeps its
                 * name. */
                (void) kill(worker->child.pid, SIGKILL);
                (void) waitpid(worker->child.pid, NULL, WNOHANG);
                worker->state = WORKER_IDLE;
                return r;
        }

        worker->pipe_fd = take_fd(&pipe_fd);
        worker->job = job;
        r = sd_event_add_io(worker->event, &worker->pipe_source, worker->pipe_fd, EPOLLIN, on_pipe_readable,
                        worker);
        if (r < 0)
                (void) log_errno(r,
                                "Cannot watch a worker's answer"); /* it is read when the process is gone */
        return 0;
}

/* Begins what waits, if nothing is at work. */
static void worker_kick(Worker *worker) {
        while (worker->state == WORKER_IDLE && worker->waiting && !worker->stopping) {
                Job *job = worker->waiting;
                char message[256];
                int r;

                worker->waiting = job->next;
                job->next = NULL;
                r = worker_start(worker, job);
                if (r >= 0)
                        return;
                (void) snprintf(message, sizeof message, "cannot start a worker, or record it in %s: %s",
                                worker->record_path, strerror(-r));
                log_message(LOG_ERR, "%s", message);
                job_fail(job, ANSWER_FAILED, message);
        }

        if (worker->state == WORKER_IDLE && worker->stopping)
                worker->stopped(worker->stopped_userdata);
}

int worker_submit(Worker *worker, const WorkerRequest *request) {
        CLEANUP(job_free_ptr) Job *job = NULL;
        Job **end = &worker->waiting;
        size_t n = 0;
        char message[256];
        int r;

        job = calloc(1, sizeof *job);
        if (!job)
                return -ENOMEM;
        job->request = *request;
        job->request.uuids = job->request.tenants = NULL; /* ours only once nothing can fail any more */
        job->worker = worker;

        for (; *end; end = &(*end)->next)
                n++;
        if (n >= WAITING_MAX)
                return -ENOBUFS;
        r = sd_event_add_time(worker->event, &job->deadline, CLOCK_MONOTONIC, request->deadline_usec, 1,
                        on_job_deadline, job);
        if (r < 0)
                return r;
        job->request.uuids = request->uuids;
        job->request.tenants = request->tenants;

        if (worker->stopping) {
                job_fail(take_ptr(&job), ANSWER_FAILED, STOPPING_MESSAGE);
                return 0;
        }
        if (worker->state == WORKER_STUCK) {
                worker_describe(worker, message, sizeof message);
                job_fail(take_ptr(&job), ANSWER_UNRESPONSIVE, message);
                return 0;
        }

        *end = take_ptr(&job);
        worker_kick(worker);
        return 0;
}

void worker_forget(Worker *worker, const void *owner) {
        for (Job **link = &worker->waiting; *link;) {
                Job *job = *link;

                if (job->request.owner == owner) {
                        *link = job->next;
                        job_fail(job, ANSWER_FAILED, "nobody waits for it any more");
                } else
                        link = &job->next;
        }
}

void worker_stop(Worker *worker, void (*stopped)(void *userdata), void *userdata) {
        Job *job;

        worker->stopping = true;
        worker->stopped = stopped;
        worker->stopped_userdata = userdata;
        worker_refuse_waiting(worker, ANSWER_FAILED, STOPPING_MESSAGE);

        if ((worker->state == WORKER_RUNNING || worker->state == WORKER_FOREIGN) &&
                        worker->kind == TASK_RESET) {
                log_message(LOG_NOTICE, "A reset is running, waiting for its end");
                return;
        }

        job = take_ptr(&worker->job);
        if (worker->state == WORKER_RUNNING || worker->state == WORKER_FOREIGN)
                worker_kill(worker);
        if (job)
                job_fail(job, ANSWER_FAILED, STOPPING_MESSAGE);
        stopped(userdata); /* what does not go when it is killed is in the record */
}

/* Takes over what an earlier run left behind. */
static int worker_recover(Worker *worker) {
        Record record;
        int r;

        r = record_read(worker->record_path, &record);
        if (r == -ENOENT)
                return 0;
        if (r < 0) {
                (void) log_errno(
                                r, "Cannot read %s, taking it that nothing is at work", worker->record_path);
                return 0;
        }

        worker->kind = record.kind;
        worker_watch_recorded(worker);
        if (worker->watched.n == 0) {
                worker_settle(worker);
                return 0;
        }

        log_message(LOG_NOTICE, "A %s of an earlier run of this service (pid %d) is still at work",
                        task_kind_to_string(worker->kind), (int) watch_first(&worker->watched));
        worker->state = WORKER_FOREIGN;
        return worker_arm(worker, record.deadline_usec, on_foreign_deadline);
}

static int path_below(const char *folder, const char *name, char **ret) {
        char *path;

        if (asprintf(&path, "%s/%s", folder, name) < 0)
                return -ENOMEM;
        *ret = path;
        return 0;
}

int worker_new(sd_event *event, Settings *settings, const char *runtime_directory, Worker **ret) {
        CLEANUP(worker_free_ptr) Worker *worker = NULL;
        int r;

        worker = calloc(1, sizeof *worker);
        if (!worker)
                return -ENOMEM;
        worker->pipe_fd = -1;
        worker->settings = settings;
        worker->event = sd_event_ref(event);
        worker->watched = (WatchSet){ .event = event, .gone = on_process_gone, .userdata = worker };
        r = path_below(runtime_directory, "worker", &worker->record_path);
        if (r >= 0)
                r = path_below(runtime_directory, QUIESCED_NAME, &worker->quiesced_path);
        if (r < 0)
                return r;

        r = worker_recover(worker);
        if (r < 0)
                return r;
        *ret = take_ptr(&worker);
        return 0;
}

Worker* worker_free(Worker *worker) {
        if (!worker)
                return NULL;
        worker_refuse_waiting(worker, ANSWER_FAILED, STOPPING_MESSAGE);
        if (worker->job)
                job_fail(take_ptr(&worker->job), ANSWER_FAILED, STOPPING_MESSAGE);
        worker_pipe_close(worker);
        watch_done(&worker->watched);
        (void) sd_event_source_disable_unref(worker->timer);
        table_done(&worker->table);
        free(worker->record_path);
        free(worker->quiesced_path);
        (void) sd_event_unref(worker->event);
        free(worker);
        return NULL;
}
