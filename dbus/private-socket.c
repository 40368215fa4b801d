/* SPDX-License-Identifier: MIT */
#include "dbus/private-socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <systemd/sd-id128.h>

#include "agent/base/io.h"
#include "agent/log/log.h"
#include "dbus/bus-util.h"

/* A thousand hooks at once, and well below the unit's limit of descriptors. */
#define CONNECTIONS_MAX 2048U

/* A listener that cannot accept (no descriptors left) stays readable: it must not spin. */
#define ACCEPT_RATE_INTERVAL_USEC USEC_PER_SEC
#define ACCEPT_RATE_BURST         1000U

struct PrivateSocket {
        BusApi *api;
        sd_event_source *source;
        int fd;
        char *path;
        sd_id128_t id;
};

static int accept_root(int listen_fd, int *ret_fd) {
        CLEANUP(fd_close) int fd = -1;
        struct ucred peer;
        socklen_t size = sizeof peer;

        fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
                return -errno;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
                return -errno;

        /* The mode of the socket says so too; a wrong chmod must not be enough. */
        if (peer.uid != 0)
                return -EACCES;

        *ret_fd = take_fd(&fd);
        return 0;
}

/* sd-bus waits for its socket, also when calls that came in one piece with the end of the handshake lie in
 * its buffer already: a peer that asks at once would wait for good. */
static int on_first_look(sd_event_source *source, void *userdata) {
        BusConnection *connection = userdata;
        int r;

        r = sd_bus_process(connection->bus, NULL);
        if (r < 0)
                bus_connection_drop(connection);
        return r <= 0 ? 0 : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_connected(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        BusConnection *connection = userdata;

        return sd_event_add_defer(
                        connection->api->event, &connection->first_look, on_first_look, connection);
}

static int serve(PrivateSocket *private_socket, int *fd) {
        CLEANUP(bus_close_ptr) sd_bus *bus = NULL;
        BusConnection *connection;
        int r;

        r = sd_bus_new(&bus);
        if (r < 0)
                return r;
        r = sd_bus_set_fd(bus, *fd, *fd);
        if (r < 0)
                return r;
        (void) take_fd(fd);

        r = sd_bus_set_description(bus, "private");
        if (r >= 0)
                r = sd_bus_set_server(bus, 1, private_socket->id);
        if (r >= 0)
                r = sd_bus_set_trusted(bus, 1); /* accept_root() looked */
        if (r >= 0)
                r = sd_bus_set_connected_signal(bus, 1);
        if (r >= 0)
                r = sd_bus_start(bus);
        if (r >= 0)
                r = bus_api_add_connection(private_socket->api, &bus, true, NULL, NULL, &connection);
        if (r < 0)
                return r;

        r = sd_bus_match_signal(connection->bus, NULL, "org.freedesktop.DBus.Local",
                        "/org/freedesktop/DBus/Local", "org.freedesktop.DBus.Local", "Connected",
                        on_connected, connection);
        if (r < 0)
                bus_connection_drop(connection);
        return r;
}

static int on_connection(sd_event_source *source, int listen_fd, uint32_t revents, void *userdata) {
        PrivateSocket *private_socket = userdata;
        CLEANUP(fd_close) int fd = -1;
        int r;

        r = accept_root(listen_fd, &fd);
        if (r >= 0 && private_socket->api->n_connections >= CONNECTIONS_MAX)
                r = -EUSERS;
        if (r >= 0)
                r = serve(private_socket, &fd);
        if (r < 0 && r != -EAGAIN && r != -ECONNABORTED && r != -EINTR)
                (void) log_errno(r, "A connection to %s is refused", private_socket->path);
        return 0;
}

static int listen_at(const char *path, int *ret_fd) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        CLEANUP(fd_close) int fd = -1;

        if (strlen(path) >= sizeof address.sun_path)
                return -ENAMETOOLONG;
        (void) strcpy(address.sun_path, path);

        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if (unlink(path) < 0 && errno != ENOENT)
                return -errno;

        /* Connecting takes write permission: none for anyone between bind() and chmod(). */
        if (fchmod(fd, 0600) < 0 || bind(fd, (const struct sockaddr *) &address, sizeof address) < 0)
                return -errno;
        if (chmod(path, 0600) < 0 || listen(fd, SOMAXCONN) < 0)
                return -errno;

        *ret_fd = take_fd(&fd);
        return 0;
}

int private_socket_new(BusApi *api, const char *path, PrivateSocket **ret) {
        CLEANUP(private_socket_free_ptr) PrivateSocket *private_socket = NULL;
        int r;

        private_socket = calloc(1, sizeof *private_socket);
        if (!private_socket)
                return -ENOMEM;
        private_socket->api = api;
        private_socket->fd = -1;

        r = sd_id128_randomize(&private_socket->id);
        if (r >= 0)
                r = listen_at(path, &private_socket->fd);
        if (r < 0)
                return r;
        private_socket->path = strdup(path); /* from here on the socket is taken away at the end */
        if (!private_socket->path)
                return -ENOMEM;

        r = sd_event_add_io(api->event, &private_socket->source, private_socket->fd, EPOLLIN, on_connection,
                        private_socket);
        if (r >= 0)
                r = sd_event_source_set_ratelimit(
                                private_socket->source, ACCEPT_RATE_INTERVAL_USEC, ACCEPT_RATE_BURST);
        if (r < 0)
                return r;

        *ret = take_ptr(&private_socket);
        return 0;
}

PrivateSocket* private_socket_free(PrivateSocket *private_socket) {
        if (!private_socket)
                return NULL;
        (void) sd_event_source_disable_unref(private_socket->source);
        fd_close(&private_socket->fd);
        if (private_socket->path)
                (void) unlink(private_socket->path);
        free(private_socket->path);
        free(private_socket);
        return NULL;
}
