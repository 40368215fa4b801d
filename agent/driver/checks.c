/* SPDX-License-Identifier: MIT */
#include "agent/driver/checks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/io.h"
#include "agent/base/text.h"
#include "agent/driver/program.h"
#include "agent/driver/vendor.h"

#define CHECKS_MAX        256
#define CHILDREN_MAX      65536
#define ORPHANS_WAIT_USEC (2 * USEC_PER_SEC)
#define RESERVE_USEC      (2 * USEC_PER_SEC) /* to end a check that is late, and to answer */
#define ORPHANS_STEP_USEC (5 * USEC_PER_MSEC)

/* The GPUs as a probe saw them, and what became of them. */
typedef struct Checks {
        const Task *task;
        Answer probe;
        GpuReset *results;
        size_t n;
        char *uuids; /* of all of them, with commas: for a check that is about several */
} Checks;

static void checks_done(Checks *checks) {
        answer_done(&checks->probe);
        free(checks->results);
        free(checks->uuids);
}

/* Something before the suffix, too. */
static bool name_has_suffix(const char *name, const char *suffix) {
        const char *end = endswith(name, suffix);

        return end && end > name;
}

/* A name that is a check, as far as names go: not hidden, and not what an editor or a package manager leaves
 * beside a file that it has changed, as systemd and run-parts have it: no check is run in two versions. */
static bool check_name_is_valid(const char *name) {
        static const char *const left_over[] = { "~", ".bak", ".old", ".orig", ".dpkg-old", ".dpkg-new",
                ".dpkg-dist", ".ucf-old", ".ucf-dist", ".rpmnew", ".rpmsave", ".rpmorig" };

        for (size_t i = 0; i < ELEMENTSOF(left_over); i++)
                if (name_has_suffix(name, left_over[i]))
                        return false;
        return name[0] != '.' && name[0] != '\0';
}

bool check_only_warns(const char *name) {
        return name_has_suffix(name, ".warn");
}

/* Whether the entry of a folder is to be executed. A link that leads nowhere is: its owner meant
 * something. */
static bool entry_is_check(int folder_fd, const char *name) {
        struct stat st;

        if (!check_name_is_valid(name))
                return false;
        if (fstatat(folder_fd, name, &st, 0) < 0)
                return true;
        return S_ISREG(st.st_mode) && (st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH));
}

static void dir_close(DIR **dir) {
        if (*dir)
                (void) closedir(*dir);
}

static int compare_names(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

int checks_list(const char *folder, char ***ret) {
        CLEANUP(strv_free_ptr) char **names = NULL;
        CLEANUP(dir_close) DIR *dir = NULL;
        struct dirent *entry;
        size_t n = 0;

        dir = opendir(folder);
        if (!dir)
                return -errno;
        while ((errno = 0, entry = readdir(dir))) {
                int r;

                if (!entry_is_check(dirfd(dir), entry->d_name))
                        continue;
                if (n++ >= CHECKS_MAX)
                        return -E2BIG;
                r = strv_append(&names, entry->d_name);
                if (r < 0)
                        return r;
        }
        if (errno != 0)
                return -errno;

        if (n > 0)
                qsort(names, n, sizeof *names, compare_names);
        *ret = take_ptr(&names);
        return 0;
}

bool checks_exist(const char *folder) {
        CLEANUP(strv_free_ptr) char **names = NULL;
        int r = checks_list(folder, &names);

        return r < 0 ? r != -ENOENT : names != NULL;
}

static int component_check(const char *path) {
        struct stat st;

        if (lstat(path, &st) < 0)
                return -errno;
        return st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)) ? -EPERM : 0;
}

int check_resolve(const char *path, char **ret) {
        CLEANUP(free_ptr) char *resolved = realpath(path, NULL);
        int r;

        if (!resolved)
                return -errno;

        r = component_check("/");
        for (char *slash = resolved; r >= 0 && slash;) {
                slash = strchr(slash + 1, '/');
                if (slash)
                        *slash = '\0';
                r = component_check(resolved);
                if (slash)
                        *slash = '/';
        }
        if (r < 0)
                return r;
        *ret = take_ptr(&resolved);
        return 0;
}

char* last_line(char *output) {
        char *line = NULL, *rest = output, *next;

        while ((next = strsep(&rest, "\n"))) {
                next = text_strip(next);
                if (*next)
                        line = next;
        }
        return line ?: output + strlen(output);
}

/* What a check has left behind came to us when its parent ended, whatever session or group it is in; it
 * may still be an NVML client. A process that hangs in the driver stays, and is found as a holder. */
static void orphans_end(void) {
        usec_t deadline_usec = now_monotonic_usec() + ORPHANS_WAIT_USEC;

        while (now_monotonic_usec() < deadline_usec) {
                CLEANUP(free_ptr) char *children = NULL;
                char *rest, *word;
                pid_t pid;

                if (file_read(AT_FDCWD, "/proc/thread-self/children", CHILDREN_MAX, &children, NULL) >= 0)
                        for (rest = children; (word = strtok_r(rest, " ", &rest));)
                                (void) kill((pid_t) strtol(word, NULL, 10), SIGKILL);
                while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
                        ;
                if (pid < 0)
                        return; /* no children any more */
                (void) usleep((useconds_t) ORPHANS_STEP_USEC);
        }
}

static int environment_add(char ***environment, const char *name, const char *value) {
        CLEANUP(free_ptr) char *text = NULL;

        if (asprintf(&text, "%s=%s", name, value) < 0) {
                text = NULL;
                return -ENOMEM;
        }
        return strv_append(environment, text);
}

/* What a check is told about its GPU. 0 and *ret (a strv) · -ENOMEM. */
static int environment_new(const GpuSample *sample, const char *tenant, const char *uuids, char ***ret) {
        CLEANUP(strv_free_ptr) char **environment = NULL;
        bool in_clique = sample->fabric_state == FABRIC_COMPLETED && sample->cluster_uuid[0];
        char index[16] = "", clique[16] = "";
        int r;

        if (sample->index != UNKNOWN_U32)
                (void) snprintf(index, sizeof index, "%u", sample->index);
        if (in_clique)
                (void) snprintf(clique, sizeof clique, "%u", sample->clique_id);
        r = environment_add(&environment, "GPUAGENT_GPU_INDEX", index);
        if (r >= 0)
                r = environment_add(&environment, "GPUAGENT_GPU_UUID", sample->uuid);
        if (r >= 0)
                r = environment_add(&environment, "GPUAGENT_GPU_PCI_BUS_ID", sample->bus_id);
        if (r >= 0)
                r = environment_add(&environment, "GPUAGENT_GPU_CLIQUE_ID", clique);
        if (r >= 0)
                r = environment_add(&environment, "GPUAGENT_GPU_CLUSTER_UUID",
                                in_clique ? sample->cluster_uuid : "");
        if (r >= 0)
                r = environment_add(&environment, "GPUAGENT_GPU_UUIDS", uuids);
        if (r >= 0)
                r = environment_add(&environment, "GPUAGENT_TENANT", tenant);
        if (r < 0)
                return r;
        *ret = take_ptr(&environment);
        return 0;
}

/* Notes what a check found on a GPU. The first failure is the GPU's; a warning goes to the log. */
static void result_set(GpuReset *result, const char *name, Answer *answer, const char *format, ...)
                PRINTF_FORMAT(4, 5);
static void result_set(GpuReset *result, const char *name, Answer *answer, const char *format, ...) {
        char words[1024], detail[1280];
        va_list arguments;

        va_start(arguments, format);
        (void) vsnprintf(words, sizeof words, format, arguments);
        va_end(arguments);
        (void) snprintf(detail, sizeof detail, "check %.100s: %s", name, words);

        if (check_only_warns(name))
                answer_warn(answer, "%s: %s", result->uuid, detail);
        else if (result->verdict == RESET_DONE) {
                result->verdict = RESET_FAILED;
                text_escape_words(detail, result->detail, sizeof result->detail);
        }
}

/* One check on one GPU. */
static void check_run(Checks *checks, size_t i, const char *name, const char *path, Answer *answer) {
        CLEANUP(strv_free_ptr) char **environment = NULL;
        CLEANUP(free_ptr) char *output = NULL;
        const Task *task = checks->task;
        usec_t timeout_usec = task->config->handover.check_timeout_usec;
        GpuReset *result = &checks->results[i];
        ProgramResult ended;
        usec_t now_usec;
        Program program = { .argv = (char *[]){ (char *) path, NULL }, .errors_only = true, .alone = true };
        int r;

        now_usec = now_monotonic_usec();
        if (now_usec + RESERVE_USEC >= task->deadline_usec) {
                result_set(result, name, answer, "there was no time left for it");
                return;
        }
        r = environment_new(&checks->probe.samples[i], task->tenants[i], checks->uuids, &environment);
        if (r >= 0) {
                program.environment = environment;
                program.deadline_usec = usec_add(now_usec, timeout_usec);
                if (program.deadline_usec > task->deadline_usec - RESERVE_USEC)
                        program.deadline_usec = task->deadline_usec - RESERVE_USEC;
                r = program_run(task, &program, &ended);
                orphans_end();
        }
        if (r == -ETIMEDOUT)
                result_set(result, name, answer, "it did not end within %.1f s",
                                (double) (program.deadline_usec - now_usec) / (double) USEC_PER_SEC);
        else if (r < 0)
                result_set(result, name, answer, "cannot execute it: %s", strerror(-r));
        if (r < 0)
                return;

        output = ended.output;
        if (WIFSIGNALED(ended.status))
                result_set(result, name, answer, "it died by signal %d", WTERMSIG(ended.status));
        else if (WEXITSTATUS(ended.status) != 0) {
                const char *line = last_line(output);

                if (*line)
                        result_set(result, name, answer, "%s", line);
                else
                        result_set(result, name, answer, "it failed with exit code %d",
                                        WEXITSTATUS(ended.status));
        }
}

/* One check on all GPUs that have not failed yet. */
static void check_run_all(Checks *checks, const char *name, Answer *answer) {
        CLEANUP(free_ptr) char *path = NULL, *resolved = NULL;
        int r;

        if (asprintf(&path, "%s/%s", checks->task->config->handover.checks_directory, name) < 0) {
                path = NULL;
                r = -ENOMEM;
        } else
                r = check_resolve(path, &resolved);

        for (size_t i = 0; i < checks->n; i++) {
                GpuReset *result = &checks->results[i];

                if (r == -EPERM)
                        result_set(result, name, answer,
                                        "others than root may change it, or a folder on the way to it");
                else if (r < 0)
                        result_set(result, name, answer, "cannot execute it: %s", strerror(-r));
                else if (result->verdict == RESET_DONE)
                        check_run(checks, i, name, resolved, answer);
        }
}

/* The GPUs as they are now, by NVML, which is closed again. 0 · -errno, and the answer says why. */
static int checks_probe(Checks *checks, Answer *answer) {
        char none[] = "";
        size_t length = 0;
        Config config = *checks->task->config;
        Task task = *checks->task;

        config.fabric.query = none; /* what a GPU is in counts here, not what it should be in */
        task.config = &config;
        task.kind = checks->probe.kind = TASK_PROBE;
        probe_run(&task, &checks->probe);
        if (checks->probe.error != ANSWER_OK) {
                answer_fail(answer, checks->probe.error, "%s", checks->probe.message);
                return -EIO;
        }

        checks->n = checks->probe.n_asked; /* in the order that was asked for */
        checks->results = calloc(checks->n + 1, sizeof *checks->results);
        if (!checks->results)
                return -ENOMEM;
        checks->uuids = calloc(checks->n + 1, GPU_UUID_SIZE + 1);
        if (!checks->uuids)
                return -ENOMEM;
        for (size_t i = 0; i < checks->n; i++) {
                length += (size_t) snprintf(checks->uuids + length, GPU_UUID_SIZE + 1, "%s%s",
                                i > 0 ? "," : "", checks->probe.samples[i].uuid);
                memcpy(checks->results[i].uuid, checks->probe.samples[i].uuid,
                                sizeof checks->results[i].uuid);
                checks->results[i].verdict = RESET_DONE;
        }
        return 0;
}

void checks_run(const Task *task, Answer *answer) {
        const char *folder = task->config->handover.checks_directory;
        CLEANUP(checks_done) Checks checks = { .task = task };
        CLEANUP(strv_free_ptr) char **names = NULL;
        int r;

        (void) prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        r = checks_probe(&checks, answer);
        if (r < 0) {
                if (answer->error == ANSWER_OK)
                        answer_fail(answer, ANSWER_FAILED, "cannot run the checks: %s", strerror(-r));
                return;
        }

        r = checks_list(folder, &names);
        STRV_FOREACH (name, names)
                check_run_all(&checks, *name, answer);
        if (r < 0 && r != -ENOENT)
                for (size_t i = 0; i < checks.n; i++)
                        result_set(&checks.results[i], folder, answer, "cannot read the folder: %s",
                                        strerror(-r));

        answer->resets = take_ptr(&checks.results);
        answer->n = answer->n_asked = checks.n;
}
