/* SPDX-License-Identifier: MIT */
/* Takes what is meant for the journal, where there is none, and appends it to a file: one "NAME=value" line
 * a field, an empty line after each entry. A value of several lines has them as \n. It goes to the
 * background when it is ready.
 *
 *     journal-sink SOCKET FILE */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/base/io.h"

#define ENTRY_MAX (1024 * 1024)

/* A field is "NAME=value\n", or, with any bytes in the value, "NAME\n", its size in 8 bytes, the value and
 * "\n". */
static void write_entry(FILE *out, const char *entry, size_t size) {
        size_t at = 0;

        while (at < size) {
                const char *end = memchr(entry + at, '\n', size - at);
                size_t length = end ? (size_t) (end - entry) - at : size - at;
                uint64_t value_size;

                if (memchr(entry + at, '=', length)) {
                        (void) fprintf(out, "%.*s\n", (int) length, entry + at);
                        at += length + 1;
                        continue;
                }

                (void) fprintf(out, "%.*s=", (int) length, entry + at);
                at += length + 1;
                if (size - at < sizeof value_size)
                        break;
                memcpy(&value_size, entry + at, sizeof value_size);
                at += sizeof value_size;
                if (value_size > size - at)
                        break;
                for (uint64_t i = 0; i < value_size; i++)
                        if (entry[at + i] == '\n')
                                (void) fputs("\\n", out);
                        else
                                (void) fputc(entry[at + i], out);
                (void) fputc('\n', out);
                at += value_size + 1;
        }
        (void) fputc('\n', out);
        (void) fflush(out);
}

/* An entry too large for a datagram comes as a descriptor of a file. */
static void on_entry(int fd, FILE *out, char *buffer) {
        union {
                struct cmsghdr header;
                char bytes[CMSG_SPACE(sizeof(int))];
        } control;
        struct iovec part = { .iov_base = buffer, .iov_len = ENTRY_MAX };
        struct msghdr message = {
                .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
        };
        ssize_t n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
        const struct cmsghdr *first = CMSG_FIRSTHDR(&message);

        if (n > 0)
                write_entry(out, buffer, (size_t) n);
        if (n >= 0 && first && first->cmsg_type == SCM_RIGHTS) {
                CLEANUP(fd_close) int file = -1;
                CLEANUP(free_ptr) char *text = NULL;
                size_t size;

                memcpy(&file, CMSG_DATA(first), sizeof file);
                if (lseek(file, 0, SEEK_SET) >= 0 && fd_read_all(file, ENTRY_MAX, &text, &size) >= 0)
                        write_entry(out, text, size);
        }
}

int main(int argc, char **argv) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        static char buffer[ENTRY_MAX];
        FILE *out;
        int fd;

        if (argc != 3 || strlen(argv[1]) >= sizeof address.sun_path) {
                (void) fputs("Usage: journal-sink SOCKET FILE\n", stderr);
                return 2;
        }
        (void) snprintf(address.sun_path, sizeof address.sun_path, "%s", argv[1]);

        out = fopen(argv[2], "ae");
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (!out || fd < 0 || bind(fd, (struct sockaddr *) &address, sizeof address) < 0 ||
                        chmod(argv[1], 0666) < 0 || daemon(0, 0) < 0) {
                perror("journal-sink");
                return 1;
        }
        for (;;)
                on_entry(fd, out, buffer);
}
