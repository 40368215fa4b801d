/* SPDX-License-Identifier: MIT */
/* What a worker sends back through its pipe: the first byte chooses what it was asked for. */
#include "tests/fuzz/fuzz.h"

#include <assert.h>

#include "agent/base/cleanup.h"
#include "agent/driver/task.h"

static void check_text(const char *s, size_t size) {
        size_t n = 0;

        while (n < size && s[n] != '\0') {
                assert(s[n] >= ' ' && s[n] <= '~');
                n++;
        }
        assert(n < size);
}

static void check_sample(const GpuSample *sample) {
        check_text(sample->name, sizeof sample->name);
        check_text(sample->error, sizeof sample->error);
        check_text(sample->partition_name, sizeof sample->partition_name);
        assert(sample->n_links <= GPU_LINKS_MAX);
        assert(sample->n_links_active <= sample->n_links);
}

static void check_items(const Answer *answer) {
        for (size_t i = 0; i < answer->n_looks; i++)
                check_sample(&answer->looks[i]);
        for (size_t i = 0; i < answer->n; i++)
                switch (answer->kind) {
                case TASK_PROBE: check_sample(&answer->samples[i]); break;
                case TASK_RESET:
                case TASK_CHECKS:
                        check_text(answer->resets[i].detail, sizeof answer->resets[i].detail);
                        assert(answer->resets[i].verdict < _RESET_VERDICT_MAX);
                        break;
                case TASK_HOLDERS:
                case TASK_LEFTOVERS:
                        check_text(answer->holders[i].command, sizeof answer->holders[i].command);
                        check_text(answer->holders[i].user, sizeof answer->holders[i].user);
                        check_text(answer->holders[i].where, sizeof answer->holders[i].where);
                        break;
                case TASK_TENANTS:
                        assert(tenant_is_valid(answer->tenants[i].tenant));
                        assert(answer->tenants[i].presence < _TENANT_PRESENCE_MAX);
                        break;
                case TASK_QUIESCE:
                case TASK_RESUME:
                case _TASK_KIND_MAX:
                case _TASK_KIND_INVALID: assert(false);
                }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        CLEANUP(answer_done) Answer answer = {};

        if (size < 1 || answer_parse((TaskKind) (data[0] % _TASK_KIND_MAX), data + 1, size - 1, &answer) < 0)
                return 0;
        check_text(answer.message, sizeof answer.message);
        check_text(answer.warning, sizeof answer.warning);
        check_text(answer.driver_version, sizeof answer.driver_version);
        check_items(&answer);
        return 0;
}
