/* SPDX-License-Identifier: MIT */
#include "agent/driver/units.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/base/text.h"

#define SYSTEMD_SOCKET    "/run/systemd/private"
#define SYSTEMD_NAME      "org.freedesktop.systemd1"
#define SYSTEMD_PATH      "/org/freedesktop/systemd1"
#define SYSTEMD_MANAGER   "org.freedesktop.systemd1.Manager"
#define SYSTEMD_UNIT      "org.freedesktop.systemd1.Unit"
#define SYSTEMD_JOB       "org.freedesktop.systemd1.Job"
#define ERROR_NO_UNIT     "org.freedesktop.systemd1.NoSuchUnit"
#define ERROR_MASKED      "org.freedesktop.systemd1.UnitMasked"
#define ERROR_LOAD_FAILED "org.freedesktop.systemd1.LoadFailed"

#define CALL_USEC (10 * USEC_PER_SEC)

DEFINE_CLEANUP(sd_bus, bus_close_ptr, sd_bus_close_unref)
DEFINE_CLEANUP(sd_bus_message, message_unref_ptr, sd_bus_message_unref)
DEFINE_CLEANUP(sd_bus_slot, slot_unref_ptr, sd_bus_slot_unref)

typedef struct Jobs {
        UnitJob *jobs;
        size_t n;
} Jobs;

static void jobs_done(Jobs *jobs) {
        unit_jobs_free(jobs->jobs, jobs->n);
}

void unit_jobs_free(UnitJob *jobs, size_t n) {
        for (size_t i = 0; i < n; i++)
                free(jobs[i].path);
        free(jobs);
}

int units_connect(sd_bus **ret) {
        CLEANUP(bus_close_ptr) sd_bus *bus = NULL;
        int r = -ENOENT;

        if (access(SYSTEMD_SOCKET, F_OK) >= 0) {
                r = sd_bus_new(&bus);
                if (r >= 0)
                        r = sd_bus_set_address(bus, "unix:path=" SYSTEMD_SOCKET);
                if (r >= 0)
                        r = sd_bus_start(bus);
        }
        if (r < 0) {
                bus = sd_bus_close_unref(bus);
                r = sd_bus_open_system(&bus);
        }
        if (r >= 0)
                r = sd_bus_set_method_call_timeout(bus, CALL_USEC);
        if (r >= 0) /* on the bus, systemd tells of jobs only those who have asked for it */
                r = sd_bus_call_method(bus, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER, "Subscribe", NULL,
                                NULL, "");
        if (r < 0)
                return r;
        *ret = take_ptr(&bus);
        return 0;
}

int unit_is_active(sd_bus *bus, const char *unit) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        CLEANUP(message_unref_ptr) sd_bus_message *reply = NULL;
        CLEANUP(free_ptr) char *state = NULL;
        const char *path;
        int r;

        r = sd_bus_call_method(bus, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER, "GetUnit", &error, &reply,
                        "s", unit);
        if (r < 0 && sd_bus_error_has_name(&error, ERROR_NO_UNIT))
                r = 0; /* not even loaded */
        else if (r >= 0)
                r = sd_bus_message_read(reply, "o", &path);
        sd_bus_error_free(&error);
        if (r <= 0)
                return r;

        r = sd_bus_get_property_string(bus, SYSTEMD_NAME, path, SYSTEMD_UNIT, "ActiveState", NULL, &state);
        if (r < 0)
                return r;
        return streq(state, "active") || streq(state, "activating") || streq(state, "reloading") ||
                        streq(state, "deactivating");
}

static int on_job_removed(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        const char *path, *unit, *result;
        Jobs *jobs = userdata;
        uint32_t id;

        if (sd_bus_message_read(msg, "uoss", &id, &path, &unit, &result) < 0)
                return 0;
        for (size_t i = 0; i < jobs->n; i++)
                if (jobs->jobs[i].path && streq(jobs->jobs[i].path, path)) {
                        jobs->jobs[i].removed = true;
                        text_escape(result, jobs->jobs[i].result, sizeof jobs->jobs[i].result);
                }
        return 0;
}

/* A start never replaces a job that is there: whoever shuts the machine down, or stops the unit by hand,
 * is right. */
static int job_begin(sd_bus *bus, UnitVerb verb, UnitJob *job) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        CLEANUP(message_unref_ptr) sd_bus_message *reply = NULL;
        const char *path;
        int r;

        r = sd_bus_call_method(bus, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER,
                        verb == UNIT_STOP ? "StopUnit" : "StartUnit", &error, &reply, "ss", job->unit,
                        verb == UNIT_STOP ? "replace" : "fail");
        if (r >= 0)
                r = sd_bus_message_read(reply, "o", &path);
        if (r < 0) {
                job->gone = sd_bus_error_has_name(&error, ERROR_NO_UNIT) ||
                                sd_bus_error_has_name(&error, ERROR_MASKED) ||
                                sd_bus_error_has_name(&error, ERROR_LOAD_FAILED);
                text_escape_words(error.message ?: strerror(-r), job->error, sizeof job->error);
                sd_bus_error_free(&error);
                return 0;
        }

        job->path = strdup(path);
        return job->path ? 0 : -ENOMEM;
}

static bool jobs_wait(const Jobs *jobs) {
        for (size_t i = 0; i < jobs->n; i++)
                if (jobs->jobs[i].path && !jobs->jobs[i].removed)
                        return true;
        return false;
}

int units_change(sd_bus *bus, UnitVerb verb, char *const *units, usec_t deadline_usec, UnitJob **ret,
                size_t *ret_n) {
        CLEANUP(slot_unref_ptr) sd_bus_slot *slot = NULL;
        CLEANUP(jobs_done) Jobs jobs = { .n = strv_length(units) };
        int r;

        jobs.jobs = calloc(jobs.n + 1, sizeof *jobs.jobs);
        if (!jobs.jobs) {
                jobs.n = 0;
                return -ENOMEM;
        }
        r = sd_bus_match_signal(bus, &slot, NULL, SYSTEMD_PATH, SYSTEMD_MANAGER, "JobRemoved",
                        on_job_removed, &jobs);
        for (size_t i = 0; r >= 0 && i < jobs.n; i++) {
                jobs.jobs[i].unit = units[i];
                r = job_begin(bus, verb, &jobs.jobs[i]);
        }

        while (r >= 0 && jobs_wait(&jobs)) {
                usec_t now_usec = now_monotonic_usec();

                r = sd_bus_process(bus, NULL);
                if (r != 0)
                        continue;
                if (now_usec >= deadline_usec)
                        break;
                r = sd_bus_wait(bus, deadline_usec - now_usec);
        }
        if (r < 0)
                return r;

        *ret = take_ptr(&jobs.jobs);
        *ret_n = jobs.n;
        jobs.n = 0;
        return 0;
}

void unit_job_cancel(sd_bus *bus, const UnitJob *job) {
        if (job->path && !job->removed)
                (void) sd_bus_call_method(
                                bus, SYSTEMD_NAME, job->path, SYSTEMD_JOB, "Cancel", NULL, NULL, "");
}
