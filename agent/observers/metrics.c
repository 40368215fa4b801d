/* SPDX-License-Identifier: MIT */
#include "agent/observers/metrics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/base/io.h"
#include "agent/base/text-stream.h"
#include "agent/log/log.h"
#include "agent/observers/metrics-text.h"

#define SPACING_USEC USEC_PER_SEC

struct Metrics {
        Manager *manager;
        char *path;
        char *host;
        sd_event_source *timer;
        usec_t written_usec; /* monotonic; 0: never */
        bool hurried;        /* the timer stands for a change, not for the period */
        bool complained;

        GpuTable counts; /* of MetricsCounts */
        MetricsHistogram durations;
};

static int set_timer(Metrics *metrics, usec_t at_usec) {
        int r;

        r = sd_event_source_set_time(metrics->timer, at_usec);
        return r < 0 ? r : sd_event_source_set_enabled(metrics->timer, SD_EVENT_ONESHOT);
}

static void hurry(Metrics *metrics) {
        if (metrics->hurried)
                return;
        metrics->hurried = true;
        /* A time that is past already means at the loop's next turn: many changes of one moment are one
         * write. */
        (void) set_timer(metrics, metrics->written_usec == 0 ? 0 : metrics->written_usec + SPACING_USEC);
}

static int write_file(Metrics *metrics) {
        CLEANUP(text_stream_done) TextStream stream = {};
        const MetricsInput input = {
                .manager = metrics->manager,
                .host = metrics->host,
                .counts = &metrics->counts,
                .durations = &metrics->durations,
                .now_seconds = (double) now_realtime_usec() / (double) USEC_PER_SEC,
        };
        FILE *file = text_stream_open(&stream);
        int r;

        if (!file)
                return -ENOMEM;
        metrics_print(file, &input);
        r = text_stream_end(&stream);
        return r < 0 ? r : file_write_atomic(metrics->path, stream.text, stream.size, 0644);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Metrics *metrics = userdata;
        usec_t period = manager_config(metrics->manager)->driver.poll_interval_usec;
        int r;

        r = write_file(metrics);
        if (r < 0 && !metrics->complained)
                (void) log_errno(r, "Cannot write %s", metrics->path);
        metrics->complained = r < 0;

        metrics->written_usec = now_monotonic_usec();
        metrics->hurried = false;
        (void) set_timer(metrics,
                        usec_add(metrics->written_usec, period > SPACING_USEC ? period : SPACING_USEC));
        return 0;
}

static void on_gpu_added(Gpu *gpu, void *userdata) {
        hurry(userdata);
}

static void on_gpu_removed(Gpu *gpu, void *userdata) {
        Metrics *metrics = userdata;

        gpu_table_remove(&metrics->counts, gpu);
        hurry(metrics);
}

static void on_gpu_changed(Gpu *gpu, uint32_t changes, void *userdata) {
        hurry(userdata);
}

static void on_manager_changed(uint32_t changes, void *userdata) {
        hurry(userdata);
}

static void on_reset_finished(
                Gpu *gpu, const char *tenant, Outcome outcome, const char *detail, void *userdata) {
        Metrics *metrics = userdata;
        MetricsCounts *counts;

        counts = gpu_table_get(&metrics->counts, gpu);
        if (counts && outcome >= 0 && outcome < _OUTCOME_MAX)
                counts->results[outcome]++;
        metrics_histogram_add(&metrics->durations, gpu->last_reset.duration_usec);
        hurry(metrics);
}

int metrics_new(sd_event *event, Manager *manager, const char *path, const char *host, Metrics **ret) {
        CLEANUP(metrics_free_ptr) Metrics *metrics = NULL;
        ManagerObserver observer = {
                .on_gpu_added = on_gpu_added,
                .on_gpu_removed = on_gpu_removed,
                .on_gpu_changed = on_gpu_changed,
                .on_manager_changed = on_manager_changed,
                .on_reset_finished = on_reset_finished,
        };
        int r;

        metrics = calloc(1, sizeof *metrics);
        if (!metrics)
                return -ENOMEM;
        metrics->manager = manager;
        metrics->counts.entry_size = sizeof(MetricsCounts);
        metrics->path = strdup(path);
        metrics->host = strdup(host);
        if (!metrics->path || !metrics->host)
                return -ENOMEM;

        r = sd_event_add_time(
                        event, &metrics->timer, CLOCK_MONOTONIC, 0, 250 * USEC_PER_MSEC, on_timer, metrics);
        if (r < 0)
                return r;
        observer.userdata = metrics;
        r = manager_add_observer(manager, &observer);
        if (r < 0)
                return r;

        *ret = take_ptr(&metrics);
        return 0;
}

Metrics* metrics_free(Metrics *metrics) {
        if (!metrics)
                return NULL;
        (void) sd_event_source_disable_unref(metrics->timer);
        gpu_table_done(&metrics->counts);
        free(metrics->path);
        free(metrics->host);
        free(metrics);
        return NULL;
}
