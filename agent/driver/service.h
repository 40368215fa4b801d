/* SPDX-License-Identifier: MIT */
/* The service's side of the protocol: one peer, gpuagentd, asks over the listening socket. */
#pragma once

#include <systemd/sd-event.h>

#include "agent/driver/resumer.h"
#include "agent/driver/queue.h"

typedef struct Service Service;

/* Listens on a socket, which stays the caller's, as the queue and the resumer do. 0 · -errno. */
int service_new(sd_event *event, Queue *queue, Resumer *resumer, int listen_fd, Service **ret);
Service* service_free(Service *service);

/* Takes no more connections, serves those that there are, and calls stopped() when the last of them has
 * gone, perhaps at once. gpuagentd has one for as long as a handover is under way. */
void service_stop(Service *service, void (*stopped)(void *userdata), void *userdata);

DEFINE_CLEANUP(Service, service_free_ptr, service_free)
