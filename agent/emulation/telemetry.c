/* SPDX-License-Identifier: MIT */
#include "agent/emulation/telemetry.h"

#include <math.h>

/* Seconds until about two thirds of a change are seen. */
#define POWER_LAG       1.5
#define TEMPERATURE_LAG 20.0

/* A training job that shows 80 % has the GPU at its busy power. */
#define FULL_POWER_LOAD 80.0

/* Bytes a second each way at full load: 8 GPUs at 80 % send about 3.4 TB/s. */
#define LINK_BYTES_PER_SECOND 530e9

/* The answer at `now` of a first-order system to a pulse of 1 between since and until. */
static double pulse_response(const ClientRecord *record, usec_t now, double lag) {
        double begun = (double) (now - record->since_usec) / 1e6,
               ended = (double) (now - record->until_usec) / 1e6;

        return exp(-ended / lag) - exp(-begun / lag);
}

static double at_most_one(double value) {
        return value > 1.0 ? 1.0 : value;
}

uint64_t telemetry_link_bytes(const ClientRecord *record) {
        double seconds = (double) (record->until_usec - record->since_usec) / 1e6;

        return (uint64_t) (record->load / 100.0 * seconds * LINK_BYTES_PER_SECOND);
}

void telemetry_read(const TrayHeader *header, const TrayGpu *gpu, const Clients *clients, usec_t now,
                Telemetry *ret) {
        const GpuModel *model = &header->model;
        double load = 0, power = 0, temperature = 0;
        double power_range = (double) model->busy_power_mw - (double) model->idle_power_mw;
        double temperature_range = model->busy_celsius - model->idle_celsius;
        uint64_t used = 0, bytes = gpu->link_bytes;

        for (size_t i = 0; i < clients->n; i++) {
                const ClientRecord *record = &clients->items[i].record;
                double share = at_most_one(record->load / FULL_POWER_LOAD);

                if (record->gpu != gpu->index)
                        continue;
                power += share * pulse_response(record, now, POWER_LAG);
                temperature += share * pulse_response(record, now, TEMPERATURE_LAG);
                bytes += telemetry_link_bytes(record);
                if (clients->items[i].alive) {
                        load += record->load;
                        used += record->used_bytes;
                }
        }

        ret->load = load > 100 ? 100 : (uint32_t) load;
        ret->memory_load = ret->load / 3;
        ret->power_mw = (uint32_t) (model->idle_power_mw + power_range * at_most_one(power));
        ret->celsius = (int32_t) lround(model->idle_celsius + temperature_range * at_most_one(temperature));
        ret->graphics_clock = ret->load > 0 ? model->graphics_clock_max : model->graphics_clock_idle;
        ret->video_clock = ret->load > 0 ? model->video_clock_max : model->video_clock_idle;
        ret->used_bytes = used > model->memory_total - model->memory_reserved
                        ? model->memory_total - model->memory_reserved
                        : used;
        ret->link_bytes = bytes;
}
