/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/io.h"
#include "agent/base/text.h"
#include "agent/driver/task.h"

/* Both ends are the same program, so the structs travel as they lie in memory. */
typedef struct AnswerHeader {
        uint32_t kind;
        uint32_t error;
        uint32_t n;
        uint32_t n_asked;
        uint32_t n_looks;
        uint32_t query_hangs;
        uint32_t complete;
        char message[FAILURE_SIZE];
        char warning[512];
        char driver_version[DRIVER_VERSION_SIZE];
} AnswerHeader;

static const struct {
        const char *name;
        size_t size;
        size_t max;
} kinds[_TASK_KIND_MAX] = {
        [TASK_PROBE] = { "probe", sizeof(GpuSample), PROTOCOL_GPUS_MAX },
        [TASK_RESET] = { "reset", sizeof(GpuReset), PROTOCOL_GPUS_MAX },
        [TASK_HOLDERS] = { "search for processes", sizeof(GpuHolder), PROTOCOL_HOLDERS_MAX },
        [TASK_LEFTOVERS] = { "search for leftovers", sizeof(GpuHolder), PROTOCOL_HOLDERS_MAX },
        [TASK_QUIESCE] = { "stop of monitoring", 0, 0 },
        [TASK_RESUME] = { "start of monitoring", 0, 0 },
        [TASK_CHECKS] = { "run of checks", sizeof(GpuReset), PROTOCOL_GPUS_MAX },
        [TASK_TENANTS] = { "search for tenants", sizeof(TenantSign), PROTOCOL_TENANTS_MAX },
};

const char* task_kind_to_string(TaskKind kind) {
        return kind >= 0 && kind < _TASK_KIND_MAX ? kinds[kind].name : NULL;
}

TaskKind task_kind_from_string(const char *s) {
        for (int kind = 0; kind < _TASK_KIND_MAX; kind++)
                if (streq(s, kinds[kind].name))
                        return (TaskKind) kind;
        return _TASK_KIND_INVALID;
}

bool task_kind_needs_driver(TaskKind kind) {
        return kind != TASK_QUIESCE && kind != TASK_RESUME && kind != TASK_TENANTS;
}

void answer_done(Answer *answer) {
        free(answer->items);
        free(answer->looks);
        answer->items = NULL;
        answer->looks = NULL;
        answer->n = answer->n_asked = answer->n_looks = 0;
}

void answer_fail(Answer *answer, AnswerError error, const char *format, ...) {
        char message[1024];
        va_list arguments;

        va_start(arguments, format);
        (void) vsnprintf(message, sizeof message, format, arguments);
        va_end(arguments);

        answer_done(answer);
        answer->error = error;
        text_escape_words(message, answer->message, sizeof answer->message);
}

void answer_warn(Answer *answer, const char *format, ...) {
        size_t n = strlen(answer->warning);
        char message[1024];
        va_list arguments;

        va_start(arguments, format);
        (void) vsnprintf(message, sizeof message, format, arguments);
        va_end(arguments);

        if (n > 0)
                n += (size_t) snprintf(answer->warning + n, sizeof answer->warning - n, "; ");
        if (n < sizeof answer->warning)
                text_escape_words(message, answer->warning + n, sizeof answer->warning - n);
}

size_t answer_size_max(TaskKind kind) {
        size_t looks = kind == TASK_RESET ? kinds[kind].max * sizeof(GpuSample) : 0;

        return sizeof(AnswerHeader) + kinds[kind].max * kinds[kind].size + looks;
}

int answer_write(const Answer *answer, int fd) {
        AnswerHeader header = {
                .kind = (uint32_t) answer->kind,
                .error = (uint32_t) answer->error,
                .n = (uint32_t) answer->n,
                .n_asked = (uint32_t) answer->n_asked,
                .n_looks = (uint32_t) answer->n_looks,
                .query_hangs = answer->query_hangs,
                .complete = answer->complete,
        };
        int r;

        memcpy(header.message, answer->message, sizeof header.message);
        memcpy(header.warning, answer->warning, sizeof header.warning);
        memcpy(header.driver_version, answer->driver_version, sizeof header.driver_version);

        r = fd_write_all(fd, &header, sizeof header);
        if (r < 0)
                return r;
        r = fd_write_all(fd, answer->items, answer->n * kinds[answer->kind].size);
        return r < 0 ? r : fd_write_all(fd, answer->looks, answer->n_looks * sizeof *answer->looks);
}

static void text_clean(char *s, size_t size) {
        s[size - 1] = '\0';
        text_sanitize(s);
}

static int items_clean(Answer *answer) {
        switch (answer->kind) {
        case TASK_PROBE: return protocol_clean_samples(answer->samples, answer->n);
        case TASK_RESET:
        case TASK_CHECKS: return protocol_clean_resets(answer->resets, answer->n);
        case TASK_HOLDERS:
        case TASK_LEFTOVERS: return protocol_clean_holders(answer->holders, answer->n);
        case TASK_TENANTS: return protocol_clean_tenants(answer->tenants, answer->n);
        case TASK_QUIESCE:
        case TASK_RESUME:
        case _TASK_KIND_MAX:
        case _TASK_KIND_INVALID: break;
        }
        return -EBADMSG;
}

static bool header_is_valid(const AnswerHeader *header, TaskKind kind, size_t size) {
        return header->kind == (uint32_t) kind && header->error < _ANSWER_ERROR_MAX &&
                        header->n <= kinds[kind].max && header->n_asked <= header->n &&
                        (header->error == ANSWER_OK || header->n == 0) &&
                        header->n_looks <= (kind == TASK_RESET ? header->n : 0) &&
                        size ==
                        sizeof *header + header->n * kinds[kind].size + header->n_looks * sizeof(GpuSample);
}

/* Takes a copy of n of them, NULL for none. 0 · -ENOMEM. */
static int items_copy(const char **data, size_t n, size_t size, void **ret) {
        if (n == 0)
                return 0;
        *ret = malloc(n * size);
        if (!*ret)
                return -ENOMEM;
        memcpy(*ret, *data, n * size);
        *data += n * size;
        return 0;
}

/* 0 · -EBADMSG · -ENOMEM. */
static int items_take(Answer *answer, const char *data) {
        void *looks = NULL;
        int r;

        r = items_copy(&data, answer->n, kinds[answer->kind].size, &answer->items);
        if (r >= 0 && answer->n > 0)
                r = items_clean(answer);
        if (r >= 0)
                r = items_copy(&data, answer->n_looks, sizeof *answer->looks, &looks);
        answer->looks = looks;
        return r < 0 ? r : protocol_clean_samples(answer->looks, answer->n_looks);
}

int answer_parse(TaskKind kind, const void *data, size_t size, Answer *ret) {
        Answer answer = { .kind = kind };
        AnswerHeader header;
        int r;

        if (size < sizeof header)
                return -EBADMSG;
        memcpy(&header, data, sizeof header);
        if (!header_is_valid(&header, kind, size))
                return -EBADMSG;

        text_clean(header.message, sizeof header.message);
        text_clean(header.warning, sizeof header.warning);
        text_clean(header.driver_version, sizeof header.driver_version);
        answer.error = (AnswerError) header.error;
        answer.query_hangs = header.query_hangs != 0;
        answer.complete = header.complete != 0;
        answer.n = header.n;
        answer.n_asked = header.n_asked;
        answer.n_looks = header.n_looks;
        memcpy(answer.message, header.message, sizeof answer.message);
        memcpy(answer.warning, header.warning, sizeof answer.warning);
        memcpy(answer.driver_version, header.driver_version, sizeof answer.driver_version);

        r = items_take(&answer, (const char *) data + sizeof header);
        if (r < 0) {
                answer_done(&answer);
                return r;
        }

        *ret = answer;
        return 0;
}
