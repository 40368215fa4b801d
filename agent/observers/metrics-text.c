/* SPDX-License-Identifier: MIT */
#include "agent/observers/metrics-text.h"

#include "agent/base/cleanup.h"

/* From an instant reset to one that ran into its deadline. */
static const double bucket_bounds[METRICS_BUCKETS - 1] = { 0.5, 1, 2, 5, 10, 20, 30, 60, 120 };

void metrics_histogram_add(MetricsHistogram *histogram, usec_t duration_usec) {
        double seconds = (double) duration_usec / (double) USEC_PER_SEC;
        size_t i = 0;

        while (i < METRICS_BUCKETS - 1 && seconds > bucket_bounds[i])
                i++;
        histogram->buckets[i]++;
        histogram->count++;
        histogram->sum_seconds += seconds;
}

typedef struct GpuMetric {
        const char *name;
        const char *type;
        const char *help;
        bool nvlink; /* a partition controller may export it too: left out with metrics.nvlink: false */
        bool (*value)(const Gpu *gpu, double *ret); /* false: not known, no line */
} GpuMetric;

static bool answers(const Gpu *gpu) {
        return gpu->probed && gpu->sample.error[0] == '\0';
}

/* Divided, not multiplied by a fraction: 7 / 100 is 0.07, 7 * 0.01 is not quite. */
static bool from_u32(uint32_t value, double divisor, double *ret) {
        *ret = (double) value / divisor;
        return value != UNKNOWN_U32;
}

static bool from_u64(uint64_t value, double *ret) {
        *ret = (double) value;
        return value != UNKNOWN_U64;
}

static bool value_reset_pending(const Gpu *gpu, double *ret) {
        *ret = gpu_reset_pending(gpu);
        return gpu->probed;
}

static bool value_partition(const Gpu *gpu, double *ret) {
        return from_u32(gpu->sample.partition, 1, ret);
}

static bool value_clique(const Gpu *gpu, double *ret) {
        *ret = gpu->sample.clique_id;
        return answers(gpu) && gpu_sample_has_clique(&gpu->sample);
}

static bool value_links(const Gpu *gpu, double *ret) {
        *ret = gpu->sample.n_links;
        return answers(gpu);
}

static bool value_links_active(const Gpu *gpu, double *ret) {
        *ret = gpu->sample.n_links_active;
        return answers(gpu);
}

static bool value_healthy(const Gpu *gpu, double *ret) {
        GpuHealth health = gpu_health(gpu);

        *ret = health == GPU_HEALTH_HEALTHY;
        return health != GPU_HEALTH_UNKNOWN;
}

static bool value_tx_bytes(const Gpu *gpu, double *ret) {
        return from_u64(gpu->sample.nvlink_tx_bytes, ret);
}

static bool value_rx_bytes(const Gpu *gpu, double *ret) {
        return from_u64(gpu->sample.nvlink_rx_bytes, ret);
}

static bool value_recovery_action(const Gpu *gpu, double *ret) {
        *ret = gpu->sample.recovery_action;
        return answers(gpu) && gpu->sample.recovery_action != RECOVERY_UNKNOWN;
}

static bool value_holders(const Gpu *gpu, double *ret) {
        uint32_t by_nvml = gpu->sample.n_processes == UNKNOWN_U32 ? 0 : gpu->sample.n_processes;

        *ret = (double) (gpu->n_holders > by_nvml ? gpu->n_holders : by_nvml);
        return gpu->probed;
}

static bool value_xid(const Gpu *gpu, double *ret) {
        *ret = gpu->last_xid;
        return true;
}

static bool value_utilization(const Gpu *gpu, double *ret) {
        return from_u32(gpu->sample.utilization, 100, ret);
}

static bool value_memory_total(const Gpu *gpu, double *ret) {
        return from_u64(gpu->sample.memory_total, ret);
}

static bool value_memory_used(const Gpu *gpu, double *ret) {
        return from_u64(gpu->sample.memory_used, ret);
}

static bool value_power(const Gpu *gpu, double *ret) {
        return from_u32(gpu->sample.power_mw, 1000, ret);
}

static bool value_temperature(const Gpu *gpu, double *ret) {
        *ret = gpu->sample.temperature;
        return gpu->sample.temperature != UNKNOWN_I32;
}

static const GpuMetric gpu_metrics[] = {
        { "nvlink_gpu_reset_pending", "gauge", "Whether the GPU waits for a reset to take its new clique.",
                        true, value_reset_pending },
        { "nvlink_gpu_partition_id", "gauge", "The NVLink partition that the GPU belongs to.", true,
                        value_partition },
        { "nvlink_gpu_clique_id", "gauge", "The clique that the GPU is in.", true, value_clique },
        { "nvlink_gpu_links", "gauge", "NVLinks of the GPU.", true, value_links },
        { "nvlink_gpu_active_links", "gauge", "NVLinks of the GPU that are up.", true, value_links_active },
        { "nvlink_gpu_healthy", "gauge", "Whether the GPU is healthy.", true, value_healthy },
        { "nvlink_gpu_tx_bytes_total", "counter", "Bytes sent over NVLink.", true, value_tx_bytes },
        { "nvlink_gpu_rx_bytes_total", "counter", "Bytes received over NVLink.", true, value_rx_bytes },
        { "gpuagent_gpu_recovery_action", "gauge",
                        "What the driver asks for: 0 is nothing, 1 a reset, 2 a reboot.", false,
                        value_recovery_action },
        { "gpuagent_gpu_holders", "gauge", "Processes known to hold the GPU.", false, value_holders },
        { "gpuagent_gpu_last_xid", "gauge", "The last Xid the kernel logged for the GPU, 0 for none.", false,
                        value_xid },
        { "gpuagent_gpu_utilization_ratio", "gauge", "Part of the time in which the GPU was busy.", false,
                        value_utilization },
        { "gpuagent_gpu_memory_total_bytes", "gauge", "Memory of the GPU.", false, value_memory_total },
        { "gpuagent_gpu_memory_used_bytes", "gauge", "Memory of the GPU in use.", false, value_memory_used },
        { "gpuagent_gpu_power_watts", "gauge", "Power drawn.", false, value_power },
        { "gpuagent_gpu_temperature_celsius", "gauge", "Temperature of the GPU.", false, value_temperature },
};

static void print_head(FILE *file, const char *name, const char *type, const char *help) {
        (void) fprintf(file, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* A label's value; a backslash, a quote and a new line are escaped. */
static void print_quoted(FILE *file, const char *text) {
        (void) fputc('"', file);
        for (; *text != '\0'; text++) {
                if (*text == '\n') {
                        (void) fputs("\\n", file);
                        continue;
                }
                if (*text == '"' || *text == '\\')
                        (void) fputc('\\', file);
                (void) fputc(*text, file);
        }
        (void) fputc('"', file);
}

static void print_name(FILE *file, const MetricsInput *input, const char *name, const Gpu *gpu) {
        (void) fprintf(file, "%s{host=", name);
        print_quoted(file, input->host);
        if (gpu)
                (void) fprintf(file, ",gpu=\"%u\",uuid=\"%s\"", gpu->sample.index, gpu->sample.uuid);
}

/* Whole numbers (bytes) to the last digit, others as people write them. */
static void print_value(FILE *file, double value) {
        bool whole = value > -9e18 && value < 9e18 && (double) (int64_t) value == value;

        (void) fprintf(file, whole ? "} %.0f\n" : "} %.15g\n", value);
}

static void print_gpu_metric(FILE *file, const MetricsInput *input, const GpuMetric *metric) {
        size_t n;
        Gpu *const *gpus = manager_gpus(input->manager, &n);

        print_head(file, metric->name, metric->type, metric->help);
        for (size_t i = 0; i < n; i++) {
                double value;

                if (!metric->value(gpus[i], &value))
                        continue;
                print_name(file, input, metric->name, gpus[i]);
                print_value(file, value);
        }
}

static void print_states(FILE *file, const MetricsInput *input) {
        size_t n;
        Gpu *const *gpus = manager_gpus(input->manager, &n);

        print_head(file, "gpuagent_gpu_state", "gauge", "1 for the state that the GPU is in.");
        for (size_t i = 0; i < n; i++)
                for (int state = 0; state < _GPU_STATE_MAX; state++) {
                        print_name(file, input, "gpuagent_gpu_state", gpus[i]);
                        (void) fprintf(file, ",state=\"%s\"} %d\n", gpu_state_to_string((GpuState) state),
                                        gpu_state(gpus[i]) == (GpuState) state);
                }
}

/* Every result that there is, also before its first time: an increase needs a series to start from. */
static void print_resets(FILE *file, const MetricsInput *input) {
        size_t n;
        Gpu *const *gpus = manager_gpus(input->manager, &n);

        print_head(file, "gpuagent_resets_total", "counter", "Handovers by how they ended.");
        for (size_t i = 0; i < n; i++) {
                const MetricsCounts *counts = gpu_table_find(input->counts, gpus[i]);

                for (int outcome = 0; outcome < _OUTCOME_MAX; outcome++) {
                        uint64_t value = counts ? counts->results[outcome] : 0;

                        if (!outcome_is_a_handovers((Outcome) outcome))
                                continue;
                        print_name(file, input, "gpuagent_resets_total", gpus[i]);
                        (void) fprintf(file, ",result=\"%s\"} %lu\n", outcome_to_string((Outcome) outcome),
                                        (unsigned long) value);
                }
        }
}

static void print_durations(FILE *file, const MetricsInput *input) {
        static const char name[] = "gpuagent_reset_duration_seconds";
        const MetricsHistogram *histogram = input->durations;
        uint64_t sum = 0;

        print_head(file, name, "histogram", "How long handovers of a GPU took.");
        for (size_t i = 0; i < METRICS_BUCKETS; i++) {
                sum += histogram->buckets[i];
                print_name(file, input, "gpuagent_reset_duration_seconds_bucket", NULL);
                if (i < METRICS_BUCKETS - 1)
                        (void) fprintf(file, ",le=\"%g\"} %lu\n", bucket_bounds[i], (unsigned long) sum);
                else
                        (void) fprintf(file, ",le=\"+Inf\"} %lu\n", (unsigned long) sum);
        }
        print_name(file, input, "gpuagent_reset_duration_seconds_sum", NULL);
        (void) fprintf(file, "} %.6f\n", histogram->sum_seconds);
        print_name(file, input, "gpuagent_reset_duration_seconds_count", NULL);
        (void) fprintf(file, "} %lu\n", (unsigned long) histogram->count);
}

static void print_tray(FILE *file, const MetricsInput *input) {
        print_head(file, "gpuagent_driver_up", "gauge", "Whether the driver answers.");
        print_name(file, input, "gpuagent_driver_up", NULL);
        (void) fprintf(file, "} %d\n", manager_driver_state(input->manager) == DRIVER_OK);

        print_head(file, "gpuagent_last_update_timestamp_seconds", "gauge", "When this was written.");
        print_name(file, input, "gpuagent_last_update_timestamp_seconds", NULL);
        (void) fprintf(file, "} %.3f\n", input->now_seconds);

        print_head(file, "gpuagent_build_info", "gauge", "The agent's version.");
        print_name(file, input, "gpuagent_build_info", NULL);
        (void) fputs(",version=\"" VERSION "\"} 1\n", file);
}

void metrics_print(FILE *file, const MetricsInput *input) {
        bool nvlink = manager_config(input->manager)->metrics.nvlink;

        for (size_t i = 0; i < ELEMENTSOF(gpu_metrics); i++)
                if (nvlink || !gpu_metrics[i].nvlink)
                        print_gpu_metric(file, input, &gpu_metrics[i]);
        print_states(file, input);
        print_resets(file, input);
        print_durations(file, input);
        print_tray(file, input);
}
