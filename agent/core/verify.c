/* SPDX-License-Identifier: MIT */
#include "agent/core/verify.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/base/text.h"
#include "agent/core/recovery.h"

/* Appends "; WHY" to what there is. */
PRINTF_FORMAT(4, 5) static void add_reason(char *text, size_t size, size_t *used, const char *format, ...) {
        va_list arguments;

        if (*used > 0 && *used < size)
                *used += (size_t) snprintf(text + *used, size - *used, "; ");
        if (*used >= size)
                return;
        va_start(arguments, format);
        *used += (size_t) vsnprintf(text + *used, size - *used, format, arguments);
        va_end(arguments);
}

/* The fabric came to rest with an error: there is no clique, and none will come (a GPU that the fabric
 * manager took out). */
static bool fabric_failed(const GpuSample *sample) {
        return sample->fabric_state == FABRIC_COMPLETED && sample->fabric_status != 0;
}

static void verify_clique(const Gpu *gpu, char *text, size_t size, size_t *used) {
        const GpuSample *sample = &gpu->sample;
        uint32_t expected;

        if (gpu_expected_clique(gpu, &expected) <= 0) {
                /* any settled clique will do, and an unsettled one is fabric-pending, not unclean */
                if (sample->partition == PARTITION_DEFAULT && fabric_failed(sample))
                        add_reason(text, size, used, "its fabric ended with '%s', a clique is expected",
                                        sample->fabric_status_text);
        } else if (!gpu_sample_has_settled(sample))
                add_reason(text, size, used, "its fabric is %s, clique %u is expected",
                                fabric_state_to_string(sample->fabric_state) ?: "unknown", expected);
        else if (sample->clique_id != expected && fabric_failed(sample))
                add_reason(text, size, used, "its fabric ended with '%s', clique %u is expected",
                                sample->fabric_status_text, expected);
        else if (sample->clique_id != expected)
                add_reason(text, size, used, "is in clique %u, clique %u is expected", sample->clique_id,
                                expected);
}

int verify_sample(const Gpu *gpu, const Config *config, char *ret_why, size_t size) {
        const GpuSample *sample = &gpu->sample;
        uint32_t links = config->handover.expected_nvlinks;
        size_t used = 0;

        if (sample->lost || sample->error[0])
                add_reason(ret_why, size, &used, "does not answer: %s",
                                sample->error[0] ? sample->error : gpu_why_lost(gpu));
        else if (sample->recovery_action != RECOVERY_NONE && sample->recovery_action != RECOVERY_UNKNOWN) {
                char action[160];

                recovery_explain(sample->recovery_action, action, sizeof action);
                add_reason(ret_why, size, &used, "%s", action);
        } else if (sample->reset_required) /* the only sign of a driver that knows no recovery action */
                add_reason(ret_why, size, &used, "needs another reset");
        else {
                verify_clique(gpu, ret_why, size, &used);
                if (links > 0 && sample->n_links_active != links)
                        add_reason(ret_why, size, &used, "has %u of the expected %u NVLinks",
                                        sample->n_links_active, links);
        }
        return used > 0;
}

int verify_gpu(const Gpu *gpu, const Config *config, char *ret_why, size_t size) {
        GpuState state = gpu_state(gpu);
        const char *reason = gpu->reason;
        char why[GPU_REASON_SIZE];
        size_t used = 0;
        bool wrong;

        wrong = gpu->probed && state != GPU_STATE_LOST && verify_sample(gpu, config, why, sizeof why) > 0;
        if (wrong && startswith(why, reason))
                reason = why;
        if (state != GPU_STATE_CLEAN)
                add_reason(ret_why, size, &used, "is %s%s%s", gpu_state_to_string(state),
                                reason[0] ? ": " : "", reason);
        if (wrong && !(used > 0 && strstr(reason, why))) /* said already */
                add_reason(ret_why, size, &used, "%s", why);
        return used > 0;
}
