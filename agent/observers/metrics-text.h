/* SPDX-License-Identifier: MIT */
/* The text of the metrics file. */
#pragma once

#include <stdio.h>

#include "agent/core/manager.h"
#include "agent/observers/gpu-table.h"

#define METRICS_BUCKETS 10

/* What is counted since the agent's start. */
typedef struct MetricsCounts {
        const Gpu *gpu;
        uint64_t results[_OUTCOME_MAX];
} MetricsCounts;

typedef struct MetricsHistogram {
        uint64_t buckets[METRICS_BUCKETS]; /* of their own, not summed up */
        uint64_t count;
        double sum_seconds;
} MetricsHistogram;

typedef struct MetricsInput {
        const Manager *manager;
        const char *host;
        const GpuTable *counts; /* of MetricsCounts */
        const MetricsHistogram *durations;
        double now_seconds; /* realtime */
} MetricsInput;

void metrics_histogram_add(MetricsHistogram *histogram, usec_t duration_usec);

/* Writes all of it. */
void metrics_print(FILE *file, const MetricsInput *input);
