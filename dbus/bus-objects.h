/* SPDX-License-Identifier: MIT */
/* The objects of org.gpuagent1 and where they are: used between the files of this folder. */
#pragma once

#include <systemd/sd-bus.h>

#include "dbus/bus-api.h"

extern const sd_bus_vtable bus_manager_vtable[];
extern const sd_bus_vtable bus_gpu_vtable[];

/* "/org/gpuagent1/gpu/GPU_…" */
void bus_gpu_path(const Gpu *gpu, char ret[static BUS_GPU_PATH_SIZE]);

/* find() of the GPU vtable, and the enumerator of the GPUs' paths; both as in
 * sd_bus_add_fallback_vtable(3). */
int bus_gpu_find(sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret,
                sd_bus_error *error);
int bus_gpu_enumerate(sd_bus *bus, const char *prefix, void *userdata, char ***ret, sd_bus_error *error);

/* The clique, where it is valid. */
bool bus_gpu_clique(const Gpu *gpu, const char **ret_cluster, uint32_t *ret_clique);

/* How the last reset ended, for everyone: with names, or with counts where names are hidden. */
const char* bus_gpu_public_detail(
                const BusConnection *connection, const Gpu *gpu, Outcome outcome, const char *detail);

/* Puts /org/freedesktop/LogControl1 on a connection. 0 or positive · -errno. */
int bus_log_control_add(BusConnection *connection);

/* Makes the core tell every connection. 0 · -errno. */
int bus_observer_add(BusApi *api);
