/* SPDX-License-Identifier: MIT */
/* The configuration of a service that reads it anew when its files changed. */
#pragma once

#include "agent/config/config.h"

typedef struct Settings Settings;

/* `path` as in config_load(); NULL for the system's files. 0 · -errno of config_load(), which was logged. */
int settings_new(const char *path, Settings **ret);
Settings* settings_free(Settings *settings);

/* What is in force. A changed file is read first; a bad one changes nothing, and the log says so once. The
 * pointer is valid until the next call. */
const Config* settings_get(Settings *settings);

DEFINE_CLEANUP(Settings, settings_free_ptr, settings_free)
