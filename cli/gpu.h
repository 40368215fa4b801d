/* SPDX-License-Identifier: MIT */
/* What the agent says about the tray and its GPUs, read from the bus in one round trip. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "agent/base/sample.h"
#include "cli/client.h"

#define GPU_VIEW_STEPS_MAX 24
#define GPU_VIEW_LINKS_MAX 64

typedef struct GpuViewStep {
        const char *name;
        uint64_t usec;
} GpuViewStep;

typedef struct GpuViewLink {
        uint32_t link;
        bool active;
        const char *remote; /* what is at its other end; "" if that is not known */
} GpuViewLink;

/* The properties of one org.gpuagent1.GPU, named and valued as on the bus. Strings are borrowed from the
 * Tray's messages and never NULL. */
typedef struct GpuView {
        const char *path;
        const char *uuid, *name, *bus_id, *serial;
        uint32_t index, minor;
        const char *state, *state_reason, *tenant, *tenant_presence, *last_tenant;
        uint32_t partition;
        const char *partition_name;
        uint32_t expected_clique_id; /* all ones: any settled one */
        uint32_t clique_id;
        const char *cluster_uuid, *fabric_state, *fabric_status, *fabric_health;
        uint32_t n_links, n_links_active;
        GpuViewLink links[GPU_VIEW_LINKS_MAX];
        size_t n_links_known;
        const char *health, *recovery_action;
        bool reset_pending, mig;
        uint64_t state_realtime_usec; /* since when; 0: before this agent knew it */
        uint64_t last_reset_realtime_usec, last_reset_duration_usec, reset_count;
        const char *last_reset_result, *last_reset_detail;
        GpuViewStep steps[GPU_VIEW_STEPS_MAX];
        size_t n_steps;
        uint32_t last_xid;
        uint64_t memory_total, memory_used;
        uint32_t utilization, power_mw;
        int32_t temperature;
} GpuView;

typedef struct Tray {
        sd_bus_message *properties, *objects;
        const char *version, *node_name, *driver_version, *driver_state, *driver_error, *mode;
        const char *maintenance_reason;
        bool handover_reset, maintenance;
        uint32_t resets_pending, quarantined;
        GpuView *gpus; /* in the order of their index */
        size_t n_gpus;
} Tray;

void tray_done(Tray *tray);

/* Everything. 0 and *ret (to be given to tray_done) · negative, and *failure says why. */
int tray_read(Client *client, Tray *ret, Failure *failure);

/* The same in two steps, for several trays at once. The question is the caller's, and stays where it is
 * until it is answered. */
typedef struct TrayQuestion {
        Call properties, objects;
} TrayQuestion;

void tray_question_done(TrayQuestion *question);
int tray_ask(Client *client, TrayQuestion *question, Failure *failure);
int tray_answer(Client *client, TrayQuestion *question, Tray *ret, Failure *failure);

/* NULL if there is none. */
const GpuView* tray_gpu_by_path(const Tray *tray, const char *path);
const GpuView* tray_gpu_by_uuid(const Tray *tray, const char *uuid);

/* Index as the person knows it: "0", or the UUID of one that has none (it is lost). `size` is at least
 * GPU_UUID_SIZE. */
void gpu_view_format(const GpuView *gpu, char *ret, size_t size);

/* Reads the properties that `message` has next, an a{sv} of a GPU: those that are not there or of another
 * type stay as they are. 0 · negative errno. */
int gpu_view_read_properties(sd_bus_message *message, GpuView *gpu);
