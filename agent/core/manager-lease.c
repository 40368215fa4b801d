/* SPDX-License-Identifier: MIT */
/* Who has what: how leases end, by a release or because their tenant is gone; and what is said of the tray
 * as such: maintenance, and GPUs that will not come back. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/text.h"
#include "agent/core/manager-internal.h"

bool manager_has_leases(const Manager *manager) {
        for (size_t i = 0; i < manager->inventory.n; i++)
                if (manager->inventory.by_index[i]->lease.n > 0)
                        return true;
        return false;
}

/* Whether the request is about the GPU. */
static bool request_names(const Request *request, const Gpu *gpu) {
        for (size_t i = 0; i < request->n_items; i++)
                if (request->items[i].gpu == gpu)
                        return true;
        return false;
}

static int compare_names(const void *a, const void *b) {
        const char *const *x = a, *const *y = b;

        return strcmp(*x, *y);
}

int manager_collect_tenants(const Manager *manager, char ***ret) {
        size_t n = 0, kept = 0;
        char **tenants;

        for (size_t i = 0; i < manager->inventory.n; i++)
                n += manager->inventory.by_index[i]->lease.n;
        tenants = calloc(n + 1, sizeof *tenants);
        if (!tenants)
                return -ENOMEM;

        n = 0;
        for (size_t i = 0; i < manager->inventory.n; i++) {
                const Lease *lease = &manager->inventory.by_index[i]->lease;

                for (size_t j = 0; j < lease->n; j++)
                        tenants[n++] = lease->tenants[j].name;
        }
        if (n > 0)
                qsort(tenants, n, sizeof *tenants, compare_names);
        for (size_t i = 0; i < n; i++)
                if (kept == 0 || !streq(tenants[kept - 1], tenants[i]))
                        tenants[kept++] = tenants[i];
        tenants[kept] = NULL;
        *ret = tenants;
        return 0;
}

size_t manager_find_leased(const Manager *manager, const char *tenant, Gpu **ret) {
        size_t n = 0;

        for (size_t i = 0; i < manager->inventory.n; i++) {
                Gpu *gpu = manager->inventory.by_index[i];

                if (lease_find(&gpu->lease, tenant) ||
                                (gpu->handover && streq(gpu->handover->tenant, tenant)) ||
                                (gpu->next && streq(gpu->next->tenant, tenant)))
                        ret[n++] = gpu;
        }
        return n;
}

int manager_check_release(Manager *manager, const Request *request) {
        for (size_t i = 0; i < request->n_items; i++) {
                const Gpu *gpu = request->items[i].gpu;
                char tenants[LEASE_LINE_SIZE];

                if (gpu->lease.n == 0 || request->force ||
                                (request->tenant && lease_find(&gpu->lease, request->tenant)))
                        continue;
                lease_format(&gpu->lease, tenants, sizeof tenants);
                return manager_fail(manager, -EPERM, "GPU %u is leased to %s%s%s", gpu->sample.index,
                                tenants, request->tenant ? ", not to " : "", request->tenant ?: "");
        }
        return 0;
}

/* What the tenant has asked for and now gives up. */
static void manager_cancel_bookings(Manager *manager, const Request *release) {
        for (Request *request = manager->first; request; request = request->following) {
                bool met = false;

                if (request->kind != REQUEST_ACQUIRE || !release->tenant ||
                                !streq(request->tenant, release->tenant))
                        continue;
                for (size_t i = 0; i < release->n_items && !met; i++)
                        met = request_names(request, release->items[i].gpu);
                request->abandoned |= met;
                for (size_t i = 0; met && i < request->n_items; i++) {
                        char detail[64 + TENANT_MAX];

                        (void) snprintf(detail, sizeof detail,
                                        "GPU %u was released by %s before it was booked",
                                        request->items[i].gpu->sample.index, request->tenant);
                        request_finish_item(request, i, OUTCOME_TIMED_OUT, detail);
                }
        }
}

int manager_end_leases(Manager *manager, Request *request, Now now) {
        for (size_t i = 0; i < request->n_items; i++)
                if (lease_copy(&request->items[i].gpu->lease, &request->items[i].former) < 0)
                        return manager_fail(manager, -ENOMEM, "Out of memory");

        for (size_t i = 0; i < request->n_items; i++) {
                Gpu *gpu = request->items[i].gpu;

                if (request->tenant)
                        gpu_end_lease(gpu, request->tenant, now.realtime_usec);
                while (request->force && gpu->lease.n > 0)
                        gpu_end_lease(gpu, gpu->lease.tenants[gpu->lease.n - 1].name, now.realtime_usec);
        }
        manager_cancel_bookings(manager, request);
        return 0;
}

void manager_restore_leases(Request *request, Now now) {
        for (size_t i = 0; i < request->n_items; i++)
                if (request->items[i].former.n > 0)
                        gpu_put_lease(request->items[i].gpu, &request->items[i].former, now.realtime_usec);
}

/* The tenant is gone: its lease ends, and with the last one the handover begins. Without memory the lease
 * stays, and the next look ends it. */
static void manager_reclaim(Manager *manager, Gpu *gpu, const char *tenant, Now now) {
        Handover **slot = gpu->handover && handover_has_begun(gpu->handover) ? &gpu->next : &gpu->handover;

        if (gpu->lease.n == 1 && manager->config->handover.reset) {
                if (!*slot && handover_new(gpu, manager->config, tenant, now.monotonic_usec, slot) < 0)
                        return;
                if (streq((*slot)->tenant, tenant))
                        (*slot)->tenant_ended = true;
        }
        gpu_end_lease(gpu, tenant, now.realtime_usec);
        manager->state_stale = true;
        (void) manager_write_state(manager); /* the commit tries again; without a file nothing is clean */
        manager_tell(manager, on_lease_reclaimed, gpu, tenant);
}

/* A later run of the same job waits for the GPU. Slurm starts no run before the last one is over, so that
 * one without a sign of life has ended, whether it was ever seen or not: its epilog was lost. */
static bool manager_has_later_run(const Manager *manager, const Gpu *gpu, const char *tenant) {
        for (const Request *request = manager->first; request; request = request->following)
                if (request->kind == REQUEST_ACQUIRE && !request->abandoned &&
                                tenant_is_later_run(request->tenant, tenant) && request_names(request, gpu))
                        return true;
        return false;
}

static void manager_take_sign(Manager *manager, Gpu *gpu, const TenantSign *sign, Now now) {
        LeaseTenant *tenant = lease_find(&gpu->lease, sign->tenant);

        if (!tenant)
                return;
        if (tenant->presence != sign->presence) {
                tenant->presence = sign->presence;
                gpu->changes |= GPU_CHANGE_STATE;
        }
        if (sign->presence == TENANT_ALIVE && !tenant->seen_alive) {
                tenant->seen_alive = true;
                manager->state_stale = true;
        } else if (sign->presence == TENANT_NO_SIGN &&
                        (tenant->seen_alive || manager_has_later_run(manager, gpu, sign->tenant)))
                manager_reclaim(manager, gpu, sign->tenant, now);
}

void manager_take_tenants(Manager *manager, const VendorReply *reply, Now now) {
        if (reply->driver_state != DRIVER_OK)
                return;
        for (size_t i = 0; i < manager->inventory.n; i++)
                for (size_t j = 0; j < reply->n_tenants; j++)
                        manager_take_sign(manager, manager->inventory.by_index[i], reply->tenants + j, now);
}

void manager_look_for_tenants(Manager *manager, Now now) {
        manager->look_for_tenants = true;
        manager_dispatch(manager, now);
}

int manager_set_maintenance(Manager *manager, bool on, const char *reason, Now now) {
        StateTray before = manager->tray;
        int r;

        manager->tray.maintenance = on;
        text_escape_words(on ? reason : "", manager->tray.maintenance_reason,
                        sizeof manager->tray.maintenance_reason);
        manager->state_stale = true;
        r = manager_write_state(manager);
        if (r < 0) {
                manager->tray = before;
                return r;
        }

        if (before.maintenance && !on)
                manager->poll_at_usec = now.monotonic_usec; /* much may have changed */
        manager->changes |= MANAGER_CHANGE_MAINTENANCE;
        manager_commit(manager, now);
        manager_dispatch(manager, now);
        return 0;
}

static bool manager_is_asked_for(const Manager *manager, const Gpu *gpu) {
        for (const Request *request = manager->first; request; request = request->following)
                if (request_names(request, gpu))
                        return true;
        return false;
}

int manager_forget(Manager *manager, const char *id, Now now) {
        Gpu *gpu;
        int r;

        r = manager_find(manager, id, &gpu);
        if (r < 0)
                return r;
        if (gpu->present)
                return manager_fail(manager, -EBUSY, "GPU %u is there, and cannot be forgotten",
                                gpu->sample.index);
        if (!gpu->probed)
                return manager_fail(manager, -EBUSY, "GPU %u was not looked for yet; try again in a moment",
                                gpu->sample.index);
        if (gpu->handover || manager_is_asked_for(manager, gpu))
                return manager_fail(manager, -EBUSY, "GPU %u is being worked on; try again in a moment",
                                gpu->sample.index);

        inventory_remove(&manager->inventory, gpu);
        manager->state_stale = true;
        r = manager_write_state(manager);
        if (r < 0) {
                if (inventory_add(&manager->inventory, gpu) < 0)
                        (void) gpu_free(gpu);
                inventory_sort(&manager->inventory);
                return r;
        }
        manager_tell(manager, on_gpu_removed, gpu);
        (void) gpu_free(gpu);
        manager_commit(manager, now);
        return 0;
}
