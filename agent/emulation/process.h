/* SPDX-License-Identifier: MIT */
/* What the library and nvidia-smi both say in the vendor's words. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/base/parse.h"
#include "agent/driver/nvml-abi.h"

/* GPU memory of a process that holds a node and has not said how much it uses: what a CUDA context takes. */
#define PROCESS_CONTEXT_BYTES (UINT64_C(20) << 20)

/* The first of the process's arguments, else its name, in printable characters. 0 · -ESRCH. */
int process_name(pid_t pid, char *ret, size_t size);

/* CUDA's version, major * 1000 + minor * 10, that came with a driver of that version. */
unsigned driver_cuda_version(const char *driver_version);

/* What nvmlErrorString says. */
const char* nvml_error_text(NvmlReturn result);

/* A bus id in all spellings that NVML takes: hexadecimal DOMAIN:BUS:DEVICE.FUNCTION without domain or
 * function, too.
 * 0 · -EINVAL. */
int bus_id_scan(const char *s, char ret[static GPU_BUS_ID_SIZE]);
