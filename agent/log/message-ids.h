/* SPDX-License-Identifier: MIT */
/* MESSAGE_ID of each journal entry that programs and people look for; the text of `journalctl -x` for each
 * is in units/gpuagent.catalog. All of these entries are written by gpuagentd, but for what a Slurm script
 * of ours does on its own, with the fields named here; a field that may come several times is marked +. Once
 * shipped an id keeps its meaning. */
#pragma once

/* The syslog identifier where the caller has not given another. */
#define AUDIT_IDENTIFIER "gpuagentd"

/* Every GPU of a request was reset and verified. GPUAGENT_TENANT (may be empty), GPUAGENT_GPU+ (UUIDs),
 * GPUAGENT_RESULT ("done" or "fabric-pending"), GPUAGENT_DURATION_USEC */
#define MESSAGE_ID_HANDOVER_DONE "2f475979ff4c429881b16847d36208f9"

/* Some GPU of a request is not clean; MESSAGE names each and why.
 * GPUAGENT_TENANT, GPUAGENT_GPU+ (those that failed), GPUAGENT_RESULT (the error's short name, "Busy"),
 * GPUAGENT_DURATION_USEC */
#define MESSAGE_ID_HANDOVER_FAILED "67ae07fb884f406cb87b6fc588b2dd66"

/* A request came while handover.reset is false, or for GPUs that other tenants share still: nothing was
 * reset. GPUAGENT_TENANT, GPUAGENT_GPU+, GPUAGENT_RESULT=skipped, GPUAGENT_DURATION_USEC */
#define MESSAGE_ID_HANDOVER_OFF "aa004498b1bf49c5a9db111020e57cc8"

/* GPUs were booked for a tenant. GPUAGENT_TENANT, GPUAGENT_GPU+, GPUAGENT_RESULT ("done", or "skipped" while
 * handover.reset is false: they were not looked at), GPUAGENT_DURATION_USEC */
#define MESSAGE_ID_GPUS_BOOKED "fed7be8f920845da9d525c5f920ef81a"

/* A booking was refused, and nothing was booked; MESSAGE names each GPU that was in the way and why.
 * GPUAGENT_TENANT, GPUAGENT_GPU+ (those), GPUAGENT_RESULT (the error's short name),
 * GPUAGENT_DURATION_USEC */
#define MESSAGE_ID_BOOKING_REFUSED "27a2a81283a041d7b223a3e03f4fede2"

/* A release that changes nothing was refused: the GPUs are leased to another tenant, or there is no such
 * GPU. GPUAGENT_TENANT (may be empty), GPUAGENT_RESULT (the error's short name) */
#define MESSAGE_ID_RELEASE_REFUSED "52933f1320174416ae3c11b889ad801c"

/* A booking or a handover would have failed, and succeeded because mode is observe. As for the failure. */
#define MESSAGE_ID_OBSERVED "9da49cf8e6dd49e3bf1c7dfe4a5340d0"

/* The tenant of a lease is gone from this node and its end was missed. GPUAGENT_TENANT, GPUAGENT_GPU */
#define MESSAGE_ID_LEASE_RECLAIMED "c9219239ce3d4a7fac85caa7d47832b1"

/* Maintenance was switched. GPUAGENT_RESULT ("on" or "off") */
#define MESSAGE_ID_MAINTENANCE "06bf2ec687144cba9d40baafb1c733e9"

/* A GPU that is no longer in the tray was taken off the list. GPUAGENT_GPU */
#define MESSAGE_ID_GPU_FORGOTTEN "cc2505f4bb10477dbe7070a05a96fdeb"

/* A reset or the verification after it failed; only a later verified reset lifts this. GPUAGENT_GPU,
 * GPUAGENT_RESULT (the error's short name; not where the quarantine is from before a restart) */
#define MESSAGE_ID_GPU_QUARANTINED "45b92be951924883a069b76c842410ba"

/* A verified reset has lifted it. GPUAGENT_GPU, GPUAGENT_RESULT (the new state) */
#define MESSAGE_ID_QUARANTINE_LIFTED "94f501fae22e4fd6980d495a697ec447"

/* Root has ended the lease of another tenant. GPUAGENT_TENANT (whose it was), GPUAGENT_GPU */
#define MESSAGE_ID_LEASE_FORCED "291fc27d251143caa8c322c170c0cdde"

/* Processes that ended tenants had left on their GPUs were ended; MESSAGE names each. Written by
 * gpuagent-driver. GPUAGENT_TENANT+, GPUAGENT_GPU+ (of the same order), GPUAGENT_RESULT=ended */
#define MESSAGE_ID_LEFTOVERS_ENDED "45af1687ca564347893e232d265880ee"

/* The site's monitoring was stopped for a reset, or started again; MESSAGE names it. Written by
 * gpuagent-driver. GPUAGENT_RESULT ("stopped" or "started") */
#define MESSAGE_ID_QUIESCED "895e344d97f74220a541c4a3c8ddad20"

/* The GPU fell off the bus, or is not in the tray any more. GPUAGENT_GPU */
#define MESSAGE_ID_GPU_LOST "0ec05a05f97c42adb0d679f584cbd436"

/* The driver's recovery action asks for more than a reset: no reset is tried. GPUAGENT_GPU,
 * GPUAGENT_RESULT (the action) */
#define MESSAGE_ID_GPU_NEEDS_REBOOT "e48eb466652046f289a476a73f3245a3"

/* The health check of Slurm's has drained the node for a GPU that no job has. GPUAGENT_RESULT=drained */
#define MESSAGE_ID_NODE_DRAINED "094c689fe2534e04839bc4161b5521ca"

/* The health check has taken a node back into use that was drained with a reason of ours.
 * GPUAGENT_RESULT=resumed */
#define MESSAGE_ID_NODE_RESUMED "366fcf676bd649229a773aca6de14426"

/* DriverState changed. GPUAGENT_RESULT (the new state) */
#define MESSAGE_ID_DRIVER_STATE "b877b61af1a146cb96653d947cff7230"

/* The kernel logged an Xid for a GPU. GPUAGENT_GPU, GPUAGENT_RESULT (the number) */
#define MESSAGE_ID_XID "c6f9fdc1f4864b2094ab82337f3cbf4a"

/* A GPU came back from a reset in another clique. GPUAGENT_GPU, GPUAGENT_RESULT ("CLUSTER.CLIQUE") */
#define MESSAGE_ID_CLIQUE_CHANGED "666c9a53a28d466983af6a9e6a106f57"

/* A GPU was given to another partition, and is expected in its clique from the next reset on.
 * GPUAGENT_GPU, GPUAGENT_RESULT (the partition's number) */
#define MESSAGE_ID_PARTITION_CHANGED "1c8b743db7ac4a328f9115a7d46e8935"

/* Reload took the new configuration. */
#define MESSAGE_ID_CONFIG_RELOADED "5afb9af41e034c9f8834dd803d4da27a"

/* Reload found a mistake and kept the old configuration. */
#define MESSAGE_ID_CONFIG_REFUSED "0f08e00c5b25433a91d93648f2403bba"

/* Somebody without the right called a method. GPUAGENT_RESULT (the action) */
#define MESSAGE_ID_ACCESS_DENIED "6b8344371fc24780aa34e71ae7723e21"
