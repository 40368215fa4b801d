/* SPDX-License-Identifier: MIT */
#include "agent/driver/quiesced.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/base/io.h"
#include "agent/base/text-stream.h"
#include "agent/base/text.h"

#define FILE_MAX 65536

void quiesced_done(Quiesced *quiesced) {
        strv_free(quiesced->units);
        strv_free(quiesced->commands);
        *quiesced = (Quiesced){};
}

static int add_once(char ***strv, const char *s) {
        return strv_contains(*strv, s) ? 0 : strv_append(strv, s);
}

int quiesced_parse(const char *text, Quiesced *ret) {
        CLEANUP(quiesced_done) Quiesced quiesced = {};
        CLEANUP(free_ptr) char *copy = NULL;
        char *rest, *end;

        copy = strdup(text);
        if (!copy)
                return -ENOMEM;

        for (rest = copy; (end = strchr(rest, '\n')); rest = end + 1) {
                const char *unit, *command;
                int r = -EBADMSG;

                *end = '\0';
                unit = startswith(rest, "unit ");
                command = startswith(rest, "command ");
                if (unit && *unit)
                        r = add_once(&quiesced.units, unit);
                else if (command && *command)
                        r = add_once(&quiesced.commands, command);
                if (r < 0)
                        return r;
        }
        if (*rest)
                return -EBADMSG; /* it is replaced as a whole: a line without an end is not ours */

        *ret = quiesced;
        quiesced = (Quiesced){};
        return 0;
}

int quiesced_read(const char *path, Quiesced *ret) {
        CLEANUP(free_ptr) char *text = NULL;
        int r;

        r = file_read(AT_FDCWD, path, FILE_MAX, &text, NULL);
        return r < 0 ? r : quiesced_parse(text, ret);
}

int quiesced_write(const char *path, const Quiesced *quiesced) {
        CLEANUP(text_stream_done) TextStream stream = {};
        FILE *file;
        int r;

        if (strv_length(quiesced->units) == 0 && strv_length(quiesced->commands) == 0)
                return unlink(path) < 0 && errno != ENOENT ? -errno : 0;

        file = text_stream_open(&stream);
        if (!file)
                return -ENOMEM;
        STRV_FOREACH (unit, quiesced->units)
                (void) fprintf(file, "unit %s\n", *unit);
        STRV_FOREACH (command, quiesced->commands)
                (void) fprintf(file, "command %s\n", *command);
        r = text_stream_end(&stream);
        return r < 0 ? r : file_write_atomic(path, stream.text, stream.size, 0600);
}
