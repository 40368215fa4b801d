/* SPDX-License-Identifier: MIT */
/* What happens when the emulated tray's driver loads: the tray is made from its configuration, with the
 * partitions of the time before, and the device nodes appear. */
#pragma once

#include "agent/emulation/emulation-config.h"
#include "agent/emulation/tray.h"

/* Makes the tray and its files, replacing what was there. 0 · -errno and *ret_message (to be freed). */
int tray_boot(const EmulationConfig *config, char **ret_message);

/* Partitions that outlive a boot. Saving: 0 · -errno. Loading passes over what does not fit the tray any
 * more. */
int partitions_save(const Tray *tray);
int partitions_load(Tray *tray);
