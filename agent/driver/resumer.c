/* SPDX-License-Identifier: MIT */
#include "agent/driver/resumer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/driver/quiesced.h"
#include "agent/log/log.h"

/* One that leaves may have asked for the start just before. */
#define RELEASE_USEC (2 * USEC_PER_SEC)
#define RETRY_USEC   (30 * USEC_PER_SEC)
#define RESUME_USEC  (60 * USEC_PER_SEC)

struct Resumer {
        Queue *queue;
        char *path;
        sd_event_source *timer;
        unsigned holders;
        bool busy; /* a request of ours waits, or is at work */
};

static void resumer_arm(Resumer *resumer, usec_t usec) {
        int r;

        r = sd_event_source_set_time_relative(resumer->timer, usec);
        if (r >= 0)
                r = sd_event_source_set_enabled(resumer->timer, SD_EVENT_ONESHOT);
        if (r < 0)
                (void) log_errno(r, "Cannot arm a timer");
}

static void on_resumed(Answer *answer, void *userdata) {
        Resumer *resumer = userdata;

        resumer->busy = false;
        if (answer->message[0])
                log_message(LOG_ERR, "What was stopped for a reset cannot be started again: %s",
                                answer->message);
        else
                log_message(LOG_NOTICE, "Started again what was stopped for a reset");
        resumer_arm(resumer, RETRY_USEC); /* if anything is still listed then */
}

static int on_timer(sd_event_source *source, uint64_t now, void *userdata) {
        Resumer *resumer = userdata;
        QueueRequest request = {
                .kind = TASK_RESUME, .owner = resumer, .done = on_resumed, .userdata = resumer
        };
        int r;

        if (resumer->holders > 0 || resumer->busy || access(resumer->path, F_OK) < 0)
                return 0;

        resumer->busy = true; /* the answer may come from within */
        request.deadline_usec = now_monotonic_usec() + RESUME_USEC;
        r = queue_submit(resumer->queue, &request);
        if (r < 0) {
                resumer->busy = false;
                (void) log_errno(r, "Cannot start again what was stopped for a reset");
                resumer_arm(resumer, RETRY_USEC);
        }
        return 0;
}

void resumer_hold(Resumer *resumer) {
        resumer->holders++;
}

void resumer_release(Resumer *resumer) {
        resumer->holders--;
        resumer_arm(resumer, RELEASE_USEC);
}

int resumer_new(sd_event *event, Queue *queue, const char *runtime_directory, Resumer **ret) {
        CLEANUP(resumer_free_ptr) Resumer *resumer = NULL;
        int r;

        resumer = calloc(1, sizeof *resumer);
        if (!resumer)
                return -ENOMEM;
        resumer->queue = queue;
        if (asprintf(&resumer->path, "%s/%s", runtime_directory, QUIESCED_NAME) < 0) {
                resumer->path = NULL;
                return -ENOMEM;
        }
        r = sd_event_add_time_relative(event, &resumer->timer, CLOCK_MONOTONIC, 0, 1, on_timer, resumer);
        if (r < 0)
                return r;

        *ret = take_ptr(&resumer);
        return 0;
}

Resumer* resumer_free(Resumer *resumer) {
        if (!resumer)
                return NULL;
        (void) sd_event_source_disable_unref(resumer->timer);
        free(resumer->path);
        free(resumer);
        return NULL;
}
