/* SPDX-License-Identifier: MIT */
/* gpuagentctl monitor: the agent's signals as they come, a line each, until interrupted. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "agent/base/text-stream.h"
#include "agent/base/text.h"
#include "cli/bus-json.h"
#include "cli/gpu.h"
#include "cli/json.h"

typedef struct Monitor {
        const Options *options;
        const Tray *tray; /* as it was at the start: names the GPUs by their index */
} Monitor;

static void time_format(char *ret, size_t size) {
        time_t now = time(NULL);
        struct tm tm;

        if (!localtime_r(&now, &tm) || strftime(ret, size, "%Y-%m-%dT%H:%M:%S%z", &tm) == 0)
                ret[0] = '\0';
}

/* Which GPU the signal is about: that of its object, or of its first argument. NULL: the tray. */
static const char* signal_gpu_path(sd_bus_message *message, json_object *arguments) {
        const char *path = sd_bus_message_get_path(message);
        json_object *first = json_object_array_get_idx(arguments, 0);

        if (path && startswith(path, MANAGER_PATH "/gpu/"))
                return path;
        if (first && json_object_is_type(first, json_type_string) &&
                        startswith(json_object_get_string(first), MANAGER_PATH "/gpu/"))
                return json_object_get_string(first);
        return NULL;
}

/* The signal as {time, gpu, object, signal, and "properties" or "arguments"}. 0 and *ret (to be put) ·
 * negative errno. */
static int event_new(const Monitor *monitor, sd_bus_message *message, json_object **ret) {
        CLEANUP(json_put_ptr) json_object *arguments = NULL, *event = json_object_new_object();
        const char *member = sd_bus_message_get_member(message), *path;
        const GpuView *gpu = NULL;
        char now[40];
        int r;

        if (!event)
                return -ENOMEM;
        r = json_from_arguments(message, &arguments);
        if (r < 0)
                return r;
        path = signal_gpu_path(message, arguments);
        if (path)
                gpu = tray_gpu_by_path(monitor->tray, path);

        time_format(now, sizeof now);
        r = json_set(event, "time", json_string(now));
        if (r >= 0)
                r = json_set(event, "gpu", json_u32(gpu ? gpu->index : UNKNOWN_U32));
        if (r >= 0)
                r = json_set(event, "object", json_string(path));
        if (r >= 0)
                r = json_set(event, "signal", json_string(member));
        if (r >= 0 && streq(member ?: "", "PropertiesChanged"))
                r = json_set(event, "properties", json_object_get(json_object_array_get_idx(arguments, 1)));
        else if (r >= 0)
                r = json_set(event, "arguments", json_object_get(arguments));
        if (r < 0)
                return r;

        *ret = take_ptr(&event);
        return 0;
}

static const char* event_string(json_object *event, const char *key) {
        return json_object_get_string(json_object_object_get(event, key)) ?: "";
}

static void print_value(FILE *line, const char *name, json_object *value) {
        const char *text = json_object_to_json_string_ext(
                        value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);

        (void) fprintf(line, " %s%s%s", name, name[0] ? "=" : "", text ?: "null");
}

/* TIME GPU 0 PropertiesChanged State="resetting" */
static int print_event(json_object *event) {
        CLEANUP(text_stream_done) TextStream stream = {};
        FILE *line = text_stream_open(&stream);
        json_object *arguments = json_object_object_get(event, "arguments");
        json_object *properties = json_object_object_get(event, "properties");
        json_object *gpu = json_object_object_get(event, "gpu");
        int r;

        if (!line)
                return -ENOMEM;
        (void) fprintf(line, "%s %s%s %s", event_string(event, "time"), gpu ? "GPU " : "",
                        gpu ? json_object_get_string(gpu) : "tray", event_string(event, "signal"));
        if (properties) {
                json_object_object_foreach(properties, name, value) print_value(line, name, value);
        }
        for (size_t i = 0; arguments && i < json_object_array_length(arguments); i++)
                print_value(line, "", json_object_array_get_idx(arguments, i));
        r = text_stream_end(&stream);
        if (r >= 0)
                print_line(stdout, "%s", stream.text);
        return r;
}

static int on_signal(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        CLEANUP(json_put_ptr) json_object *event = NULL;
        const Monitor *monitor = userdata;
        int r;

        if (startswith(sd_bus_message_get_interface(message) ?: "", "org.freedesktop.DBus.Local"))
                return 0; /* the connection's own, not the agent's */
        r = event_new(monitor, message, &event);
        if (r >= 0)
                r = monitor->options->output == OUTPUT_TABLE ? print_event(event)
                                                             : json_print(event, monitor->options->output);
        (void) fflush(stdout);
        return r;
}

int verb_monitor(const Options *options, int argc, char **argv) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(client_free_ptr) Client *client = NULL;
        CLEANUP(tray_done) Tray tray = {};
        Monitor monitor = { options, &tray };
        int r;

        r = client_open(options, &client, &failure);
        if (r >= 0)
                r = tray_read(client, &tray, &failure);
        if (r < 0)
                return failure_report(&failure);
        r = client_subscribe(client, on_signal, &monitor, NULL);
        if (r < 0)
                return fail_with(CLI_FAILED, "cannot subscribe to signals: %s", strerror(-r));

        while (!ferror(stdout)) {
                r = client_wait(client, USEC_INFINITY, &failure);
                if (r < 0)
                        return failure_report(&failure);
        }
        return CLI_FAILED;
}
