/* SPDX-License-Identifier: MIT */
/* Sends entries to the journal and never waits for it. sd_journal_send() does, and a journal that is stuck
 * (its disk is, or it was stopped) would stop the loops of our services with it. */
#pragma once

#include "agent/base/cleanup.h"

/* One entry of fields "NAME=value". What the journal does not take at once is lost, and counted: the next
 * entry that gets through is followed by one that says how many were. `identifier` is the SYSLOG_IDENTIFIER
 * of an entry that names none.
 * 0 · -EAGAIN the journal takes nothing just now · -ENOMEM · -errno of sendmsg, -ENOENT or -ECONNREFUSED
 * where there is no journal. */
int entry_send(const char *identifier, char *const *fields);
