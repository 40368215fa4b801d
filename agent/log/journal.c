/* SPDX-License-Identifier: MIT */
#include "agent/log/journal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "agent/base/text.h"
#include "agent/log/entry.h"
#include "agent/log/log.h"

void journal_add_format(JournalEntry *entry, const char *name, const char *format, ...) {
        CLEANUP(free_ptr) char *value = NULL;
        va_list arguments;
        int n;

        va_start(arguments, format);
        n = vasprintf(&value, format, arguments);
        va_end(arguments);
        if (n < 0) {
                value = NULL; /* vasprintf(3) leaves it undefined */
                entry->error = -ENOMEM;
                return;
        }
        journal_add(entry, name, value);
}

void journal_add(JournalEntry *entry, const char *name, const char *value) {
        CLEANUP(free_ptr) char *field = NULL;

        if (asprintf(&field, "%s=%s", name, value) < 0) {
                field = NULL;
                entry->error = -ENOMEM;
                return;
        }
        if (strv_append(&entry->fields, field) < 0)
                entry->error = -ENOMEM;
}

void journal_begin(JournalEntry *entry, const char *message_id, int priority, const char *identifier) {
        *entry = (JournalEntry){};
        journal_add(entry, "MESSAGE_ID", message_id);
        journal_add_format(entry, "PRIORITY", "%d", priority);
        journal_add(entry, "SYSLOG_IDENTIFIER", identifier);
}

void journal_send_quietly(JournalEntry *entry) {
        (void) entry_send("gpuagentctl", entry->fields);
        entry->fields = strv_free(entry->fields);
}

void journal_send(JournalEntry *entry) {
        int r;

        /* What there is of an entry is better than none. */
        r = log_fields(entry->fields);
        if (r >= 0)
                r = entry->error;
        if (r < 0)
                (void) log_errno(r, "A journal entry is lost or incomplete");
        entry->fields = strv_free(entry->fields);
}
