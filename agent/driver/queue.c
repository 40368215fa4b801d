/* SPDX-License-Identifier: MIT */
#include "agent/driver/queue.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/array.h"
#include "agent/base/io.h"
#include "agent/base/text.h"
#include "agent/driver/quiesced.h"
#include "agent/driver/tell.h"
#include "agent/driver/watch.h"
#include "agent/driver/worker.h"
#include "agent/log/log.h"

/* A killed process that is not stuck is gone after this. */
#define KILL_GRACE_USEC (2 * USEC_PER_SEC)

/* A fabric.query that did not end is not asked for so long: not every look is to wait for it. */
#define QUERY_PAUSE_USEC (60 * USEC_PER_SEC)

#define WAITING_MAX 256

/* What a pipe holds. */
#define READ_SIZE 65536U

#define STOPPING_MESSAGE "the driver service is stopping"

typedef enum QueueState {
        QUEUE_IDLE,
        QUEUE_RUNNING, /* our own worker, before its deadline */
        QUEUE_FOREIGN, /* what an earlier run, or a worker that died, left behind; before its deadline */
        QUEUE_KILLED,  /* past it; it should be gone any moment */
        QUEUE_STUCK,   /* it is not */
} QueueState;

/* A request that waits or is at work. */
typedef struct Job {
        QueueRequest request;
        Queue *queue;
        sd_event_source *deadline;
        struct Job *next;
} Job;

struct Queue {
        sd_event *event;
        Settings *settings;
        char *record_path, *quiesced_path;
        GpuTable table;

        Job *waiting;
        QueueState state;
        sd_event_source *timer; /* of QUEUE_FOREIGN and QUEUE_KILLED */

        TaskKind kind; /* of what is at work */
        Job *job;      /* NULL once it was answered, or for an earlier run's */
        ProcessId worker;
        WatchSet watched;
        int pipe_fd;
        sd_event_source *pipe_source;
        char *data;
        size_t size;
        usec_t query_at_usec; /* fabric.query is not asked before */
        char warning[512];    /* the last one, said once and not with every look */

        bool stopping;
        void (*stopped)(void *userdata);
        void *stopped_userdata;
};

static void queue_kick(Queue *queue);

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

static void queue_refuse_waiting(Queue *queue, AnswerError error, const char *message) {
        Job *job;

        while ((job = queue->waiting)) {
                queue->waiting = job->next;
                job_fail(job, error, message);
        }
}

/* What keeps the driver busy, for people. */
static void queue_describe(const Queue *queue, char *ret, size_t size) {
        int pid = (int) watch_first(&queue->watched);
        const char *what = task_kind_to_string(queue->kind);

        switch (queue->state) {
        case QUEUE_IDLE: (void) snprintf(ret, size, "the GPU driver is idle"); return;
        case QUEUE_RUNNING:
                (void) snprintf(ret, size, "the GPU driver is still busy with a %s (pid %d)", what, pid);
                return;
        case QUEUE_FOREIGN:
                (void) snprintf(ret, size,
                                "the GPU driver is still busy with a %s (pid %d) that an earlier run left "
                                "behind",
                                what, pid);
                return;
        case QUEUE_KILLED:
        case QUEUE_STUCK:
                (void) snprintf(ret, size, "the GPU driver hangs: an earlier %s (pid %d) cannot be killed",
                                what, pid);
                return;
        }
}

static void queue_pipe_close(Queue *queue) {
        queue->pipe_source = sd_event_source_disable_unref(queue->pipe_source);
        fd_close(&queue->pipe_fd);
        queue->pipe_fd = -1;
        free(queue->data);
        queue->data = NULL;
        queue->size = 0;
}

/* Reads what is there. 1 more may come · 0 the end · -EBADMSG more than an answer · -errno. */
static int queue_drain(Queue *queue) {
        for (;;) {
                ssize_t n;
                int r;

                if (queue->size > answer_size_max(queue->kind))
                        return -EBADMSG;
                r = array_reserve(&queue->data, queue->size, READ_SIZE);
                if (r < 0)
                        return r;

                n = read(queue->pipe_fd, queue->data + queue->size, READ_SIZE);
                if (n < 0)
                        return errno == EAGAIN || errno == EINTR ? 1 : -errno;
                if (n == 0)
                        return 0;
                queue->size += (size_t) n;
        }
}

static int on_pipe_readable(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Queue *queue = userdata;

        /* At the end, or with nonsense, all that is left is to wait for the process to go. */
        if (queue_drain(queue) <= 0)
                queue->pipe_source = sd_event_source_disable_unref(queue->pipe_source);
        return 0;
}

/* Watches what is recorded and still there. */
static void queue_watch_recorded(Queue *queue) {
        Record record;
        int r;

        r = record_read(queue->record_path, &record);
        if (r >= 0)
                r = watch_add_recorded(&queue->watched, &record);
        if (r < 0 && r != -ENOENT)
                (void) log_errno(r, "Cannot watch the processes in %s", queue->record_path);
}

static int on_kill_grace(sd_event_source *source, uint64_t now, void *userdata) {
        Queue *queue = userdata;
        char message[256];

        queue->timer = sd_event_source_disable_unref(queue->timer);
        queue->state = QUEUE_STUCK;
        queue_describe(queue, message, sizeof message);
        log_message(LOG_CRIT, "%s; if it stays, reboot the tray", message);
        queue_refuse_waiting(queue, ANSWER_UNRESPONSIVE, message);
        if (queue->stopping)
                queue->stopped(queue->stopped_userdata);
        return 0;
}

static int queue_arm(Queue *queue, usec_t at_usec, sd_event_time_handler_t handler) {
        queue->timer = sd_event_source_disable_unref(queue->timer);
        return sd_event_add_time(queue->event, &queue->timer, CLOCK_MONOTONIC, at_usec, 1, handler, queue);
}

/* Kills what is at work with all its programs. The state is QUEUE_KILLED until they are gone. */
static void queue_kill(Queue *queue) {
        int r;

        queue_watch_recorded(queue);
        watch_kill(&queue->watched);
        queue->state = QUEUE_KILLED;
        r = queue_arm(queue, now_monotonic_usec() + KILL_GRACE_USEC, on_kill_grace);
        if (r < 0)
                (void) log_errno(r, "Cannot arm a timer");
}

static int on_foreign_deadline(sd_event_source *source, uint64_t now, void *userdata) {
        Queue *queue = userdata;

        log_message(LOG_ERR, "The %s that was left behind did not end in time, killing it",
                        task_kind_to_string(queue->kind));
        queue_kill(queue);
        return 0;
}

/* Nothing of the last operation is left. */
static void queue_settle(Queue *queue) {
        if (queue->state == QUEUE_STUCK)
                log_message(LOG_NOTICE, "The process that was stuck in the GPU driver is gone");
        queue->timer = sd_event_source_disable_unref(queue->timer);
        queue->state = QUEUE_IDLE;
        if (unlink(queue->record_path) < 0 && errno != ENOENT)
                (void) log_errno(-errno, "Cannot remove %s", queue->record_path);
        queue_kick(queue);
}

static void table_learn(Queue *queue, const Answer *answer) {
        int r;

        table_update(&queue->table, answer->looks, answer->n_looks);
        if (answer->kind != TASK_PROBE || answer->error != ANSWER_OK)
                return;
        if (!answer->complete) {
                table_update(&queue->table, answer->samples, answer->n);
                return;
        }
        r = table_replace(&queue->table, answer->samples, answer->n);
        if (r < 0)
                (void) log_errno(r, "Cannot remember the GPUs");
}

/* What is still the same at the next look has been said. */
static void queue_warn(Queue *queue, const Answer *answer) {
        if (answer->warning[0] && !streq(answer->warning, queue->warning))
                log_message(LOG_WARNING, "%s", answer->warning);
        if (queue->kind == TASK_PROBE || answer->warning[0])
                (void) snprintf(queue->warning, sizeof queue->warning, "%s", answer->warning);
}

/* Our own worker has ended: what it said, or how it died, is the answer. */
static void queue_worker_gone(Queue *queue, int pidfd) {
        Answer answer = { .kind = queue->kind };
        Job *job = take_ptr(&queue->job);
        siginfo_t info = {};
        int r;

        (void) queue_drain(queue);
        if (waitid(P_PIDFD, (id_t) pidfd, &info, WEXITED | WNOHANG) < 0)
                (void) log_errno(-errno, "Cannot learn how process %d ended", (int) queue->worker.pid);
        queue->worker = (ProcessId){};

        if (!job) {
                queue_pipe_close(queue);
                return;
        }

        r = answer_parse(queue->kind, queue->data, queue->size, &answer);
        queue_pipe_close(queue);
        if (r < 0 && info.si_code != CLD_EXITED)
                answer_fail(&answer, ANSWER_FAILED,
                                "the %s died by signal %d inside the GPU driver's library",
                                task_kind_to_string(queue->kind), info.si_status);
        else if (r < 0)
                answer_fail(&answer, ANSWER_FAILED, "the %s ended without a valid answer",
                                task_kind_to_string(queue->kind));
        if (answer.query_hangs)
                queue->query_at_usec = usec_add(now_monotonic_usec(), QUERY_PAUSE_USEC);
        if (!tell_deed(job->request.uuids, job->request.tenants, &answer))
                queue_warn(queue, &answer);

        table_learn(queue, &answer);
        job_finish(job, &answer);
}

static void on_process_gone(const ProcessId *id, int pidfd, void *userdata) {
        Queue *queue = userdata;

        if (id->pid == queue->worker.pid) {
                usec_t deadline_usec = queue->job ? queue->job->request.deadline_usec : 0;

                queue_worker_gone(queue, pidfd);

                /* It may have gone before its program. That one has the time that the worker had, or is
                 * killed, too. */
                queue_watch_recorded(queue);
                if (queue->watched.n > 0 && queue->state != QUEUE_RUNNING)
                        watch_kill(&queue->watched);
                else if (queue->watched.n > 0) {
                        queue->state = QUEUE_FOREIGN;
                        if (queue_arm(queue, deadline_usec, on_foreign_deadline) < 0)
                                queue_kill(queue);
                }
        }

        if (queue->watched.n == 0)
                queue_settle(queue);
}

static void waiting_remove(Queue *queue, const Job *job) {
        for (Job **link = &queue->waiting; *link; link = &(*link)->next)
                if (*link == job) {
                        *link = job->next;
                        return;
                }
}

static int on_job_deadline(sd_event_source *source, uint64_t now, void *userdata) {
        Job *job = userdata;
        Queue *queue = job->queue;
        char message[256];

        if (job != queue->job) {
                queue_describe(queue, message, sizeof message);
                waiting_remove(queue, job);
                job_fail(job, ANSWER_UNRESPONSIVE, message);
                return 0;
        }

        (void) snprintf(message, sizeof message, "%s a %s in time; its process (pid %d) was killed",
                        task_kind_needs_driver(queue->kind) ? "the GPU driver did not answer"
                                                            : "the system did not finish",
                        task_kind_to_string(queue->kind), (int) queue->worker.pid);
        log_message(LOG_ERR, "%s", message);
        queue->job = NULL;
        queue_kill(queue);
        job_fail(job, ANSWER_UNRESPONSIVE, message);
        return 0;
}

/* Begins the job. 0 · -errno, and the job is still the caller's. */
static int queue_start(Queue *queue, Job *job) {
        CLEANUP(fd_close) int pidfd = -1, pipe_fd = -1;
        Task task = {
                .kind = job->request.kind,
                .config = settings_get(queue->settings),
                .table = &queue->table,
                .record = queue->record_path,
                .quiesced = queue->quiesced_path,
                .uuids = job->request.uuids,
                .tenants = job->request.tenants,
                .query_hangs = now_monotonic_usec() < queue->query_at_usec,
                .deadline_usec = job->request.deadline_usec,
        };
        int r;

        r = worker_start(&task, &queue->worker, &pidfd, &pipe_fd);
        if (r < 0)
                return r;

        queue->kind = task.kind;
        queue->state = QUEUE_RUNNING;
        r = watch_add(&queue->watched, &queue->worker, take_fd(&pidfd));
        if (r < 0) {
                /* Out of memory: without a watch nothing would ever be noticed. The record keeps its
                 * name. */
                (void) kill(queue->worker.pid, SIGKILL);
                (void) waitpid(queue->worker.pid, NULL, WNOHANG);
                queue->state = QUEUE_IDLE;
                return r;
        }

        queue->pipe_fd = take_fd(&pipe_fd);
        queue->job = job;
        r = sd_event_add_io(
                        queue->event, &queue->pipe_source, queue->pipe_fd, EPOLLIN, on_pipe_readable, queue);
        if (r < 0)
                (void) log_errno(r,
                                "Cannot watch a worker's answer"); /* it is read when the process is gone */
        return 0;
}

/* Begins what waits, if nothing is at work. */
static void queue_kick(Queue *queue) {
        while (queue->state == QUEUE_IDLE && queue->waiting && !queue->stopping) {
                Job *job = queue->waiting;
                char message[256];
                int r;

                queue->waiting = job->next;
                job->next = NULL;
                r = queue_start(queue, job);
                if (r >= 0)
                        return;
                (void) snprintf(message, sizeof message, "cannot start a worker, or record it in %s: %s",
                                queue->record_path, strerror(-r));
                log_message(LOG_ERR, "%s", message);
                job_fail(job, ANSWER_FAILED, message);
        }

        if (queue->state == QUEUE_IDLE && queue->stopping)
                queue->stopped(queue->stopped_userdata);
}

int queue_submit(Queue *queue, const QueueRequest *request) {
        CLEANUP(job_free_ptr) Job *job = NULL;
        Job **end = &queue->waiting;
        size_t n = 0;
        char message[256];
        int r;

        job = calloc(1, sizeof *job);
        if (!job)
                return -ENOMEM;
        job->request = *request;
        job->request.uuids = job->request.tenants = NULL; /* ours only once nothing can fail any more */
        job->queue = queue;

        for (; *end; end = &(*end)->next)
                n++;
        if (n >= WAITING_MAX)
                return -ENOBUFS;
        r = sd_event_add_time(queue->event, &job->deadline, CLOCK_MONOTONIC, request->deadline_usec, 1,
                        on_job_deadline, job);
        if (r < 0)
                return r;
        job->request.uuids = request->uuids;
        job->request.tenants = request->tenants;

        if (queue->stopping) {
                job_fail(take_ptr(&job), ANSWER_FAILED, STOPPING_MESSAGE);
                return 0;
        }
        if (queue->state == QUEUE_STUCK) {
                queue_describe(queue, message, sizeof message);
                job_fail(take_ptr(&job), ANSWER_UNRESPONSIVE, message);
                return 0;
        }

        *end = take_ptr(&job);
        queue_kick(queue);
        return 0;
}

void queue_forget(Queue *queue, const void *owner) {
        for (Job **link = &queue->waiting; *link;) {
                Job *job = *link;

                if (job->request.owner == owner) {
                        *link = job->next;
                        job_fail(job, ANSWER_FAILED, "nobody waits for it any more");
                } else
                        link = &job->next;
        }
}

void queue_stop(Queue *queue, void (*stopped)(void *userdata), void *userdata) {
        Job *job;

        queue->stopping = true;
        queue->stopped = stopped;
        queue->stopped_userdata = userdata;
        queue_refuse_waiting(queue, ANSWER_FAILED, STOPPING_MESSAGE);

        if ((queue->state == QUEUE_RUNNING || queue->state == QUEUE_FOREIGN) && queue->kind == TASK_RESET) {
                log_message(LOG_NOTICE, "A reset is running, waiting for its end");
                return;
        }

        job = take_ptr(&queue->job);
        if (queue->state == QUEUE_RUNNING || queue->state == QUEUE_FOREIGN)
                queue_kill(queue);
        if (job)
                job_fail(job, ANSWER_FAILED, STOPPING_MESSAGE);
        stopped(userdata); /* what does not go when it is killed is in the record */
}

/* Takes over what an earlier run left behind. */
static int queue_recover(Queue *queue) {
        Record record;
        int r;

        r = record_read(queue->record_path, &record);
        if (r == -ENOENT)
                return 0;
        if (r < 0) {
                (void) log_errno(r, "Cannot read %s, taking it that nothing is at work", queue->record_path);
                return 0;
        }

        queue->kind = record.kind;
        queue_watch_recorded(queue);
        if (queue->watched.n == 0) {
                queue_settle(queue);
                return 0;
        }

        log_message(LOG_NOTICE, "A %s of an earlier run of this service (pid %d) is still at work",
                        task_kind_to_string(queue->kind), (int) watch_first(&queue->watched));
        queue->state = QUEUE_FOREIGN;
        return queue_arm(queue, record.deadline_usec, on_foreign_deadline);
}

static int path_below(const char *folder, const char *name, char **ret) {
        char *path;

        if (asprintf(&path, "%s/%s", folder, name) < 0)
                return -ENOMEM;
        *ret = path;
        return 0;
}

int queue_new(sd_event *event, Settings *settings, const char *runtime_directory, Queue **ret) {
        CLEANUP(queue_free_ptr) Queue *queue = NULL;
        int r;

        queue = calloc(1, sizeof *queue);
        if (!queue)
                return -ENOMEM;
        queue->pipe_fd = -1;
        queue->settings = settings;
        queue->event = sd_event_ref(event);
        queue->watched = (WatchSet){ .event = event, .gone = on_process_gone, .userdata = queue };
        r = path_below(runtime_directory, "worker", &queue->record_path);
        if (r >= 0)
                r = path_below(runtime_directory, QUIESCED_NAME, &queue->quiesced_path);
        if (r < 0)
                return r;

        r = queue_recover(queue);
        if (r < 0)
                return r;
        *ret = take_ptr(&queue);
        return 0;
}

Queue* queue_free(Queue *queue) {
        if (!queue)
                return NULL;
        queue_refuse_waiting(queue, ANSWER_FAILED, STOPPING_MESSAGE);
        if (queue->job)
                job_fail(take_ptr(&queue->job), ANSWER_FAILED, STOPPING_MESSAGE);
        queue_pipe_close(queue);
        watch_done(&queue->watched);
        (void) sd_event_source_disable_unref(queue->timer);
        table_done(&queue->table);
        free(queue->record_path);
        free(queue->quiesced_path);
        (void) sd_event_unref(queue->event);
        free(queue);
        return NULL;
}
