/* SPDX-License-Identifier: MIT */
/* Xids: the GPU errors that the NVIDIA kernel module logs, as the journal has them from the kernel. An NVML
 * event set would tell them too, but it is a session with the driver, which stands in the way of a reset. */
#pragma once

#include <systemd/sd-event.h>

#include "agent/core/manager.h"

typedef struct XidWatch XidWatch;

/* Follows the journal from its end on. 0 and *ret · -errno of sd-journal or sd-event: no Xids are seen.
 * Where the journal may not be read it looks empty. `manager` is borrowed. */
int xid_watch_new(sd_event *event, Manager *manager, XidWatch **ret);
XidWatch* xid_watch_free(XidWatch *watch);

/* "NVRM: Xid (PCI:0000:18:00): 79, pid=…": the bus id, in NVIDIA's spelling, and the number. 0 · -EINVAL
 * another line. */
int xid_parse(const char *line, char ret_bus_id[static GPU_BUS_ID_SIZE], uint32_t *ret_xid);

DEFINE_CLEANUP(XidWatch, xid_watch_free_ptr, xid_watch_free)
