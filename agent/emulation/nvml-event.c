/* SPDX-License-Identifier: MIT */
/* Event sets: Xids and changes of the recovery action, noticed by looking at the tray's state ten times a
 * second. */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

#include "agent/emulation/nvml-exports.h"
#include "agent/emulation/nvml-session.h"

#define EVENT_TYPES (NVML_EVENT_XID | NVML_EVENT_RECOVERY_ACTION)
#define WATCHES_MAX 1024

typedef struct Watch {
        NvmlDevice device;
        uint64_t types;
        uint32_t xid;
        uint32_t recovery_action;
} Watch;

struct NvmlEventSetHandle {
        struct NvmlEventSetHandle *next;
        pthread_mutex_t lock;
        unsigned n_watches;
        Watch watches[WATCHES_MAX];
};

static pthread_mutex_t sets_lock = PTHREAD_MUTEX_INITIALIZER;
static NvmlEventSet sets;

static bool set_is_known(NvmlEventSet set) {
        bool known = false;

        (void) pthread_mutex_lock(&sets_lock);
        for (NvmlEventSet i = sets; i && !known; i = i->next)
                known = i == set;
        (void) pthread_mutex_unlock(&sets_lock);
        return known;
}

EXPORT NvmlReturn nvmlEventSetCreate(NvmlEventSet *ret) {
        NvmlEventSet set;
        NvmlReturn r;
        View view;

        r = view_open_tray(ret != NULL, &view);
        if (r != VIEW_READY)
                return r;
        set = calloc(1, sizeof *set);
        if (!set)
                return NVML_NO_MEMORY;
        (void) pthread_mutex_init(&set->lock, NULL);

        (void) pthread_mutex_lock(&sets_lock);
        set->next = sets;
        sets = set;
        (void) pthread_mutex_unlock(&sets_lock);
        *ret = set;
        return NVML_OK;
}

EXPORT NvmlReturn nvmlEventSetFree(NvmlEventSet set) {
        bool found = false;
        NvmlReturn r;
        View view;

        r = view_open_tray(set != NULL, &view);
        if (r != VIEW_READY)
                return r;

        (void) pthread_mutex_lock(&sets_lock);
        for (NvmlEventSet *i = &sets; *i && !found;)
                if (*i == set) {
                        *i = set->next;
                        found = true;
                } else {
                        i = &(*i)->next;
                }
        (void) pthread_mutex_unlock(&sets_lock);
        if (!found)
                return NVML_INVALID_ARGUMENT;
        (void) pthread_mutex_destroy(&set->lock);
        free(set);
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceGetSupportedEventTypes(NvmlDevice device, unsigned long long *types) {
        NvmlReturn r;
        View view;

        r = view_open(device, types != NULL, &view);
        if (r != VIEW_READY)
                return r;
        *types = EVENT_TYPES;
        return NVML_OK;
}

EXPORT NvmlReturn nvmlDeviceRegisterEvents(NvmlDevice device, unsigned long long types, NvmlEventSet set) {
        NvmlReturn r;
        View view;

        r = view_open(device, set && set_is_known(set), &view);
        if (r != VIEW_READY)
                return r;
        if ((types & ~(unsigned long long) EVENT_TYPES) != 0)
                return NVML_NOT_SUPPORTED;

        (void) pthread_mutex_lock(&set->lock);
        if (set->n_watches < WATCHES_MAX)
                set->watches[set->n_watches++] = (Watch){
                        .device = device,
                        .types = types,
                        .xid = view.gpu.last_xid,
                        .recovery_action = view.recovery_action,
                };
        else
                r = NVML_INSUFFICIENT_RESOURCES;
        (void) pthread_mutex_unlock(&set->lock);
        return r == VIEW_READY ? NVML_OK : r;
}

/* Whether something new is to be told of the watched GPU. */
static bool watch_look(Watch *watch, NvmlEventData *data) {
        uint32_t xid, recovery_action;
        View view;

        /* A GPU that is lost still has an Xid to tell. */
        if (view_open_identity(watch->device, true, &view) != VIEW_READY)
                return false;
        xid = watch->xid;
        recovery_action = watch->recovery_action;
        *data = (NvmlEventData){
                .device = watch->device, .gpu_instance = UINT32_MAX, .compute_instance = UINT32_MAX
        };

        if ((watch->types & NVML_EVENT_XID) && view.gpu.last_xid != xid) {
                watch->xid = view.gpu.last_xid;
                data->type = NVML_EVENT_XID;
                data->data = view.gpu.last_xid;
                return view.gpu.last_xid != 0;
        }
        if ((watch->types & NVML_EVENT_RECOVERY_ACTION) && view.recovery_action != recovery_action) {
                watch->recovery_action = view.recovery_action;
                data->type = NVML_EVENT_RECOVERY_ACTION;
                data->data = view.recovery_action;
                return true;
        }
        return false;
}

EXPORT NvmlReturn nvmlEventSetWait_v2(NvmlEventSet set, NvmlEventData *data, unsigned timeout_ms) {
        usec_t deadline;
        NvmlReturn r;
        View view;

        r = view_open_tray(set && data && set_is_known(set), &view);
        if (r != VIEW_READY)
                return r;

        deadline = usec_add(view.now, (usec_t) timeout_ms * USEC_PER_MSEC);
        for (;;) {
                usec_t now = now_monotonic_usec();
                NvmlEventData event;
                bool found = false;

                (void) pthread_mutex_lock(&set->lock);
                for (unsigned i = 0; i < set->n_watches && !found; i++)
                        found = watch_look(&set->watches[i], &event);
                (void) pthread_mutex_unlock(&set->lock);
                if (found) {
                        *data = event;
                        return NVML_OK;
                }
                if (now >= deadline)
                        return NVML_TIMED_OUT;
                (void) poll(NULL, 0, (int) (deadline - now < 100000 ? (deadline - now) / 1000 + 1 : 100));
        }
}

EXPORT NvmlReturn nvmlEventSetWait(NvmlEventSet set, NvmlEventData *data, unsigned timeout_ms) {
        return nvmlEventSetWait_v2(set, data, timeout_ms);
}
