/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "agent/base/text.h"
#include "agent/driver/program.h"
#include "agent/driver/quiesced.h"
#include "agent/driver/units.h"
#include "agent/driver/vendor.h"

/* A start is systemd's business once it has the job: it may wait for something that is ordered after us.
 * What fails at once is worth telling. */
#define START_WAIT_USEC (5 * USEC_PER_SEC)

DEFINE_CLEANUP(sd_bus, bus_close_ptr, sd_bus_close_unref)

/* What a line about units and commands has room for. */
#define DEEDS_SIZE 400

/* Notes what went wrong; the first is told. */
static void fail(Answer *answer, const char *format, ...) PRINTF_FORMAT(2, 3);
static void fail(Answer *answer, const char *format, ...) {
        char text[1024];
        va_list arguments;

        if (answer->message[0])
                return;
        va_start(arguments, format);
        (void) vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        text_escape_words(text, answer->message, sizeof answer->message);
}

/* The time from now on, as far as that part of what is left goes. */
static usec_t share_of_time(const Task *task, unsigned part, unsigned of) {
        usec_t now_usec = now_monotonic_usec();

        return task->deadline_usec > now_usec ? now_usec + (task->deadline_usec - now_usec) / of * part
                                              : now_usec;
}

/* "COMMAND stop" or "COMMAND start". 1 · 0 it failed, which the answer says. */
static int command_run(const Task *task, const char *command, const char *word, usec_t deadline_usec,
                Answer *answer) {
        CLEANUP(strv_free_ptr) char **argv = NULL;
        CLEANUP(free_ptr) char *output = NULL;
        ProgramResult result;
        Program program;
        int r;

        r = command_split(command, &argv);
        if (r >= 0)
                r = strv_append(&argv, word);
        if (r >= 0) {
                program = (Program){ .argv = argv, .deadline_usec = deadline_usec };
                r = program_run(task, &program, &result);
        }
        if (r < 0) {
                fail(answer, "quiesce.command: \"%s %s\": %s", command, word,
                                r == -ETIMEDOUT ? "it did not end in time" : strerror(-r));
                return 0;
        }

        output = result.output;
        if (WIFEXITED(result.status) && WEXITSTATUS(result.status) == 0)
                return 1;
        fail(answer, "quiesce.command: \"%s %s\" failed: %s", command, word, program_words(&result));
        return 0;
}

/* The configured units that run, which are added to the list. 0 · -errno, and the answer says what is
 * wrong. */
static int units_find(const Task *task, sd_bus *bus, Quiesced *quiesced, char ***ret, Answer *answer) {
        CLEANUP(strv_free_ptr) char **found = NULL;

        STRV_FOREACH (unit, task->config->quiesce.units) {
                int r = unit_is_active(bus, *unit);

                if (r == 0)
                        continue;
                if (r > 0)
                        r = strv_append(&found, *unit);
                if (r >= 0 && !strv_contains(quiesced->units, *unit))
                        r = strv_append(&quiesced->units, *unit);
                if (r < 0) {
                        fail(answer, "cannot ask systemd about %s: %s", *unit, strerror(-r));
                        return r;
                }
        }
        *ret = take_ptr(&found);
        return 0;
}

static void units_stop(sd_bus *bus, char *const *units, usec_t deadline_usec, Answer *answer) {
        usec_t begin_usec = now_monotonic_usec();
        UnitJob *jobs = NULL;
        size_t n = 0;
        int r;

        r = units_change(bus, UNIT_STOP, units, deadline_usec, &jobs, &n);
        if (r < 0)
                fail(answer, "cannot have systemd stop %s: %s", units[0], strerror(-r));
        for (size_t i = 0; i < n; i++) {
                const UnitJob *job = &jobs[i];

                if (job->error[0] && !job->gone)
                        fail(answer, "%s does not stop: %s", job->unit, job->error);
                else if (job->path && !job->removed)
                        fail(answer, "%s did not stop within %u s", job->unit,
                                        (unsigned) ((now_monotonic_usec() - begin_usec) / USEC_PER_SEC));
                else if (job->path && !streq(job->result, "done"))
                        fail(answer, "%s did not stop: its job ended as \"%s\"", job->unit, job->result);
                unit_job_cancel(bus, job);
        }
        unit_jobs_free(jobs, n);
}

/* Starts what is listed. What systemd has taken over, or will never know, is no longer listed. */
static void units_start(sd_bus *bus, Quiesced *quiesced, usec_t deadline_usec, Answer *answer) {
        CLEANUP(strv_free_ptr) char **left = NULL;
        UnitJob *jobs = NULL;
        size_t n = 0;
        int r;

        r = units_change(bus, UNIT_START, quiesced->units, deadline_usec, &jobs, &n);
        if (r < 0) {
                fail(answer, "cannot have systemd start %s: %s", quiesced->units[0], strerror(-r));
                return;
        }
        for (size_t i = 0; r >= 0 && i < n; i++) {
                const UnitJob *job = &jobs[i];

                if (job->error[0])
                        fail(answer, "%s does not start: %s", job->unit, job->error);
                else if (job->removed && !streq(job->result, "done"))
                        fail(answer, "%s did not start: its job ended as \"%s\"", job->unit, job->result);
                if (job->error[0] && !job->gone)
                        r = strv_append(&left, job->unit);
        }
        unit_jobs_free(jobs, n);
        if (r < 0) {
                fail(answer, "cannot remember what was not started: %s", strerror(-r));
                return; /* all stays listed: a second start does no harm */
        }
        strv_free(quiesced->units);
        quiesced->units = take_ptr(&left);
}

/* Starts all that is listed, units before commands, as they were stopped the other way round. */
static void resume_listed(const Task *task, sd_bus *bus, Quiesced *quiesced, Answer *answer) {
        CLEANUP(strv_free_ptr) char **left = NULL;
        usec_t deadline_usec = share_of_time(task, 1, 2),
               limit_usec = now_monotonic_usec() + START_WAIT_USEC;
        int r = 0;

        if (quiesced->units && bus)
                units_start(bus, quiesced, deadline_usec < limit_usec ? deadline_usec : limit_usec, answer);
        STRV_FOREACH (command, quiesced->commands)
                if (!command_run(task, *command, "start", share_of_time(task, 3, 4), answer))
                        r = r < 0 ? r : strv_append(&left, *command);
        if (r >= 0) {
                strv_free(quiesced->commands);
                quiesced->commands = take_ptr(&left);
        }

        r = quiesced_write(task->quiesced, quiesced);
        if (r < 0)
                fail(answer, "cannot write %s: %s", task->quiesced, strerror(-r));
}

/* 1 · 0 nothing is listed · -errno, which the answer says. */
static int list_read(const Task *task, Quiesced *ret, Answer *answer) {
        int r = quiesced_read(task->quiesced, ret);

        if (r == -ENOENT)
                return 0;
        if (r < 0)
                fail(answer, "cannot read %s, which says what was stopped: %s", task->quiesced,
                                strerror(-r));
        return r < 0 ? r : 1;
}

static int connect_systemd(sd_bus **ret, Answer *answer) {
        int r = units_connect(ret);

        if (r < 0)
                fail(answer, "cannot reach systemd: %s", strerror(-r));
        return r;
}

/* For the journal: "dcgm.service, a command"; "" for nothing. */
static void describe(char **units, char **commands, char *ret, size_t size) {
        size_t n = 0;

        ret[0] = '\0';
        STRV_FOREACH (unit, units)
                if (n < size)
                        n += (size_t) snprintf(ret + n, size - n, "%s%s", n > 0 ? ", " : "", *unit);
        STRV_FOREACH (command, commands)
                if (n < size)
                        n += (size_t) snprintf(ret + n, size - n, "%s\"%s\"", n > 0 ? ", " : "", *command);
}

static void tell(Answer *answer, const char *what, const char *names) {
        if (names[0] && !answer->message[0])
                answer_warn(answer, "%s: %s", what, names);
}

void quiesce_run(const Task *task, Answer *answer) {
        CLEANUP(quiesced_done) Quiesced quiesced = {};
        CLEANUP(strv_free_ptr) char **units = NULL;
        CLEANUP(bus_close_ptr) sd_bus *bus = NULL;
        char *command = task->config->quiesce.command, *commands[] = { command, NULL }, names[DEEDS_SIZE];
        int r;

        if (!task->config->quiesce.units && *command == '\0')
                return;

        r = list_read(task, &quiesced, answer);
        if (r >= 0 && task->config->quiesce.units)
                r = connect_systemd(&bus, answer);
        if (r >= 0 && bus)
                r = units_find(task, bus, &quiesced, &units, answer);
        if (r >= 0 && *command && !strv_contains(quiesced.commands, command))
                r = strv_append(&quiesced.commands, command);
        if (r >= 0)
                r = quiesced_write(task->quiesced, &quiesced);
        if (r < 0) {
                fail(answer, "cannot write %s: %s", task->quiesced, strerror(-r));
                return; /* nothing was stopped */
        }

        if (*command)
                (void) command_run(task, command, "stop", share_of_time(task, 1, 2), answer);
        if (units && answer->message[0] == '\0')
                units_stop(bus, units, share_of_time(task, 2, 3), answer);
        if (answer->message[0])
                resume_listed(task, bus, &quiesced, answer);
        describe(units, *command ? commands : NULL, names, sizeof names);
        tell(answer, "stopped for a reset", names);
}

void resume_run(const Task *task, Answer *answer) {
        CLEANUP(quiesced_done) Quiesced quiesced = {};
        CLEANUP(bus_close_ptr) sd_bus *bus = NULL;
        char names[DEEDS_SIZE];

        if (list_read(task, &quiesced, answer) <= 0)
                return;
        if (quiesced.units)
                (void) connect_systemd(&bus, answer); /* the commands have their turn all the same */
        describe(quiesced.units, quiesced.commands, names, sizeof names);
        resume_listed(task, bus, &quiesced, answer);
        tell(answer, "started again after a reset", names);
}
