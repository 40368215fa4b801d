/* SPDX-License-Identifier: MIT */
/* gpuagent-driver: the service with the rights. Its loop never touches the vendor's driver; workers do. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

#include "agent/base/io.h"
#include "agent/driver/queue.h"
#include "agent/driver/service.h"
#include "agent/driver/settings.h"
#include "agent/log/log.h"

#define EXIT_USAGE 2

/* A handover that needs us has this time to end, as much as gpuagentd's own stop; a reset that runs then has
 * what TimeoutStopSec= of our unit says. */
#define SERVE_ON_USEC  (300 * USEC_PER_SEC)
#define LAST_STOP_USEC (150 * USEC_PER_SEC)

typedef struct Arguments {
        const char *config;
        const char *runtime_directory;
} Arguments;

typedef struct Program {
        sd_event *event;
        Settings *settings;
        Queue *queue;
        Resumer *resumer;
        Service *service;
        int listen_fd;
        bool stopping, stopped; /* serves on · no more */
} Program;

static void program_done(Program *program) {
        service_free(program->service);
        queue_free(program->queue);
        resumer_free(program->resumer);
        settings_free(program->settings);
        (void) sd_event_unref(program->event);
        fd_close(&program->listen_fd);
}

/* 1 go on · 0 done · -EINVAL wrong usage, which was said. */
static int arguments_parse(int argc, char *argv[], Arguments *ret) {
        static const struct option options[] = {
                { "config", required_argument, NULL, 'c' },
                { "runtime-directory", required_argument, NULL, 'r' },
                { "version", no_argument, NULL, 'V' },
                { "help", no_argument, NULL, 'h' },
                {},
        };
        int option;

        *ret = (Arguments){ .runtime_directory = "/run/gpuagent-driver" };
        while ((option = getopt_long(argc, argv, "h", options, NULL)) >= 0)
                switch (option) {
                case 'c': ret->config = optarg; break;
                case 'r': ret->runtime_directory = optarg; break;
                case 'V': (void) puts("gpuagent-driver " VERSION); return 0;
                case 'h':
                        (void) puts("gpuagent-driver [OPTION…]\n\n"
                                    "The driver service of gpuagentd. It is started by its socket.\n\n"
                                    "      --config FILE            read this file alone\n"
                                    "      --runtime-directory DIR  where it remembers what is at work\n"
                                    "                               (/run/gpuagent-driver)\n"
                                    "      --version                the version\n"
                                    "  -h, --help                   this text");
                        return 0;
                default: return -EINVAL;
                }

        if (optind < argc) {
                (void) fprintf(stderr, "gpuagent-driver: unexpected argument \"%s\"\n", argv[optind]);
                return -EINVAL;
        }
        return 1;
}

static void on_stopped(void *userdata) {
        (void) sd_event_exit(userdata, 0);
}

/* Nobody needs us any more, or for too long. */
static void stop_queue(void *userdata) {
        Program *program = userdata;

        if (program->stopped)
                return;
        program->stopped = true;
        queue_stop(program->queue, on_stopped, program->event);
}

static int on_served_long_enough(sd_event_source *source, uint64_t now, void *userdata) {
        const Program *program = userdata;

        if (program->stopped)
                return 0; /* a reset of nobody's ends still */
        log_message(LOG_WARNING,
                        "gpuagentd does not come to an end with its handovers, stopping all the same");
        stop_queue(userdata);
        return 0;
}

/* A handover under way needs us after its reset, too: an upgrade, or a restart of both services by one
 * command, stops us while gpuagentd ends it. Asked a second time we go at once. */
static int on_terminate(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata) {
        Program *program = userdata;
        int r;

        if (program->stopping) {
                stop_queue(program);
                return 0;
        }
        program->stopping = true;
        (void) sd_notifyf(false, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%llu",
                        (unsigned long long) (SERVE_ON_USEC + LAST_STOP_USEC));
        r = sd_event_add_time_relative(program->event, NULL, CLOCK_MONOTONIC, SERVE_ON_USEC, 0,
                        on_served_long_enough, program);
        if (r < 0)
                stop_queue(program);
        else
                service_stop(program->service, stop_queue, program);
        return 0;
}

static int signals_setup(Program *program) {
        static const int signals[] = { SIGTERM, SIGINT };

        (void) signal(SIGPIPE, SIG_IGN);
        for (size_t i = 0; i < ELEMENTSOF(signals); i++) {
                int r = sd_event_add_signal(program->event, NULL, signals[i] | SD_EVENT_SIGNAL_PROCMASK,
                                on_terminate, program);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* The one socket that systemd hands over. */
static int listen_take(int *ret_fd) {
        int n = sd_listen_fds(true);

        if (n < 0)
                return log_errno(n, "Cannot take over the socket");
        if (n != 1 || sd_is_socket_unix(SD_LISTEN_FDS_START, SOCK_STREAM, 1, NULL, 0) <= 0) {
                log_message(LOG_ERR,
                                "Start gpuagent-driver by gpuagent-driver.socket: it needs one listening "
                                "socket");
                return -EINVAL;
        }

        /* A client that is gone before it was accepted must not block the loop. */
        if (fcntl(SD_LISTEN_FDS_START, F_SETFL, O_NONBLOCK) < 0)
                return log_errno(-errno, "Cannot set up the socket");
        *ret_fd = SD_LISTEN_FDS_START;
        return 0;
}

static int program_setup(Program *program, const Arguments *arguments) {
        int r;

        r = listen_take(&program->listen_fd);
        if (r < 0)
                return r;
        r = settings_new(arguments->config, &program->settings);
        if (r < 0)
                return r;

        r = sd_event_default(&program->event);
        if (r >= 0)
                r = signals_setup(program);
        if (r >= 0)
                r = sd_event_set_watchdog(program->event, true);
        if (r < 0)
                return log_errno(r, "Cannot set up the event loop");

        r = queue_new(program->event, program->settings, arguments->runtime_directory, &program->queue);
        if (r >= 0)
                r = resumer_new(program->event, program->queue, arguments->runtime_directory,
                                &program->resumer);
        if (r >= 0)
                r = service_new(program->event, program->queue, program->resumer, program->listen_fd,
                                &program->service);
        if (r < 0)
                return log_errno(r, "Cannot set up the service");
        return 0;
}

int main(int argc, char *argv[]) {
        CLEANUP(program_done) Program program = { .listen_fd = -1 };
        Arguments arguments;
        int r;

        r = arguments_parse(argc, argv, &arguments);
        if (r <= 0)
                return r < 0 ? EXIT_USAGE : EXIT_SUCCESS;
        log_open("gpuagent-driver");

        r = program_setup(&program, &arguments);
        if (r < 0)
                return EXIT_FAILURE;

        (void) sd_notify(false, "READY=1");
        r = sd_event_loop(program.event);
        if (r < 0)
                (void) log_errno(r, "The event loop failed");
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
