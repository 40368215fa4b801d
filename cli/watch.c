/* SPDX-License-Identifier: MIT */
#include "cli/watch.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>
#include <time.h>
#include <unistd.h>

#include "agent/base/text-stream.h"
#include "agent/base/text.h"
#include "cli/gpu-table.h"
#include "cli/screen.h"

/* Changes often come several at a time; the list is read once for them. */
#define SETTLE_USEC (100 * USEC_PER_MSEC)

/* Load, power and temperature change without a signal. It is also how an agent's end is noticed on the
 * bus. */
#define REFRESH_USEC (5 * USEC_PER_SEC)

/* Until an agent that has gone is looked for again. */
#define RETRY_USEC (1 * USEC_PER_SEC)

typedef struct Watch {
        Options options; /* the caller's, and a timeout */
        sd_event *event;
        Screen *screen; /* NULL where the list is printed, not drawn */
        Client *client; /* NULL while there is no agent */
        char *printed;  /* the list as it was printed last */
        bool changed, ended;
} Watch;

static void watch_done(Watch *watch) {
        (void) client_free(watch->client);
        (void) screen_free(watch->screen);
        (void) sd_event_unref(watch->event);
        free(watch->printed);
}

/* What the list can do without on a narrow terminal, from the first that goes. */
static const uint32_t dispensable[] = { GPU_COLUMN_UUID, GPU_COLUMN_POWER, GPU_COLUMN_PARTITION,
        GPU_COLUMN_NVLINKS, GPU_COLUMN_TEMP, GPU_COLUMN_TRAY, GPU_COLUMN_HEALTH, GPU_COLUMN_MEMORY,
        GPU_COLUMN_CLIQUE, GPU_COLUMN_UTIL, GPU_COLUMN_RESET };

static size_t text_width(const char *text) {
        size_t width = 0;

        while (*text != '\0') {
                size_t length = strcspn(text, "\n");

                width = length > width ? length : width;
                text += length + (text[length] == '\n');
        }
        return width;
}

static int format_columns(const Watch *watch, const Tray *tray, uint32_t columns, char **ret) {
        CLEANUP(table_free_ptr) Table *table = NULL;
        int r;

        r = gpu_table_new(&watch->options, columns, &table);
        if (r < 0)
                return r;
        gpu_table_add(table, columns, tray);
        return table_format(table, ret);
}

/* As many columns as fit on the screen. */
static int format_to_fit(const Watch *watch, const Tray *tray, char **ret) {
        uint32_t columns = GPU_COLUMNS_LIVE;
        size_t width, rows;

        screen_size(&width, &rows);
        for (size_t i = 0;; i++) {
                CLEANUP(free_ptr) char *text = NULL;
                int r;

                r = format_columns(watch, tray, columns, &text);
                if (r < 0)
                        return r;
                if (text_width(text) <= width || i == ELEMENTSOF(dispensable)) {
                        *ret = take_ptr(&text);
                        return 0;
                }
                columns &= ~dispensable[i];
        }
}

/* 12:03:44 sched-worker1: 4 GPUs, driver ok, 1 quarantined (q quits) */
static void print_headline(FILE *file, const Tray *tray) {
        time_t now = time(NULL);
        char clock[16] = "";
        struct tm tm;

        if (localtime_r(&now, &tm))
                (void) strftime(clock, sizeof clock, "%H:%M:%S ", &tm);
        (void) fprintf(file, "%s%s: %zu GPU%s, driver %s%s%s", clock, tray->node_name, tray->n_gpus,
                        tray->n_gpus == 1 ? "" : "s", tray->driver_state, tray->driver_error[0] ? ": " : "",
                        tray->driver_error);
        if (tray->resets_pending > 0 && tray->resets_pending != UNKNOWN_U32)
                (void) fprintf(file, ", %u pending", tray->resets_pending);
        if (tray->quarantined > 0 && tray->quarantined != UNKNOWN_U32)
                (void) fprintf(file, ", %u quarantined", tray->quarantined);
        if (tray->maintenance)
                (void) fprintf(file, ", maintenance%s%s", tray->maintenance_reason[0] ? ": " : "",
                                tray->maintenance_reason);
        (void) fputs(" (q quits)", file);
}

static int draw_tray(const Watch *watch, const Tray *tray) {
        CLEANUP(text_stream_done) TextStream headline = {};
        CLEANUP(free_ptr) char *list = NULL, *all = NULL;
        FILE *file;
        int r;

        r = format_to_fit(watch, tray, &list);
        if (r < 0)
                return r;
        file = text_stream_open(&headline);
        if (!file)
                return -ENOMEM;
        print_headline(file, tray);
        r = text_stream_end(&headline);
        if (r < 0)
                return r;
        text_sanitize(headline.text);
        if (asprintf(&all, "%s\n\n%s", headline.text, list) < 0) {
                all = NULL;
                return -ENOMEM;
        }

        screen_draw(all);
        return 0;
}

/* A line of JSON, or the table with an empty line between it and the one before; nothing for no change. */
static int print_tray(Watch *watch, const Tray *tray) {
        CLEANUP(free_ptr) char *list = NULL;
        int r;

        r = format_columns(watch, tray, GPU_COLUMNS_LIST, &list);
        if (r < 0)
                return r;
        if (watch->printed && streq(watch->printed, list))
                return 0;

        if (watch->printed && watch->options.output == OUTPUT_TABLE)
                (void) putchar('\n');
        (void) fputs(list, stdout);
        if (fflush(stdout) != 0)
                return -errno;
        free(watch->printed);
        watch->printed = take_ptr(&list);
        return 0;
}

static int on_bus_signal(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Watch *watch = userdata;

        watch->changed = true;
        return 0;
}

static int watch_connect(Watch *watch, Failure *failure) {
        CLEANUP(client_free_ptr) Client *client = NULL;
        int r;

        r = client_open(&watch->options, &client, failure);
        if (r < 0)
                return r;
        r = client_subscribe(client, on_bus_signal, watch, NULL);
        if (r >= 0)
                r = client_attach(client, watch->event);
        if (r < 0)
                return failure_errno(failure, r, "cannot subscribe to changes");

        watch->client = take_ptr(&client);
        return 0;
}

/* Reads everything, and shows it. 0 · negative, and *failure says why. */
static int watch_show(Watch *watch, Failure *failure) {
        CLEANUP(tray_done) Tray tray = {};
        int r;

        watch->changed = false; /* before the look: what comes while it lasts may not be in it */
        if (!watch->client) {
                r = watch_connect(watch, failure);
                if (r < 0)
                        return r;
        }
        r = tray_read(watch->client, &tray, failure);
        if (r < 0)
                return r;

        r = watch->screen ? draw_tray(watch, &tray) : print_tray(watch, &tray);
        return r < 0 ? failure_errno(failure, r, "cannot print the list") : 0;
}

/* Until there is something to show, or no more. 0 · negative errno. */
static int watch_wait(Watch *watch) {
        usec_t now = now_monotonic_usec();
        usec_t deadline = usec_add(now, watch->client ? REFRESH_USEC : RETRY_USEC);
        bool settling = false;

        while (!watch->ended && now < deadline) {
                int r;

                if (watch->changed && !settling) {
                        settling = true;
                        deadline = usec_add(now, SETTLE_USEC);
                }
                r = sd_event_run(watch->event, deadline - now);
                if (r < 0)
                        return r;
                now = now_monotonic_usec();
        }
        return 0;
}

static int on_process_signal(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata) {
        Watch *watch = userdata;

        if (info->ssi_signo == SIGTSTP)
                screen_suspend(watch->screen);
        else if (info->ssi_signo != SIGWINCH)
                watch->ended = true;
        watch->changed = true;
        return 0;
}

static int on_key(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Watch *watch = userdata;
        char keys[64];
        ssize_t n = read(fd, keys, sizeof keys);

        if (n <= 0 || memchr(keys, 'q', (size_t) n))
                watch->ended = true;
        return 0;
}

/* Nobody reads any more what we print. */
static int on_output_closed(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Watch *watch = userdata;

        watch->ended = true;
        return 0;
}

static int watch_screen_events(Watch *watch) {
        static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH };
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(signals); i++)
                r = sd_event_add_signal(watch->event, NULL, signals[i] | SD_EVENT_SIGNAL_PROCMASK,
                                on_process_signal, watch);
        if (r >= 0 && isatty(STDIN_FILENO))
                r = sd_event_add_io(watch->event, NULL, STDIN_FILENO, EPOLLIN, on_key, watch);
        return r;
}

static int watch_begin(Watch *watch) {
        int r;

        r = sd_event_new(&watch->event);
        if (r < 0)
                return r;
        r = watch->options.output == OUTPUT_TABLE ? screen_new(&watch->screen) : -ENOTTY;
        if (r >= 0)
                return watch_screen_events(watch);
        if (r != -ENOTTY)
                return r;
        r = sd_event_add_io(watch->event, NULL, STDOUT_FILENO, 0, on_output_closed, watch);
        return r == -EPERM ? 0 : r; /* a file, which is never closed by others */
}

/* A terminal shows what is wrong, and waits for the agent. */
static int watch_survive(Watch *watch, Failure *failure) {
        if (!watch->screen || failure->exit_code != CLI_NO_AGENT)
                return -EIO;
        watch->client = client_free(watch->client);
        if (failure->message)
                text_sanitize(failure->message);
        screen_draw(failure->message ?: "out of memory");
        failure_done(failure);
        return 0;
}

int watch_gpus(const Options *options, Failure *failure) {
        CLEANUP(watch_done) Watch watch = { .options = *options };
        int r;

        if (watch.options.timeout_usec == 0)
                watch.options.timeout_usec = REFRESH_USEC;
        r = watch_begin(&watch);
        if (r < 0)
                return failure_errno(failure, r, "cannot watch");

        while (!watch.ended) {
                r = watch_show(&watch, failure);
                if (r < 0)
                        r = watch_survive(&watch, failure);
                if (r < 0)
                        return r;
                r = watch_wait(&watch);
                if (r < 0)
                        return failure_errno(failure, r, "cannot wait for changes");
        }
        return 0;
}
