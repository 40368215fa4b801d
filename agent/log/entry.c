/* SPDX-License-Identifier: MIT */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include "agent/base/text-stream.h"
#include "agent/log/entry.h"

#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <systemd/sd-journal.h>

#include "agent/base/text.h"

/* As much as libsystemd asks for; the kernel gives what it may. */
#define SEND_BUFFER (8 * 1024 * 1024)

static int journal_fd = -1;
static unsigned n_lost;

/* The socket is not connected: a journal that was started anew is found by its path. 0 · -errno. */
static int entry_open(void) {
        int size = SEND_BUFFER, fd;

        if (journal_fd >= 0)
                return 0;
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        (void) setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
        journal_fd = fd;
        return 0;
}

/* "NAME=value\n", or, for a value of several lines, "NAME\n", its size in eight bytes, the value and "\n":
 * systemd's "Native Journal Protocol". */
static void entry_put(FILE *stream, const char *field) {
        const char *value = strchr(field, '=');

        if (value && strchr(field, '\n')) {
                uint64_t size = htole64(strlen(value + 1));

                (void) fwrite(field, 1, (size_t) (value - field), stream);
                (void) fputc('\n', stream);
                (void) fwrite(&size, sizeof size, 1, stream);
                (void) fputs(value + 1, stream);
        } else
                (void) fputs(field, stream);
        (void) fputc('\n', stream);
}

/* 0 and *ret, *ret_size · -ENOMEM. */
static int entry_format(const char *identifier, char *const *fields, char **ret, size_t *ret_size) {
        CLEANUP(text_stream_done) TextStream stream = {};
        FILE *file = text_stream_open(&stream);
        bool named = false;
        int r;

        if (!file)
                return -ENOMEM;
        for (; *fields; fields++) {
                named = named || startswith(*fields, "SYSLOG_IDENTIFIER=");
                entry_put(file, *fields);
        }
        if (!named)
                (void) fprintf(file, "SYSLOG_IDENTIFIER=%s\n", identifier);
        r = text_stream_take(&stream, ret);
        if (r >= 0)
                *ret_size = stream.size;
        return r;
}

static int entry_send_text(char *text, size_t size) {
        struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "/run/systemd/journal/socket" };
        struct iovec part = { .iov_base = text, .iov_len = size };
        struct msghdr message = {
                .msg_name = &address, .msg_namelen = sizeof address, .msg_iov = &part, .msg_iovlen = 1
        };
        int r;

        r = entry_open();
        if (r < 0)
                return r;
        return sendmsg(journal_fd, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* What is too long for a datagram goes the way of libsystemd: by a file in memory. */
static int entry_send_long(char *const *fields) {
        CLEANUP(free_ptr) struct iovec *parts = NULL;
        size_t n = strv_length(fields);

        parts = calloc(n, sizeof *parts);
        if (!parts)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                parts[i] = (struct iovec){ .iov_base = fields[i], .iov_len = strlen(fields[i]) };
        return sd_journal_sendv(parts, (int) n);
}

static void entry_tell_lost(const char *identifier) {
        char message[96], text[256];

        (void) snprintf(message, sizeof message, "The journal took nothing for a while: %u entries are lost",
                        n_lost);
        (void) snprintf(text, sizeof text, "MESSAGE=%s\nPRIORITY=4\nSYSLOG_IDENTIFIER=%s\n", message,
                        identifier);
        if (entry_send_text(text, strlen(text)) >= 0)
                n_lost = 0;
}

int entry_send(const char *identifier, char *const *fields) {
        CLEANUP(free_ptr) char *text = NULL;
        size_t size = 0;
        int r;

        r = entry_format(identifier, fields, &text, &size);
        if (r < 0)
                return r;
        r = entry_send_text(text, size);
        if (r == -EMSGSIZE)
                r = entry_send_long(fields);
        if (r == -EAGAIN)
                n_lost++;
        else if (r >= 0 && n_lost > 0)
                entry_tell_lost(identifier);
        return r;
}
