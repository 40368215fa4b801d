/* SPDX-License-Identifier: MIT */
/* Logging of the programs: to the journal where stderr is connected to it, to stderr else. The core and base
 * never log. */
#pragma once

#include <syslog.h>

#include "agent/base/cleanup.h"

/* To be called first. `identifier` is the SYSLOG_IDENTIFIER of all that follows; it stays the caller's. */
void log_open(const char *identifier);

/* LOG_EMERG … LOG_DEBUG of syslog(3); LOG_INFO at the start. What is above the level is dropped. */
void log_set_level(int level);
int log_get_level(void);

/* The levels' names as LogControl1 has them ("debug"). NULL, or -EINVAL for what is no level. */
const char* log_level_to_string(int level);
int log_level_from_string(const char *s);

void log_message(int level, const char *format, ...) PRINTF_FORMAT(2, 3);

/* Logs "MESSAGE: strerror(-error)" at LOG_ERR and returns `error`, so that a chain can end in `return
 * log_errno(r, …)`. */
int log_errno(int error, const char *format, ...) PRINTF_FORMAT(2, 3);

/* One journal entry of its own fields. `fields` is a strv of "NAME=value", MESSAGE= and PRIORITY= among
 * them. Where there is no journal the MESSAGE goes to stderr. 0 · -errno of entry_send(). */
int log_fields(char *const *fields);
