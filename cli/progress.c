/* SPDX-License-Identifier: MIT */
#include "cli/progress.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/base/text.h"
#include "cli/gpu-list.h"

typedef struct ProgressLine {
        char *path;
        char name[GPU_UUID_SIZE]; /* the index, as a rule */
        char text[160];
        bool reset, skipped;
} ProgressLine;

struct Progress {
        sd_bus_slot *slot;
        FILE *terminal;
        ProgressLine *lines;
        size_t n_lines;
        bool drawn; /* the cursor is below the lines */
};

Progress* progress_free(Progress *progress) {
        if (!progress)
                return NULL;
        (void) sd_bus_slot_unref(progress->slot);
        for (size_t i = 0; i < progress->n_lines; i++)
                free(progress->lines[i].path);
        free(progress->lines);
        free(progress);
        return NULL;
}

static void progress_draw(Progress *progress) {
        if (!progress->terminal)
                return;
        if (progress->drawn && progress->n_lines > 0)
                (void) fprintf(progress->terminal, "\033[%zuA", progress->n_lines);
        for (size_t i = 0; i < progress->n_lines; i++) {
                (void) fputs("\r\033[K", progress->terminal);
                print_line(progress->terminal, "GPU %s  %s", progress->lines[i].name,
                                progress->lines[i].text);
        }
        (void) fflush(progress->terminal);
        progress->drawn = true;
}

static ProgressLine* progress_find(Progress *progress, const char *path) {
        for (size_t i = 0; path && i < progress->n_lines; i++)
                if (streq(progress->lines[i].path, path))
                        return &progress->lines[i];
        return NULL;
}

static void set_text(ProgressLine *line, const char *what, const char *why) {
        (void) snprintf(line->text, sizeof line->text, "%s%s%s", what, why[0] ? ": " : "", why);
}

static int on_properties(Progress *progress, sd_bus_message *message) {
        ProgressLine *line = progress_find(progress, sd_bus_message_get_path(message));
        GpuView gpu = { .state = "", .state_reason = "" };
        const char *interface;
        int r;

        r = sd_bus_message_read(message, "s", &interface);
        if (r < 0 || !line || !streq(interface, GPU_INTERFACE))
                return 0;
        r = gpu_view_read_properties(message, &gpu);
        if (r < 0 || gpu.state[0] == '\0')
                return 0;

        set_text(line, gpu.state, gpu.state_reason);
        progress_draw(progress);
        return 0;
}

static int on_finished(Progress *progress, sd_bus_message *message) {
        const char *path, *tenant, *result, *detail;
        ProgressLine *line;

        if (sd_bus_message_read(message, "osss", &path, &tenant, &result, &detail) < 0)
                return 0;
        line = progress_find(progress, path);
        if (!line)
                return 0;

        line->skipped = streq(result, "skipped");
        line->reset = streq(result, "done") || streq(result, "fabric-pending");
        set_text(line, line->reset ? "reset" : result, detail);
        progress_draw(progress);
        return 0;
}

/* A signal that is not as expected is passed over: it only costs a line of the display. */
static int on_signal(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        if (sd_bus_message_is_signal(message, "org.freedesktop.DBus.Properties", "PropertiesChanged"))
                return on_properties(userdata, message);
        if (sd_bus_message_is_signal(message, MANAGER_INTERFACE, "ResetFinished"))
                return on_finished(userdata, message);
        return 0;
}

static int progress_add(Progress *progress, const GpuView *gpu) {
        ProgressLine *line = &progress->lines[progress->n_lines];

        for (size_t i = 0; i < progress->n_lines; i++)
                if (streq(progress->lines[i].path, gpu->path))
                        return 0;
        *line = (ProgressLine){ .path = strdup(gpu->path) };
        if (!line->path)
                return -ENOMEM;
        gpu_view_format(gpu, line->name, sizeof line->name);
        set_text(line, "waiting", "");
        progress->n_lines++;
        return 0;
}

int progress_new(Client *client, const Tray *tray, char **ids, FILE *terminal, Progress **ret) {
        CLEANUP(progress_free_ptr) Progress *progress = calloc(1, sizeof *progress);
        size_t n = ids ? strv_length(ids) : tray->n_gpus;
        int r = 0;

        if (!progress)
                return -ENOMEM;
        progress->terminal = terminal;
        progress->lines = calloc(n + 1, sizeof *progress->lines);
        if (!progress->lines)
                return -ENOMEM;

        if (!ids)
                for (size_t i = 0; r >= 0 && i < tray->n_gpus; i++)
                        r = progress_add(progress, &tray->gpus[i]);
        STRV_FOREACH (id, ids) {
                CLEANUP(failure_done) Failure failure = {};
                const GpuView *gpu;

                /* One that is not there is the agent's to refuse: it may know more after a look. */
                if (r >= 0 && gpu_list_find(tray, *id, &gpu, &failure) >= 0)
                        r = progress_add(progress, gpu);
        }
        if (r >= 0)
                r = client_subscribe(client, on_signal, progress, &progress->slot);
        if (r < 0)
                return r;

        progress_draw(progress);
        *ret = take_ptr(&progress);
        return 0;
}

int progress_list(const Progress *progress, bool reset_only, char **ret) {
        CLEANUP(free_ptr) char *list = calloc(progress->n_lines + 1, GPU_UUID_SIZE + 1);
        char *end = list;

        if (!list)
                return -ENOMEM;
        for (size_t i = 0; i < progress->n_lines; i++)
                if (reset_only ? progress->lines[i].reset : !progress->lines[i].skipped) {
                        if (end != list)
                                end = stpcpy(end, ",");
                        end = stpcpy(end, progress->lines[i].name);
                }

        *ret = take_ptr(&list);
        return 0;
}
