/* SPDX-License-Identifier: MIT */
/* One journal entry put together field by field, for the entries that others look for
 * (log/message-ids.h). */
#pragma once

#include "agent/base/cleanup.h"

typedef struct JournalEntry {
        char **fields;
        int error; /* of the first field that did not fit into memory */
} JournalEntry;

/* Starts it with MESSAGE_ID, PRIORITY (of syslog(3)) and SYSLOG_IDENTIFIER. */
void journal_begin(JournalEntry *entry, const char *message_id, int priority, const char *identifier);

/* Adds a field, "NAME=" and the value. */
void journal_add(JournalEntry *entry, const char *name, const char *value);
void journal_add_format(JournalEntry *entry, const char *name, const char *format, ...) PRINTF_FORMAT(3, 4);

/* Sends it, and frees what it holds; one that cannot be sent is lost without a word: for a program whose
 * line on stderr says the same. */
void journal_send_quietly(JournalEntry *entry);

/* Sends it, and frees what it holds. An entry that cannot be sent is reported on stderr. */
void journal_send(JournalEntry *entry);
