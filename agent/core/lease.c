/* SPDX-License-Identifier: MIT */
#include "agent/core/lease.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/array.h"
#include "agent/base/text.h"

/* Room for " and 256 more". */
#define MORE_SIZE 16

void lease_done(Lease *lease) {
        free(lease->tenants);
        *lease = (Lease){};
}

int lease_copy(const Lease *lease, Lease *ret) {
        Lease copy = { .n = lease->n, .shared = lease->shared };

        if (lease->n > 0) {
                copy.tenants = reallocarray(NULL, lease->n, sizeof *copy.tenants);
                if (!copy.tenants)
                        return -ENOMEM;
                memcpy(copy.tenants, lease->tenants, lease->n * sizeof *copy.tenants);
        }
        *ret = copy;
        return 0;
}

LeaseTenant* lease_find(const Lease *lease, const char *tenant) {
        for (size_t i = 0; i < lease->n; i++)
                if (streq(lease->tenants[i].name, tenant))
                        return lease->tenants + i;
        return NULL;
}

int lease_add(Lease *lease, const char *tenant, bool shared, usec_t realtime_usec) {
        LeaseTenant *added;
        int r;

        if (lease_find(lease, tenant))
                return 0;
        if (lease->n > 0 && !(lease->shared && shared))
                return -EBUSY;
        if (lease->n == LEASE_TENANTS_MAX)
                return -ENOSPC;

        r = array_reserve(&lease->tenants, lease->n, 1);
        if (r < 0)
                return r;
        added = &lease->tenants[lease->n++];
        *added = (LeaseTenant){ .since_realtime_usec = realtime_usec };
        (void) snprintf(added->name, sizeof added->name, "%s", tenant);
        lease->shared = shared;
        return 1;
}

int lease_remove(Lease *lease, const char *tenant, bool *ret_last) {
        LeaseTenant *found = lease_find(lease, tenant);

        if (!found)
                return 0;
        lease->n--;
        memmove(found, found + 1, (size_t) (lease->tenants + lease->n - found) * sizeof *found);
        *ret_last = lease->n == 0;
        if (lease->n == 0)
                lease_done(lease);
        return 1;
}

TenantPresence lease_presence(const Lease *lease) {
        bool unknown = lease->n == 0;

        for (size_t i = 0; i < lease->n; i++) {
                if (lease->tenants[i].presence == TENANT_NO_SIGN)
                        return TENANT_NO_SIGN;
                unknown |= lease->tenants[i].presence == TENANT_UNKNOWN;
        }
        return unknown ? TENANT_UNKNOWN : TENANT_ALIVE;
}

void lease_format(const Lease *lease, char *ret, size_t size) {
        size_t used = 0, named = 0;

        ret[0] = '\0';
        for (; named < lease->n; named++) {
                size_t wanted = used + strlen(lease->tenants[named].name) + strlen(", ");

                if (wanted + (named + 1 < lease->n ? MORE_SIZE : 1) > size)
                        break;
                used += (size_t) snprintf(ret + used, size - used, "%s%s", named > 0 ? ", " : "",
                                lease->tenants[named].name);
        }
        if (named < lease->n)
                (void) snprintf(ret + used, size - used, "%s%zu more", named > 0 ? " and " : "",
                                lease->n - named);
}
