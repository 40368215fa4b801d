/* SPDX-License-Identifier: MIT */
/* gpuagentd: wiring. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

#include "agent/base/clock.h"
#include "agent/base/io.h"
#include "agent/config/config.h"
#include "agent/core/manager.h"
#include "agent/driver/protocol.h"
#include "agent/log/journal.h"
#include "agent/log/log.h"
#include "agent/log/message-ids.h"
#include "agent/observers/audit.h"
#include "agent/observers/metrics.h"
#include "agent/observers/status.h"
#include "agent/observers/xid.h"
#include "dbus/bus-api.h"
#include "dbus/bus-util.h"
#include "dbus/driver-link.h"
#include "dbus/private-socket.h"
#include "dbus/system-bus.h"

#define RUNTIME_DIRECTORY "/run/gpuagent"

/* Waking up this much late does not matter to anything that the core waits for. */
#define TICK_ACCURACY_USEC (20 * USEC_PER_MSEC)

/* How long READY=1 waits for the driver's first answer: those who come after us find the tray's GPUs then. A
 * driver that takes longer holds up nobody. */
#define READY_LATEST_USEC (3 * USEC_PER_SEC)

typedef struct Arguments {
        const char *config_path; /* NULL: the usual places */
        const char *runtime_directory;
        const char *driver_socket;
        bool check_config;
} Arguments;

typedef struct Daemon {
        const Arguments *arguments;
        int lock; /* of the runtime directory, kept to the end */
        sd_event *event;
        sd_event_source *tick;
        usec_t tick_at_usec; /* what the source is set to */
        bool bus_settled;    /* connected, or found out that there is no bus */
        bool waited;         /* READY_LATEST_USEC is over */
        bool stopping;       /* when the handovers have ended */
        Config *config;
        Manager *manager;
        DriverLink *driver_link;
        BusApi *api;
        SystemBus *system_bus;
        PrivateSocket *private_socket;
        Metrics *metrics;
        Audit *audit;
        Status *status;
        XidWatch *xid_watch;
} Daemon;

static void daemon_done(Daemon *daemon) {
        /* The manager goes before those it tells, and after those that ask it. */
        daemon->xid_watch = xid_watch_free(daemon->xid_watch);
        daemon->private_socket = private_socket_free(daemon->private_socket);
        daemon->system_bus = system_bus_free(daemon->system_bus);
        daemon->api = bus_api_free(daemon->api);
        daemon->driver_link = driver_link_free(daemon->driver_link);
        daemon->manager = manager_free(daemon->manager);
        daemon->status = status_free(daemon->status);
        daemon->metrics = metrics_free(daemon->metrics);
        daemon->audit = audit_free(daemon->audit);
        daemon->tick = sd_event_source_disable_unref(daemon->tick);
        daemon->config = config_free(daemon->config);
        daemon->event = sd_event_unref(daemon->event);
        fd_close(&daemon->lock);
}

/* Two agents on one tray would each go by a record of its own, and write it over the other's. */
static int take_lock(Daemon *daemon) {
        const char *directory = daemon->arguments->runtime_directory;
        CLEANUP(fd_close) int fd = -1;
        char path[PATH_MAX];
        struct stat st;

        (void) snprintf(path, sizeof path, "%s/lock", directory);
        fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
        if (fd < 0)
                return log_errno(-errno, "Cannot open %s", path);
        /* An agent that root starts by hand must not leave a file that keeps the service out. */
        if (geteuid() == 0 && (stat(directory, &st) < 0 || fchown(fd, st.st_uid, st.st_gid) < 0))
                return log_errno(-errno, "Cannot give %s its owner", path);
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
                return errno == EWOULDBLOCK ? log_errno(-EBUSY, "Another gpuagentd works in %s", directory)
                                            : log_errno(-errno, "Cannot lock %s", path);

        daemon->lock = take_fd(&fd);
        return 0;
}

static void take_group(Daemon *daemon) {
        const char *group = daemon->config->access.group;
        int r;

        r = bus_group_resolve(group, &daemon->api->group);
        if (r < 0)
                (void) log_errno(r, "Only root may act: group %s of access.group cannot be found", group);
}

static void log_reload(const char *message_id, int priority, const char *text) {
        JournalEntry entry;

        journal_begin(&entry, message_id, priority, AUDIT_IDENTIFIER);
        journal_add(&entry, "MESSAGE", text);
        journal_send(&entry);
}

/* Reads the new configuration whole; one with a mistake changes nothing. */
static int reload(void *userdata, char **ret_message) {
        CLEANUP(config_free_ptr) Config *old = NULL;
        CLEANUP(free_ptr) char *message = NULL;
        Daemon *daemon = userdata;
        Config *config;
        int r;

        r = config_load(daemon->arguments->config_path, &config, &message);
        if (r < 0) {
                log_reload(MESSAGE_ID_CONFIG_REFUSED, LOG_ERR, message ? message : strerror(-r));
                if (ret_message)
                        *ret_message = take_ptr(&message);
                return r;
        }

        old = daemon->config;
        daemon->config = config;
        take_group(daemon);
        manager_set_config(daemon->manager, config);
        log_reload(MESSAGE_ID_CONFIG_RELOADED, LOG_INFO, "The configuration is reloaded");
        return 0;
}

static int on_hangup(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata) {
        (void) reload(userdata, NULL); /* it has said why */
        return 0;
}

/* A handover under way ends first, since nobody else would verify and record it; what is asked from now on
 * is refused. Asked a second time we go at once: then the record says dirty. */
static int on_stop(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata) {
        Daemon *daemon = userdata;

        if (daemon->stopping)
                return sd_event_exit(daemon->event, 0);
        daemon->stopping = true;
        manager_stop(daemon->manager);
        (void) sd_notify(0, "STOPPING=1");
        return 0; /* on_post() sees whether it is time */
}

static int on_ready_latest(sd_event_source *source, uint64_t usec, void *userdata) {
        Daemon *daemon = userdata;

        daemon->waited = true;
        return 0;
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata) {
        Daemon *daemon = userdata;

        daemon->tick_at_usec = USEC_INFINITY; /* one-shot: it is off now */
        manager_tick(daemon->manager, now_read());
        return 0;
}

static int set_tick(Daemon *daemon) {
        usec_t next = manager_next_elapse(daemon->manager);
        int r;

        if (next == daemon->tick_at_usec)
                return 0;
        daemon->tick_at_usec = next;
        if (next == USEC_INFINITY)
                return sd_event_source_set_enabled(daemon->tick, SD_EVENT_OFF);
        r = sd_event_source_set_time(daemon->tick, next);
        return r < 0 ? r : sd_event_source_set_enabled(daemon->tick, SD_EVENT_ONESHOT);
}

/* After anything has happened: are we ready, are we done, and when does the manager want to be woken? */
static int on_post(sd_event_source *source, void *userdata) {
        Daemon *daemon = userdata;
        int r;

        if (daemon->bus_settled &&
                        (daemon->waited || manager_maintenance(daemon->manager) ||
                                        manager_driver_state(daemon->manager) != DRIVER_UNKNOWN))
                status_ready(daemon->status);
        if (daemon->stopping && manager_is_idle(daemon->manager))
                return sd_event_exit(daemon->event, 0);
        if (manager_is_at_rest(daemon->manager))
                driver_link_rest(daemon->driver_link);

        r = set_tick(daemon);
        if (r < 0)
                return log_errno(r, "Cannot set the timer");
        return 0;
}

static void on_bus_settled(void *userdata) {
        Daemon *daemon = userdata;

        daemon->bus_settled = true;
}

static int setup_loop(Daemon *daemon) {
        static const int quitting[] = { SIGTERM, SIGINT };
        int r;

        r = sd_event_default(&daemon->event);
        if (r >= 0)
                r = sd_event_set_watchdog(daemon->event, true);
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(quitting); i++)
                r = sd_event_add_signal(daemon->event, NULL, quitting[i] | SD_EVENT_SIGNAL_PROCMASK, on_stop,
                                daemon);
        if (r >= 0)
                r = sd_event_add_signal(
                                daemon->event, NULL, SIGHUP | SD_EVENT_SIGNAL_PROCMASK, on_hangup, daemon);
        if (r >= 0)
                r = sd_event_add_time(daemon->event, &daemon->tick, CLOCK_MONOTONIC, 0, TICK_ACCURACY_USEC,
                                on_tick, daemon);
        if (r >= 0)
                r = sd_event_add_time_relative(daemon->event, NULL, CLOCK_MONOTONIC, READY_LATEST_USEC, 0,
                                on_ready_latest, daemon);
        if (r >= 0)
                r = sd_event_add_post(daemon->event, NULL, on_post, daemon);
        if (r < 0)
                return log_errno(r, "Cannot set up the event loop");
        return 0;
}

static int setup_manager(Daemon *daemon) {
        const Arguments *arguments = daemon->arguments;
        char path[PATH_MAX], host[HOST_NAME_MAX + 1] = "";
        VendorOps vendor;
        int r;

        r = driver_link_new(daemon->event, arguments->driver_socket, &daemon->driver_link);
        if (r < 0)
                return log_errno(r, "Cannot use %s", arguments->driver_socket);
        vendor = driver_link_ops(daemon->driver_link);

        (void) snprintf(path, sizeof path, "%s/state", arguments->runtime_directory);
        r = manager_new(daemon->config, &vendor, path, &daemon->manager);
        if (r < 0)
                return log_errno(r, "Cannot set up the manager");
        if (manager_error(daemon->manager)[0] != '\0')
                log_message(LOG_ERR, "%s", manager_error(daemon->manager));
        driver_link_set_manager(daemon->driver_link, daemon->manager);

        /* The tray's name is the node's, without a domain. */
        (void) gethostname(host, sizeof host - 1);
        host[strcspn(host, ".")] = '\0';

        (void) snprintf(path, sizeof path, "%s/metrics.prom", arguments->runtime_directory);
        r = metrics_new(daemon->event, daemon->manager, path, host, &daemon->metrics);
        if (r >= 0)
                r = audit_new(daemon->manager, &daemon->audit);
        if (r >= 0)
                r = status_new(daemon->manager, &daemon->status);
        if (r >= 0)
                r = bus_api_new(daemon->event, daemon->manager, host, &daemon->api);
        if (r < 0)
                return log_errno(r, "Cannot set up the bus objects");

        daemon->api->reload = reload;
        daemon->api->reload_userdata = daemon;
        take_group(daemon);
        return 0;
}

static int run(const Arguments *arguments, Config *config) {
        CLEANUP(daemon_done) Daemon daemon = { .arguments = arguments, .lock = -1, .config = config };
        char path[PATH_MAX];
        int r;

        r = take_lock(&daemon);
        if (r < 0)
                return r;
        r = setup_loop(&daemon);
        if (r < 0)
                return r;
        r = setup_manager(&daemon);
        if (r < 0)
                return r;

        r = xid_watch_new(daemon.event, daemon.manager, &daemon.xid_watch);
        if (r < 0)
                (void) log_errno(r, "The journal cannot be followed: no Xids will be seen");

        (void) snprintf(path, sizeof path, "%s/private", arguments->runtime_directory);
        r = private_socket_new(daemon.api, path, &daemon.private_socket);
        if (r < 0)
                return log_errno(r, "Cannot listen at %s", path);
        r = system_bus_new(daemon.api, on_bus_settled, &daemon, &daemon.system_bus);
        if (r < 0)
                return log_errno(r, "Cannot set up the connection to the system bus");

        r = sd_event_loop(daemon.event);
        if (r < 0)
                return log_errno(r, "The event loop failed");
        return 0;
}

static int usage(FILE *file, int code) {
        (void) fputs("gpuagentd [OPTION…]\n\n"
                     "Keeps the GPUs of this tray, and resets them between tenants: org.gpuagent1 on the "
                     "system bus.\n\n"
                     "  --config FILE            read this file and no other\n"
                     "  --check-config           say what is wrong with the configuration, and exit\n"
                     "  --runtime-directory DIR  state, metrics and private socket (" RUNTIME_DIRECTORY ")\n"
                     "  --driver-socket PATH     the driver service (" PROTOCOL_SOCKET ")\n"
                     "  --version, --help\n",
                        file);
        return code;
}

/* 0: go on · 1: all is said, with *ret_code. */
static int parse_arguments(int argc, char **argv, Arguments *ret, int *ret_code) {
        enum {
                ARG_CONFIG = 256,
                ARG_CHECK,
                ARG_DIRECTORY,
                ARG_SOCKET,
                ARG_VERSION,
                ARG_HELP
        };
        static const struct option options[] = {
                { "config", required_argument, NULL, ARG_CONFIG },
                { "check-config", no_argument, NULL, ARG_CHECK },
                { "runtime-directory", required_argument, NULL, ARG_DIRECTORY },
                { "driver-socket", required_argument, NULL, ARG_SOCKET },
                { "version", no_argument, NULL, ARG_VERSION },
                { "help", no_argument, NULL, ARG_HELP },
                {},
        };
        int c;

        *ret = (Arguments){ .runtime_directory = RUNTIME_DIRECTORY, .driver_socket = PROTOCOL_SOCKET };
        while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
                if (c == ARG_CONFIG)
                        ret->config_path = optarg;
                else if (c == ARG_CHECK)
                        ret->check_config = true;
                else if (c == ARG_DIRECTORY)
                        ret->runtime_directory = optarg;
                else if (c == ARG_SOCKET)
                        ret->driver_socket = optarg;
                else if (c == ARG_VERSION) {
                        (void) printf("gpuagentd %s\n", VERSION);
                        *ret_code = EXIT_SUCCESS;
                        return 1;
                } else {
                        *ret_code = c == ARG_HELP ? usage(stdout, EXIT_SUCCESS) : usage(stderr, 2);
                        return 1;
                }
        }
        if (optind < argc) {
                *ret_code = usage(stderr, 2);
                return 1;
        }
        return 0;
}

int main(int argc, char **argv) {
        CLEANUP(config_free_ptr) Config *config = NULL;
        CLEANUP(free_ptr) char *message = NULL;
        Arguments arguments;
        int code, r;

        if (parse_arguments(argc, argv, &arguments, &code) > 0)
                return code;
        log_open(AUDIT_IDENTIFIER);

        r = config_load(arguments.config_path, &config, &message);
        if (r < 0) {
                log_message(LOG_ERR, "%s", message ? message : strerror(-r));
                return EXIT_FAILURE;
        }
        if (arguments.check_config)
                return EXIT_SUCCESS;

        return run(&arguments, take_ptr(&config)) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
