/* SPDX-License-Identifier: MIT */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include "agent/log/log.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <systemd/sd-journal.h>

#include "agent/base/text.h"

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

static void log_line(int level, const char *message) {
        if (to_journal &&
                        sd_journal_send("MESSAGE=%s", message, "PRIORITY=%d", level, "SYSLOG_IDENTIFIER=%s",
                                        program_identifier, NULL) >= 0)
                return;
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
        CLEANUP(free_ptr) struct iovec *parts = NULL;
        size_t n = strv_length(fields);
        int r;

        parts = calloc(n, sizeof *parts);
        if (!parts)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                parts[i] = (struct iovec){ .iov_base = fields[i], .iov_len = strlen(fields[i]) };

        r = sd_journal_sendv(parts, (int) n);
        if (r < 0 || !to_journal)
                for (size_t i = 0; i < n; i++) {
                        const char *message = startswith(fields[i], "MESSAGE=");

                        if (message)
                                (void) fprintf(stderr, "%s: %s\n", program_identifier, message);
                }
        return r;
}
