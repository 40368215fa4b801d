/* SPDX-License-Identifier: MIT */
/* NVML, loaded for one task and let go again: an open session would block the reset of every GPU. */
#pragma once

#include "agent/base/cleanup.h"
#include "agent/driver/nvml-abi.h"

#define NVML_DECLARE(name, arguments) NvmlReturn(*name) arguments;

/* The optional functions are NULL where the library has none. */
typedef struct Nvml {
        void *library;
        NvmlErrorStringFunction nvmlErrorString;
        NVML_REQUIRED_FUNCTIONS(NVML_DECLARE)
        NVML_OPTIONAL_FUNCTIONS(NVML_DECLARE)
} Nvml;

/* Loads the library, which is a path, or a name that is looked for as programs look for libraries, below
 * `root` where that is not "/". 0 · -ENOENT it is not there · -ENOSYS it lacks a function that we need ·
 * -ENOMEM. *ret_message (to be freed) says what the loader said, and may be NULL. */
int nvml_load(const char *root, const char *library, Nvml **ret, char **ret_message);

/* Ends the session, if nvmlInit_v2 was called, and unloads. */
Nvml* nvml_free(Nvml *nvml);

/* "GPU is lost", printable; "error 1234" where the library has no text. */
void nvml_error_format(const Nvml *nvml, NvmlReturn result, char *ret, size_t size);

DEFINE_CLEANUP(Nvml, nvml_free_ptr, nvml_free)
