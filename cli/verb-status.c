/* SPDX-License-Identifier: MIT */
/* gpuagentctl status: what is wrong with the tray and its GPUs, since when, and what cures it. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "agent/base/text.h"
#include "cli/bus-json.h"
#include "cli/gpu-list.h"
#include "cli/json.h"
#include "cli/processes.h"

/* By so much a tray's clock may be ahead of ours without a word. */
#define AHEAD_USEC (60 * USEC_PER_SEC)

/* "12 s ago", "3 h ago": what a person wants to know of a time. One that is still to come is of a clock that
 * was set meanwhile. */
static void format_age(uint64_t realtime_usec, char *ret, size_t size) {
        uint64_t now = now_realtime_usec(),
                 seconds = now > realtime_usec ? (now - realtime_usec) / USEC_PER_SEC : 0;
        static const struct {
                uint64_t seconds, up_to;
                const char *unit;
        } units[] = { { 1, 120, "s" }, { 60, 7200, "min" }, { 3600, 172800, "h" },
                { 86400, UINT64_MAX, "days" } };
        size_t i = 0;

        if (realtime_usec > usec_add(now, AHEAD_USEC)) {
                (void) snprintf(ret, size, "ahead of the clock");
                return;
        }
        while (seconds >= units[i].up_to)
                i++;
        (void) snprintf(ret, size, "%llu %s ago", (unsigned long long) (seconds / units[i].seconds),
                        units[i].unit);
}

static void print_time(const char *title, uint64_t realtime_usec) {
        time_t seconds = (time_t) (realtime_usec / USEC_PER_SEC);
        char text[64] = "", age[32];
        struct tm tm;

        if (localtime_r(&seconds, &tm))
                (void) strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %Z", &tm);
        format_age(realtime_usec, age, sizeof age);
        print_line(stdout, "  %-10s %s (%s)", title, text, age);
}

/* What a person does about the driver's state; NULL if there is nothing to do. */
static const char* driver_cure(const char *state) {
        static const struct {
                const char *state, *cure;
        } cures[] = {
                { "missing", "load the driver (modprobe nvidia); its GPUs are then found by themselves" },
                { "failed", "see journalctl -u gpuagent-driver -u gpuagentd" },
                { "unresponsive",
                                "a call into the driver hangs; if it does not come back, reboot the tray" },
                { "unknown", "the driver was not asked yet; gpuagentctl verify asks it" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cures); i++)
                if (streq(state, cures[i].state))
                        return cures[i].cure;
        return NULL;
}

static bool needs_reboot(const GpuView *gpu) {
        return streq(gpu->recovery_action, "node-reboot") || streq(gpu->recovery_action, "system-reboot") ||
                        streq(gpu->recovery_action, "bus-reset");
}

/* Its fabric has come to rest in another clique than its partition's. */
static bool is_elsewhere(const GpuView *gpu) {
        return gpu->expected_clique_id != UNKNOWN_U32 && gpu->clique_id != UNKNOWN_U32 &&
                        gpu->expected_clique_id != gpu->clique_id;
}

/* What a person does about a GPU; false if there is nothing to do. */
static bool gpu_cure(const GpuView *gpu, char *ret, size_t size) {
        char name[GPU_UUID_SIZE];

        gpu_view_format(gpu, name, sizeof name);
        if (needs_reboot(gpu))
                (void) snprintf(ret, size, "reboot the tray: the driver asks for it (%s)",
                                gpu->recovery_action);
        else if (streq(gpu->state, "lost"))
                (void) snprintf(ret, size,
                                "reboot the tray; if the GPU does not come back, it needs service, or, "
                                "if it was taken out: gpuagentctl forget %s",
                                name);
        else if (streq(gpu->state, "in-use") && gpu->tenant_presence[0])
                return false; /* leased, as it should be; to whom is not told everybody */
        else if (streq(gpu->state, "in-use"))
                (void) snprintf(ret, size,
                                "wait for its holders to end, or end them, then: gpuagentctl reset -i %s",
                                name);
        else if (gpu->mig && !streq(gpu->state, "clean"))
                (void) snprintf(ret, size, "nvidia-smi -i %s -mig 0, then: gpuagentctl reset -i %s", name,
                                name);
        else if (streq(gpu->recovery_action, "recover-imex-domain"))
                (void) snprintf(ret, size,
                                "restart nvidia-imex on the trays of its domain, then: gpuagentctl reset -i "
                                "%s",
                                name);
        else if (streq(gpu->recovery_action, "drain-p2p"))
                (void) snprintf(ret, size,
                                "wait for the applications on its peers to end, then: gpuagentctl reset -i "
                                "%s",
                                name);
        else if (streq(gpu->state, "quarantined") && is_elsewhere(gpu))
                (void) snprintf(ret, size,
                                "tell the fabric its partition once more, by gpuagentctl partition, then: "
                                "gpuagentctl reset -i %s",
                                name);
        else if (streq(gpu->state, "quarantined"))
                (void) snprintf(ret, size, "gpuagentctl reset -i %s; if it fails again, reboot the tray",
                                name);
        else if (gpu->reset_pending || streq(gpu->state, "dirty") || streq(gpu->state, "unknown"))
                (void) snprintf(ret, size, "gpuagentctl reset -i %s", name);
        else if (streq(gpu->health, "degraded") || streq(gpu->health, "unhealthy"))
                (void) snprintf(ret, size,
                                "gpuagentctl reset -i %s may cure it; if not, see nvidia-smi -q -i %s", name,
                                name);
        else
                return false;
        return true;
}

static void print_last_reset(const GpuView *gpu) {
        if (gpu->last_reset_realtime_usec == 0 || gpu->last_reset_realtime_usec == UNKNOWN_U64) {
                print_line(stdout, "  %-10s none in this boot", "reset:");
                return;
        }
        print_time("reset:", gpu->last_reset_realtime_usec);
        print_line(stdout, "  %-10s %s in %.3f s%s%s", "", gpu->last_reset_result,
                        (double) gpu->last_reset_duration_usec / (double) USEC_PER_SEC,
                        gpu->last_reset_detail[0] ? ": " : "", gpu->last_reset_detail);
        for (size_t i = 0; i < gpu->n_steps; i++)
                print_line(stdout, "  %-10s %8.3f s  %s", "",
                                (double) gpu->steps[i].usec / (double) USEC_PER_SEC, gpu->steps[i].name);
}

static void print_holders(const GpuView *gpu, const ProcessList *holders) {
        for (size_t i = 0; i < holders->n_processes; i++) {
                const ProcessView *process = &holders->processes[i];

                if (process->gpu == gpu)
                        print_line(stdout, "  %-10s %s (pid %u, user %s%s%s)", "held by:", process->command,
                                        process->pid, process->user, process->where[0] ? ", " : "",
                                        process->where);
        }
}

/* What is to be known about a lease that does not end by itself. */
static const char* tenant_note(const GpuView *gpu) {
        static const struct {
                const char *presence, *note;
        } notes[] = {
                { "alive", ", which is alive on this node" },
                { "no-sign",
                                ", of which there is no sign on this node yet; it keeps the GPU until a "
                                "release" },
                { "unknown", ", which keeps the GPU until a release" },
        };

        for (size_t i = 0; i < ELEMENTSOF(notes); i++)
                if (streq(gpu->tenant_presence, notes[i].presence))
                        return notes[i].note;
        return "";
}

static void print_gpu(const GpuView *gpu, const ProcessList *holders) {
        bool asks = !streq(gpu->recovery_action, "none") && !streq(gpu->recovery_action, "unknown");
        char name[GPU_UUID_SIZE], cure[160];

        gpu_view_format(gpu, name, sizeof name);
        print_line(stdout, "GPU %s  %s  %s%s%s", name, gpu->uuid, gpu->bus_id, gpu->name[0] ? "  " : "",
                        gpu->name);
        print_line(stdout, "  %-10s %s%s%s", "state:", gpu->state, gpu->state_reason[0] ? ": " : "",
                        gpu->state_reason);
        if (gpu->state_realtime_usec != 0 && gpu->state_realtime_usec != UNKNOWN_U64)
                print_time("since:", gpu->state_realtime_usec);
        if (gpu_cure(gpu, cure, sizeof cure))
                print_line(stdout, "  %-10s %s", "to do:", cure);
        print_holders(gpu, holders);
        if (gpu->tenant[0] || gpu->last_tenant[0])
                print_line(stdout, "  %-10s %s%s",
                                "tenant:", gpu->tenant[0] ? gpu->tenant : gpu->last_tenant,
                                gpu->tenant[0] ? tenant_note(gpu) : " (the last one)");
        print_line(stdout, "  %-10s %s%s%s", "health:", gpu->health, asks ? ", recovery action " : "",
                        asks ? gpu->recovery_action : "");
        if (gpu->last_xid != 0 && gpu->last_xid != UNKNOWN_U32)
                print_line(stdout, "  %-10s %u (the last one)", "Xid:", gpu->last_xid);
        if (gpu->clique_id != UNKNOWN_U32 && gpu->cluster_uuid[0])
                print_line(stdout, "  %-10s clique %u of %s, %s", "fabric:", gpu->clique_id,
                                gpu->cluster_uuid, gpu->fabric_state);
        else
                print_line(stdout, "  %-10s %s", "fabric:", gpu->fabric_state);
        if (gpu->partition != UNKNOWN_U32)
                print_line(stdout, "  %-10s %u%s%s%s", "partition:", gpu->partition,
                                gpu->partition_name[0] ? " " : "", gpu->partition_name,
                                gpu->reset_pending ? " (a reset is pending)" : "");
        if (gpu->n_links != UNKNOWN_U32 && gpu->n_links_active != UNKNOWN_U32)
                print_line(stdout, "  %-10s %u of %u active", "NVLinks:", gpu->n_links_active, gpu->n_links);
        print_last_reset(gpu);
}

/* Nothing of all that is told below asks for a person. */
static bool is_well(const Tray *tray) {
        char cure[160];

        for (size_t i = 0; i < tray->n_gpus; i++)
                if (gpu_cure(&tray->gpus[i], cure, sizeof cure))
                        return false;
        return !driver_cure(tray->driver_state) && !tray->maintenance;
}

static void print_tray(const Tray *tray) {
        const char *cure = driver_cure(tray->driver_state);

        print_line(stdout, "%s: %zu GPU%s, %u quarantined, %u waiting for a reset", tray->node_name,
                        tray->n_gpus, tray->n_gpus == 1 ? "" : "s", tray->quarantined, tray->resets_pending);
        print_line(stdout, "  %-10s %s%s%s%s%s", "driver:", tray->driver_state,
                        tray->driver_version[0] ? ", version " : "", tray->driver_version,
                        tray->driver_error[0] ? ": " : "", tray->driver_error);
        if (cure)
                print_line(stdout, "  %-10s %s", "to do:", cure);
        print_line(stdout, "  %-10s gpuagentd %s%s%s", "agent:", tray->version,
                        tray->handover_reset ? "" : ", handover.reset is off",
                        streq(tray->mode, "observe") ? ", it only observes" : "");
        if (is_well(tray))
                print_line(stdout, "  %-10s nothing", "to do:");
        if (tray->maintenance)
                print_line(stdout,
                                "  %-10s maintenance is on%s%s; when it is over: gpuagentctl maintenance "
                                "off",
                                "on hold:", tray->maintenance_reason[0] ? ", " : "",
                                tray->maintenance_reason);
}

/* A look for holders costs half a second on a busy node: one for all, only where something holds a GPU, not
 * in maintenance, and only for those who may. */
static void read_holders(Client *client, const Tray *tray, const GpuView **gpus, size_t n,
                const Options *options, ProcessList *ret) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(strv_free_ptr) char **ids = NULL;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < n; i++)
                if (streq(gpus[i]->state, "in-use"))
                        r = strv_append(&ids, gpus[i]->uuid);
        if (r >= 0 && (!ids || tray->maintenance))
                return;
        if (r < 0 || process_list_read(client, tray, ids, options, ret, &failure) < 0)
                print_complaint("the holders are not known: %s", failure.message ?: "out of memory");
}

static int print_text(
                Client *client, const Tray *tray, char **names, const Options *options, Failure *failure) {
        CLEANUP(process_list_done) ProcessList holders = {};
        CLEANUP(free_ptr) const GpuView **gpus = NULL;
        size_t n = 0;

        gpus = calloc(names[0] ? strv_length(names) : tray->n_gpus + 1, sizeof *gpus);
        if (!gpus)
                return failure_errno(failure, -ENOMEM, "cannot show the GPUs");
        for (; !names[0] && n < tray->n_gpus; n++)
                gpus[n] = &tray->gpus[n];
        STRV_FOREACH (name, names) {
                int r = gpu_list_find(tray, *name, &gpus[n], failure);

                if (r < 0)
                        return r;
                n++;
        }

        read_holders(client, tray, gpus, n, options, &holders);
        if (!names[0])
                print_tray(tray);
        for (size_t i = 0; i < n; i++) {
                if (i > 0 || !names[0])
                        (void) putchar('\n');
                print_gpu(gpus[i], &holders);
        }
        return 0;
}

/* The GPU's properties, out of what json_from_message() made of GetManagedObjects. */
static int json_add_gpu(json_object *gpus, json_object *objects, const GpuView *gpu) {
        json_object *object = json_object_object_get(objects, gpu->path);

        if (json_object_array_add(gpus, json_object_get(json_object_object_get(object, GPU_INTERFACE))) < 0)
                return -ENOMEM;
        return 0;
}

/* Everything the agent says, as {"tray": {…}, "gpus": [{…}]} with the names that it has on the bus. */
static int print_json(const Tray *tray, char **names, const Options *options, Failure *failure) {
        CLEANUP(json_put_ptr) json_object *all = json_object_new_object(), *objects = NULL;
        json_object *properties = NULL, *gpus = json_object_new_array();
        int r;

        r = json_set(all, "gpus", gpus);
        if (r >= 0)
                r = sd_bus_message_rewind(tray->properties, true);
        if (r >= 0)
                r = json_from_message(tray->properties, &properties);
        if (r >= 0)
                r = json_set(all, "tray", properties);
        if (r >= 0)
                r = sd_bus_message_rewind(tray->objects, true);
        if (r >= 0)
                r = json_from_message(tray->objects, &objects);

        for (size_t i = 0; r >= 0 && !names[0] && i < tray->n_gpus; i++)
                r = json_add_gpu(gpus, objects, &tray->gpus[i]);
        STRV_FOREACH (name, names) {
                const GpuView *gpu;

                if (r >= 0 && gpu_list_find(tray, *name, &gpu, failure) < 0)
                        return -EIO;
                if (r >= 0)
                        r = json_add_gpu(gpus, objects, gpu);
        }
        if (r >= 0)
                r = json_print(all, options->output);
        return r < 0 ? failure_errno(failure, r, "cannot print the state") : 0;
}

int verb_status(const Options *options, int argc, char **argv) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(client_free_ptr) Client *client = NULL;
        CLEANUP(tray_done) Tray tray = {};
        int r;

        r = client_open(options, &client, &failure);
        if (r >= 0)
                r = tray_read(client, &tray, &failure);
        if (r >= 0 && options->output == OUTPUT_TABLE)
                r = print_text(client, &tray, argv + 1, options, &failure);
        else if (r >= 0)
                r = print_json(&tray, argv + 1, options, &failure);
        return r < 0 ? failure_report(&failure) : CLI_DONE;
}
