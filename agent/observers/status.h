/* SPDX-License-Identifier: MIT */
/* The status line of the service: "4 GPUs, 1 quarantined", as systemctl status shows it. */
#pragma once

#include "agent/core/manager.h"

typedef struct Status Status;

/* 0 and *ret · -ENOMEM, -ENOSPC too many observers. `manager` is borrowed. */
int status_new(Manager *manager, Status **ret);
Status* status_free(Status *status);

/* Tells systemd READY=1, and the status from now on. */
void status_ready(Status *status);

DEFINE_CLEANUP(Status, status_free_ptr, status_free)
