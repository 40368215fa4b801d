/* SPDX-License-Identifier: MIT */
/* The emulated NVML's session: what nvmlInit opens and nvmlShutdown closes. Every call looks at the tray as
 * it is now. */
#pragma once

#include "agent/driver/nvml-abi.h"
#include "agent/emulation/clients.h"
#include "agent/emulation/holders.h"
#include "agent/emulation/tray.h"

#define EXPORT __attribute__((visibility("default")))

/* One GPU at the moment of a call. */
typedef struct View {
        TrayHeader header;
        TrayGpu gpu;
        usec_t now;
        uint32_t recovery_action;
} View;

/* "Go on": not a code of NVML. Everything else that the functions below return is the caller's answer,
 * NVML_OK among it where the tray was told to answer without an answer. */
#define VIEW_READY (-1)

/* `complete` is whether the arguments that must not be NULL are not. A GPU that is lost or being reset
 * answers with its error. */
NvmlReturn view_open(NvmlDevice device, bool complete, View *ret);

/* The same for what the library remembers: works with a GPU that does not answer, too. */
NvmlReturn view_open_identity(NvmlDevice device, bool complete, View *ret);

/* For calls about the whole tray. */
NvmlReturn view_open_tray(bool complete, View *ret);

/* The handle of the GPU that `id` names. NVML_OK · NVML_NOT_FOUND · NVML_INVALID_ARGUMENT (no such index) ·
 * NVML_NO_PERMISSION · NVML_GPU_IS_LOST. */
NvmlReturn session_find(const GpuId *id, NvmlDevice *ret);

/* Copies a text into a caller's buffer. NVML_OK · NVML_INSUFFICIENT_SIZE. */
NvmlReturn copy_text(const char *text, char *buffer, unsigned length);

/* Who holds the GPUs, as found within the last second. NVML_OK · NVML_NO_MEMORY · NVML_UNKNOWN. */
NvmlReturn session_holders(Holders *ret);

/* Begins and ends a session. */
NvmlReturn session_start(unsigned flags);
NvmlReturn session_stop(void);
