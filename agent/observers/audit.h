/* SPDX-License-Identifier: MIT */
/* The audit: what became of each handover, and what happened to GPUs and driver, in the journal. It is
 * written here and not by the clients, whose quota and lifetime belong to others. */
#pragma once

#include "agent/core/manager.h"

typedef struct Audit Audit;

/* 0 and *ret · -ENOMEM, -ENOSPC too many observers. `manager` is borrowed. */
int audit_new(Manager *manager, Audit **ret);
Audit* audit_free(Audit *audit);

DEFINE_CLEANUP(Audit, audit_free_ptr, audit_free)
