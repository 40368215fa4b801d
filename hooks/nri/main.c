/* SPDX-License-Identifier: MIT */
/* gpuagent-nri: the gate before a pod's containers get GPUs, for runtimes with NRI (containerd, CRI-O). A
 * plugin of its own process, which connects again whenever the runtime was away. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "agent/base/io.h"
#include "agent/log/log.h"
#include "hooks/nri/gate.h"

#define NRI_SOCKET "/var/run/nri/nri.sock"

/* Between two tries to connect: a runtime that starts creates containers soon. */
#define RETRY_USEC (200 * USEC_PER_MSEC)

/* After it has refused us it will do so again. */
#define REFUSED_USEC (30 * USEC_PER_SEC)

#define READ_SIZE (64U << 10)

static int on_gate(const OciContainer *container, char ret_why[static PLUGIN_WHY_SIZE], void *userdata) {
        return gate_book(userdata, container, ret_why);
}

static void on_end(const OciContainer *container, void *userdata) {
        gate_release(userdata, container);
}

static void on_ready(const char *runtime, const char *version, void *userdata) {
        log_message(LOG_INFO, "A plugin of %s %s", runtime, version);
        (void) sd_notifyf(0, "STATUS=A plugin of %s %s", runtime, version);
}

/* 0 and *ret · -errno. */
static int connect_runtime(const char *path, int *ret) {
        CLEANUP(fd_close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        if (fd < 0)
                return -errno;
        memcpy(address.sun_path, path, strlen(path) + 1);
        if (connect(fd, (const struct sockaddr *) &address, sizeof address) < 0)
                return -errno;
        *ret = take_fd(&fd);
        return 0;
}

/* Sends what the plugin has to say. 0 · -errno. */
static int send_out(int fd, Plugin *plugin) {
        for (size_t sent = 0; sent < plugin->out.n;) {
                ssize_t n = send(fd, plugin->out.data + sent, plugin->out.n - sent, MSG_NOSIGNAL);

                if (n < 0 && errno != EINTR)
                        return -errno;
                sent += n > 0 ? (size_t) n : 0;
        }
        wire_buffer_done(&plugin->out);
        return 0;
}

/* Everything that came with one read. 0 · negative as plugin_take(). */
static int take_all(Plugin *plugin, Wire *wire) {
        WireMessage message;
        int r;

        while ((r = wire_next(wire, &message)) > 0) {
                r = plugin_take(plugin, &message);
                if (r < 0)
                        return r;
        }
        return r;
}

/* One connection, to its end. 0: the runtime is gone · -errno. */
static int serve(int fd, const PluginOps *ops) {
        CLEANUP(plugin_done) Plugin plugin = {};
        CLEANUP(wire_done) Wire wire = {};
        CLEANUP(free_ptr) uint8_t *data = malloc(READ_SIZE);
        int r;

        if (!data)
                return -ENOMEM;
        r = plugin_begin(&plugin, ops);
        while (r >= 0) {
                ssize_t n;

                r = send_out(fd, &plugin);
                if (r < 0)
                        return r;
                n = read(fd, data, READ_SIZE);
                if (n == 0)
                        return 0;
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                r = wire_feed(&wire, data, (size_t) n);
                if (r >= 0)
                        r = take_all(&plugin, &wire);
        }
        return r;
}

static void run(const char *path, const PluginOps *ops) {
        for (;;) {
                CLEANUP(fd_close) int fd = -1;
                int r;

                r = connect_runtime(path, &fd);
                if (r >= 0) {
                        r = serve(fd, ops);
                        if (r == -ECONNREFUSED)
                                log_message(LOG_ERR, "The runtime refuses the plugin");
                        else if (r < 0 && r != -ECONNRESET && r != -EPIPE)
                                (void) log_errno(r, "The connection to the runtime has failed");
                        else
                                log_message(LOG_NOTICE, "The runtime is gone; waiting for it at %s", path);
                        (void) sd_notifyf(0, "STATUS=Waiting for a runtime at %s", path);
                        (void) usleep(r == -ECONNREFUSED ? REFUSED_USEC : 0);
                }
                (void) usleep(RETRY_USEC);
        }
}

static int usage(FILE *file, int code) {
        (void) fputs("gpuagent-nri [OPTION…]\n\n"
                     "Books GPUs before containers get them, as an NRI plugin of containerd or CRI-O.\n\n"
                     "  --socket PATH  the runtime's socket (" NRI_SOCKET ")\n"
                     "  --config FILE  read this gpuagentd.yaml and no other\n"
                     "  --version, --help\n",
                        file);
        return code;
}

int main(int argc, char **argv) {
        static const struct option long_options[] = {
                { "socket", required_argument, NULL, 's' },
                { "config", required_argument, NULL, 'c' },
                { "version", no_argument, NULL, 'v' },
                { "help", no_argument, NULL, 'h' },
                {},
        };
        Options options = { .wait = true };
        const PluginOps ops = { on_gate, on_end, on_ready, &options };
        const char *path = NRI_SOCKET;
        int c;

        while ((c = getopt_long(argc, argv, "", long_options, NULL)) >= 0)
                switch (c) {
                case 's': path = optarg; break;
                case 'c': options.config_path = optarg; break;
                case 'v': (void) printf("gpuagent-nri %s\n", VERSION); return EXIT_SUCCESS;
                case 'h': return usage(stdout, EXIT_SUCCESS);
                default: return usage(stderr, 2);
                }
        if (optind < argc)
                return usage(stderr, 2);
        if (strlen(path) >= sizeof((struct sockaddr_un *) NULL)->sun_path) {
                (void) fprintf(stderr, "gpuagent-nri: the socket's path is too long: %s\n", path);
                return 2;
        }

        log_open("gpuagent-nri");
        (void) sd_notifyf(0, "READY=1\nSTATUS=Waiting for a runtime at %s", path);
        run(path, &ops);
}
