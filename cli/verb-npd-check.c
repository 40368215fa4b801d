/* SPDX-License-Identifier: MIT */
/* gpuagentctl npd-check: for node-problem-detector's custom plugin monitor. The message goes to stdout in
 * one short line; the exit code is 0 for well, 1 for a problem, and 2 where nobody can tell. */
#include "agent/base/text.h"
#include "cli/gpu-list.h"

/* max_output_length of node-problem-detector, which cuts what is longer (docs/custom_plugin_monitor.md,
 * 0.8.20). */
#define MESSAGE_SIZE 81

/* Below the 3 s that our configuration gives a rule: who is killed has said nothing. */
#define TIMEOUT_USEC (1 * USEC_PER_SEC)

typedef enum NpdExit {
        NPD_OK,
        NPD_PROBLEM,
        NPD_UNKNOWN,
} NpdExit;

PRINTF_FORMAT(2, 3)
static int npd_say(NpdExit code, const char *format, ...) {
        char message[MESSAGE_SIZE];
        va_list arguments;

        va_start(arguments, format);
        (void) vsnprintf(message, sizeof message, format, arguments);
        va_end(arguments);
        print_line(stdout, "%s", message);
        return code;
}

/* Nobody gets it, and it will not be better by itself. */
static bool is_out(const GpuView *gpu) {
        return streq(gpu->state, "quarantined") || streq(gpu->state, "lost");
}

static int check_gpu(const GpuView *gpu) {
        char name[GPU_UUID_SIZE];

        gpu_view_format(gpu, name, sizeof name);
        return is_out(gpu) ? npd_say(NPD_PROBLEM, "GPU %s is %s: %s", name, gpu->state, gpu->state_reason)
                           : npd_say(NPD_OK, "GPU %s is %s", name, gpu->state);
}

/* Those that are out by their names, as many as fit, and why the first one is. */
static int check_tray(const Tray *tray) {
        const GpuView *first = NULL;
        char names[MESSAGE_SIZE / 2] = "";
        size_t n = 0, used = 0;

        for (size_t i = 0; i < tray->n_gpus; i++) {
                char name[GPU_UUID_SIZE];

                if (!is_out(&tray->gpus[i]))
                        continue;
                first = first ?: &tray->gpus[i];
                gpu_view_format(&tray->gpus[i], name, sizeof name);
                if (used + strlen(name) + 2 < sizeof names)
                        used += (size_t) snprintf(
                                        names + used, sizeof names - used, "%s%s", n > 0 ? "," : "", name);
                n++;
        }
        if (n > 1)
                return npd_say(NPD_PROBLEM, "%zu GPUs (%s): %s", n, names, first->state_reason);
        if (n == 1)
                return check_gpu(first);
        return npd_say(NPD_OK, "%zu GPUs, none quarantined", tray->n_gpus);
}

int verb_npd_check(const Options *options, int argc, char **argv) {
        CLEANUP(failure_done) Failure failure = {}, absent = {};
        CLEANUP(client_free_ptr) Client *client = NULL;
        CLEANUP(tray_done) Tray tray = {};
        Options hurry = *options;
        const GpuView *gpu;
        int r;

        if (hurry.timeout_usec == 0)
                hurry.timeout_usec = TIMEOUT_USEC;
        r = client_open(&hurry, &client, &failure);
        if (r >= 0)
                r = tray_read(client, &tray, &failure);
        if (r < 0)
                return npd_say(NPD_UNKNOWN, "%s", failure.message ?: "out of memory");
        if (streq(tray.driver_state, "failed") || streq(tray.driver_state, "unresponsive"))
                return npd_say(NPD_UNKNOWN, "the driver is %s: %s", tray.driver_state, tray.driver_error);
        if (argc < 2)
                return check_tray(&tray);
        /* One configuration is for nodes with few and with many GPUs. */
        if (gpu_list_find(&tray, argv[1], &gpu, &absent) < 0)
                return npd_say(absent.exit_code == CLI_NO_GPU ? NPD_OK : NPD_UNKNOWN, "%s",
                                absent.message ?: "out of memory");
        return check_gpu(gpu);
}
