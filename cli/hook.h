/* SPDX-License-Identifier: MIT */
/* What the verbs have in common that other programs run at the start and the end of a tenant. */
#pragma once

#include "agent/config/config.h"
#include "cli/options.h"
#include "cli/print.h"

/* The configuration. A file with a mistake must not keep a cluster's tenants from starting: the agent keeps
 * its old settings then, and for what the hooks read the defaults are the careful choice. 0 and *ret ·
 * negative, and *failure says why. */
int hook_read_config(const Options *options, Config **ret, Failure *failure);

/* Why the site lets everybody pass: "mode is observe" · "handover.reset is off" · NULL: it does not. */
const char* hook_leniency(const Config *config);

/* The exit code of a refusal: the failure's own, but none by which the tenant would pass, or which is about
 * words that it did not choose. */
int hook_refuse(const Failure *failure);

/* A success: that nobody reads its line is no failure. The exit code. */
int hook_succeed(void);
