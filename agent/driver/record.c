/* SPDX-License-Identifier: MIT */
#include "agent/driver/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/base/io.h"
#include "agent/base/text.h"

#define RECORD_MAX 4096

/* The first line is "deadline DEADLINE KIND", every other "process PID START". */
int record_write(const char *path, const Record *record) {
        char text[RECORD_MAX];
        int n;

        n = snprintf(text, sizeof text, "deadline %" PRIu64 " %s\n", record->deadline_usec,
                        task_kind_to_string(record->kind));
        for (size_t i = 0; i < record->n_processes; i++)
                n += snprintf(text + n, sizeof text - (size_t) n, "process %d %" PRIu64 "\n",
                                (int) record->processes[i].pid, record->processes[i].start_time);
        return file_write_atomic(path, text, (size_t) n, 0600);
}

int record_append(const char *path, const ProcessId *id) {
        Record record, current;
        int r;

        r = record_read(path, &record);
        if (r < 0)
                return r;

        current = record;
        current.n_processes = 1; /* the worker, who asks */
        for (size_t i = 1; i < record.n_processes; i++) {
                CLEANUP(fd_close) int pidfd = -1;

                if (process_open(&record.processes[i], &pidfd) != -ESRCH)
                        current.processes[current.n_processes++] = record.processes[i];
        }
        if (current.n_processes < RECORD_PROCESSES_MAX)
                current.processes[current.n_processes++] = *id;
        return record_write(path, &current);
}

static int line_parse(char *line, Record *record) {
        char *word = strsep(&line, " "), *number = strsep(&line, " ");
        ProcessId *id = &record->processes[record->n_processes];
        uint64_t value;
        uint32_t pid;

        if (!number || !line)
                return -EBADMSG;

        if (streq(word, "deadline")) {
                record->kind = task_kind_from_string(line);
                if (record->kind < 0 || parse_u64(number, USEC_INFINITY, &value) < 0)
                        return -EBADMSG;
                record->deadline_usec = value;
                return 0;
        }

        if (!streq(word, "process") || parse_u32(number, INT32_MAX, &pid) < 0 || pid < 2 ||
                        parse_u64(line, UINT64_MAX, &value) < 0)
                return -EBADMSG;
        if (record->n_processes < RECORD_PROCESSES_MAX) {
                *id = (ProcessId){ .pid = (pid_t) pid, .start_time = value };
                record->n_processes++;
        }
        return 0;
}

int record_parse(const char *text, Record *ret) {
        CLEANUP(free_ptr) char *copy = NULL;
        Record record = { .kind = _TASK_KIND_INVALID };
        char *rest, *end;
        int r;

        copy = strdup(text);
        if (!copy)
                return -ENOMEM;

        /* What follows the last newline was not written to its end. */
        for (rest = copy; (end = strchr(rest, '\n')); rest = end + 1) {
                *end = '\0';
                r = line_parse(rest, &record);
                if (r < 0)
                        return r;
        }
        if (record.kind < 0 || record.n_processes == 0)
                return -EBADMSG;

        *ret = record;
        return 0;
}

int record_read(const char *path, Record *ret) {
        CLEANUP(free_ptr) char *text = NULL;
        int r;

        r = file_read(AT_FDCWD, path, RECORD_MAX, &text, NULL);
        return r < 0 ? r : record_parse(text, ret);
}
