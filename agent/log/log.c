/* SPDX-License-Identifier: MIT */
#include "agent/log/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/text.h"
#include "agent/log/entry.h"

#define MESSAGE_MAX 2048

static const char *program_identifier = "gpuagent";
static int max_level = LOG_INFO;
static bool to_journal = false;

static const char *const level_table[] = {
        [LOG_EMERG] = "emerg",
        [LOG_ALERT] = "alert",
        [LOG_CRIT] = "crit",
        [LOG_ERR] = "err",
        [LOG_WARNING] = "warning",
        [LOG_NOTICE] = "notice",
        [LOG_INFO] = "info",
        [LOG_DEBUG] = "debug",
};

/* systemd puts device and inode of the stream it made for stderr into JOURNAL_STREAM (systemd.exec(5)). */
static bool stderr_is_the_journal(void) {
        const char *stream = getenv("JOURNAL_STREAM");
        unsigned long long device, inode;
        struct stat st;

        if (!stream || sscanf(stream, "%llu:%llu", &device, &inode) != 2 || fstat(STDERR_FILENO, &st) < 0)
                return false;
        return st.st_dev == device && st.st_ino == inode;
}

void log_open(const char *identifier) {
        program_identifier = identifier;
        to_journal = stderr_is_the_journal();
}

void log_set_level(int level) {
        max_level = level;
}

int log_get_level(void) {
        return max_level;
}

const char* log_level_to_string(int level) {
        return level >= LOG_EMERG && level <= LOG_DEBUG ? level_table[level] : NULL;
}

int log_level_from_string(const char *s) {
        for (int level = LOG_EMERG; level <= LOG_DEBUG; level++)
                if (streq(s, level_table[level]))
                        return level;
        return -EINVAL;
}

/* stderr leads to the same journal, and would wait for it. */
static bool is_told(int r) {
        return to_journal && (r >= 0 || r == -EAGAIN);
}

static void log_line(int level, const char *message) {
        char text[sizeof "MESSAGE=" + MESSAGE_MAX + 128], priority[sizeof "PRIORITY=" + 11];
        char *fields[] = { text, priority, NULL };

        (void) snprintf(text, sizeof text, "MESSAGE=%s", message);
        (void) snprintf(priority, sizeof priority, "PRIORITY=%d", level);
        if (!to_journal || !is_told(entry_send(program_identifier, fields)))
                (void) fprintf(stderr, "%s: %s\n", program_identifier, message);
}

void log_message(int level, const char *format, ...) {
        char message[MESSAGE_MAX];
        va_list arguments;

        if (level > max_level)
                return;
        va_start(arguments, format);
        (void) vsnprintf(message, sizeof message, format, arguments);
        va_end(arguments);
        log_line(level, message);
}

int log_errno(int error, const char *format, ...) {
        char message[MESSAGE_MAX], line[MESSAGE_MAX + 128];
        va_list arguments;

        va_start(arguments, format);
        (void) vsnprintf(message, sizeof message, format, arguments);
        va_end(arguments);
        (void) snprintf(line, sizeof line, "%s: %s", message, strerror(error < 0 ? -error : error));
        log_line(LOG_ERR, line);
        return error;
}

int log_fields(char *const *fields) {
        int r;

        r = entry_send(program_identifier, fields);
        if (!is_told(r))
                for (size_t i = 0; fields[i]; i++) {
                        const char *message = startswith(fields[i], "MESSAGE=");

                        if (message)
                                (void) fprintf(stderr, "%s: %s\n", program_identifier, message);
                }
        return r;
}
