/* SPDX-License-Identifier: MIT */
/* One strict parser for each kind of input. All of them take any bytes; -EINVAL leaves the outputs
 * untouched. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/clock.h"

/* Room for "GPU-" and 8-4-4-4-12 hex digits, and for "00000000:18:00.0"; a tenant without its NUL. */
#define GPU_UUID_SIZE   48
#define GPU_BUS_ID_SIZE 20
#define TENANT_MAX      128

/* Decimal digits only: no sign, no white space, no leading zero but "0". 0 · -EINVAL · -ERANGE above max. */
int parse_u32(const char *s, uint32_t max, uint32_t *ret);
int parse_u64(const char *s, uint64_t max, uint64_t *ret);

/* yes/no, true/false, on/off, 1/0, in any case as in YAML (a template writes True). 0 · -EINVAL. */
int parse_boolean(const char *s, bool *ret);

/* "90", "1.5s", "200ms", "500us", "2min", "1h"; a bare number is seconds. 0 · -EINVAL · -ERANGE. */
int parse_duration(const char *s, usec_t *ret_usec);

typedef enum GpuIdKind {
        GPU_ID_INDEX,
        GPU_ID_UUID,
        GPU_ID_BUS_ID,
} GpuIdKind;

/* How a person or program named one GPU. */
typedef struct GpuId {
        GpuIdKind kind;
        uint32_t index;
        char uuid[GPU_UUID_SIZE];     /* the hex digits in lower case */
        char bus_id[GPU_BUS_ID_SIZE]; /* NVIDIA's spelling: 8 digits of domain, upper case */
} GpuId;

/* An index ("0"), a UUID, or a PCI bus id in NVIDIA's or the kernel's spelling. 0 · -EINVAL. */
int gpu_id_parse(const char *s, GpuId *ret);

/* A PCI bus id, "00000000:18:00.0", "0000:18:00.0" or "18:00.0", to NVIDIA's spelling. 0 · -EINVAL. */
int bus_id_parse(const char *s, char ret[static GPU_BUS_ID_SIZE]);

/* "GPU-" and 8-4-4-4-12 hex digits, to lower-case digits. 0 · -EINVAL. */
int gpu_uuid_parse(const char *s, char ret[static GPU_UUID_SIZE]);

/* A comma-separated list without empty items, as nvidia-smi -i takes it. 0 and *ret (a strv) · -EINVAL ·
 * -ENOMEM. */
int list_parse(const char *s, char ***ret);

/* "[a-z]+/[A-Za-z0-9][A-Za-z0-9._-]*" of up to TENANT_MAX bytes. */
bool tenant_is_valid(const char *s);

/* The length of the pod's UID that a text begins with, 0 for none: 8-4-4-4-12 digits, with _ for - in the
 * name of a slice, or the 32 of a static pod, which kubelet makes of its manifest. */
size_t pod_uid_length(const char *s);

/* The text is one, as kubelet spells it. */
bool pod_uid_is_valid(const char *s);

/* The Slurm job of "slurm/26.0": its length, and *ret where "26" begins · 0 for a tenant of another kind. */
size_t tenant_job(const char *tenant, const char **ret);

/* Both are runs of one Slurm job, and `tenant` comes after `earlier`: "slurm/26.2" after "slurm/26.0". */
bool tenant_is_later_run(const char *tenant, const char *earlier);

/* A syslog identifier: 1 to 64 letters, digits, '.', '_' and '-'. */
bool identifier_is_valid(const char *s);

/* [USER@]HOST as ssh takes it, of letters, digits, '.', '_' and '-', neither part starting with '-' or '.':
 * safe as an argument and in a file's name. Up to HOST_MAX bytes. */
#define HOST_MAX 128
bool host_is_valid(const char *s);
