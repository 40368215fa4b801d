/* SPDX-License-Identifier: MIT */
/* Who has a GPU: one tenant, or several where it is shared. Leases are on file before a tenant is told of
 * them, and outlive the agent but not the boot. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/base/clock.h"
#include "agent/base/parse.h"
#include "agent/base/sample.h"

/* Shared GPUs: far above the shards that a site cuts a GPU into. */
#define LEASE_TENANTS_MAX 256

/* What a line for people has room for: the one tenant that there mostly is, or some of those that share. */
#define LEASE_LINE_SIZE 160

typedef struct LeaseTenant {
        char name[TENANT_MAX + 1];
        usec_t since_realtime_usec;
        bool seen_alive;   /* a sign of it was seen on this node after the booking */
        uint32_t presence; /* TenantPresence, as of the last look; not kept over restarts */
} LeaseTenant;

typedef struct Lease {
        LeaseTenant *tenants; /* empty: the GPU is free */
        size_t n;
        bool shared; /* more may join */
} Lease;

void lease_done(Lease *lease);

/* 0 and *ret · -ENOMEM. */
int lease_copy(const Lease *lease, Lease *ret);

/* 1 booked · 0 the tenant has it already · -EBUSY another has it, alone or not to be shared with · -ENOSPC,
 * -ENOMEM. */
int lease_add(Lease *lease, const char *tenant, bool shared, usec_t realtime_usec);

/* 1 ended, *ret_last says whether nobody has it any more · 0 the tenant does not have it. */
int lease_remove(Lease *lease, const char *tenant, bool *ret_last);

/* The tenant's entry, NULL if it does not have the GPU. Borrowed. */
LeaseTenant* lease_find(const Lease *lease, const char *tenant);

/* Of the one that is least to be seen: NO_SIGN before UNKNOWN before ALIVE. UNKNOWN without tenants. */
TenantPresence lease_presence(const Lease *lease);

/* "slurm/26.0", "slurm/26.0, pod/…", with as many as fit and "and 2 more" for the rest; "" for a free
 * GPU. */
void lease_format(const Lease *lease, char *ret, size_t size);
