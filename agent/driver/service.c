/* SPDX-License-Identifier: MIT */
#include "agent/driver/service.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-id128.h>

#include "agent/base/io.h"
#include "agent/base/text.h"
#include "agent/driver/protocol.h"
#include "agent/log/log.h"

/* gpuagentd has one connection; a few more for one that is being replaced, and for tests. */
#define PEERS_MAX          8
#define ACCEPTS_PER_SECOND 50

typedef struct Peer {
        Service *service;
        sd_bus *bus;
        bool quiesced; /* it had monitoring stopped, and has not asked to start it again */
        struct Peer *next;
} Peer;

struct Service {
        sd_event *event;
        Queue *queue;
        Resumer *resumer;
        sd_event_source *accept_source;
        Peer *peers;
        size_t n_peers;
        void (*stopped)(void *userdata); /* set once it is to stop */
        void *stopped_userdata;
};

static Peer* peer_free(Peer *peer) {
        if (!peer)
                return NULL;
        queue_forget(peer->service->queue, peer);
        if (peer->quiesced)
                resumer_release(peer->service->resumer);
        if (peer->bus)
                (void) sd_bus_detach_event(peer->bus);
        (void) sd_bus_close_unref(peer->bus);
        free(peer);
        return NULL;
}

DEFINE_CLEANUP(Peer, peer_free_ptr, peer_free)
DEFINE_CLEANUP(sd_bus_message, message_unref_ptr, sd_bus_message_unref)

static const char* error_name(AnswerError error) {
        switch (error) {
        case ANSWER_MISSING: return PROTOCOL_ERROR_MISSING;
        case ANSWER_UNRESPONSIVE: return PROTOCOL_ERROR_UNRESPONSIVE;
        case ANSWER_NO_SUCH_GPU: return PROTOCOL_ERROR_NO_SUCH_GPU;
        case ANSWER_OK:
        case ANSWER_FAILED:
        case _ANSWER_ERROR_MAX:
        case _ANSWER_ERROR_INVALID: break;
        }
        return PROTOCOL_ERROR_FAILED;
}

static int answer_send(sd_bus_message *call, const Answer *answer) {
        CLEANUP(message_unref_ptr) sd_bus_message *reply = NULL;
        int r;

        if (answer->error != ANSWER_OK)
                return sd_bus_reply_method_errorf(call, error_name(answer->error), "%s", answer->message);

        r = sd_bus_message_new_method_return(call, &reply);
        if (r < 0)
                return r;
        switch (answer->kind) {
        case TASK_PROBE:
                r = protocol_append_probe(reply, answer->driver_version, answer->samples, answer->n_asked);
                break;
        case TASK_RESET:
                r = protocol_append_resets(reply, answer->resets, answer->n);
                if (r >= 0)
                        r = protocol_append_samples(reply, answer->looks, answer->n_looks);
                break;
        case TASK_CHECKS: r = protocol_append_resets(reply, answer->resets, answer->n); break;
        case TASK_HOLDERS:
        case TASK_LEFTOVERS: r = protocol_append_holders(reply, answer->holders, answer->n); break;
        case TASK_QUIESCE:
        case TASK_RESUME: r = protocol_append_failure(reply, answer->message); break;
        case TASK_TENANTS: r = protocol_append_tenants(reply, answer->tenants, answer->n); break;
        case _TASK_KIND_MAX:
        case _TASK_KIND_INVALID: return -EINVAL;
        }
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int compare_strings(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

/* Brings every UUID to its canonical form. 1 · 0 one is not a UUID, or is there twice, or they are too many
 * · -ENOMEM. */
static int uuids_check(char **uuids) {
        CLEANUP(free_ptr) char **sorted = NULL;
        size_t n = strv_length(uuids);

        if (n > PROTOCOL_GPUS_MAX)
                return 0;
        sorted = calloc(n + 1, sizeof *sorted);
        if (!sorted)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                char uuid[GPU_UUID_SIZE];

                if (gpu_uuid_parse(uuids[i], uuid) < 0)
                        return 0;
                strcpy(uuids[i], uuid); /* of the same length */
                sorted[i] = uuids[i];
        }

        qsort(sorted, n, sizeof *sorted, compare_strings);
        for (size_t i = 1; i < n; i++)
                if (streq(sorted[i - 1], sorted[i]))
                        return 0;
        return 1;
}

static void on_answer(Answer *answer, void *userdata) {
        CLEANUP(message_unref_ptr) sd_bus_message *call = userdata;
        int r;

        r = answer_send(call, answer);
        if (r < 0 && r != -ENOTCONN && r != -ECONNRESET) /* who asked may have left meanwhile */
                (void) log_errno(r, "Cannot answer %s", sd_bus_message_get_member(call));
}

/* Reads the time, and hands the request over with its strvs. 1 · negative, and `error` is set. */
static int submit(TaskKind kind, sd_bus_message *msg, Peer *peer, char ***uuids, char ***tenants,
                sd_bus_error *error) {
        QueueRequest request = {
                .kind = kind, .uuids = *uuids, .tenants = *tenants, .owner = peer, .done = on_answer
        };
        usec_t timeout_usec;
        int r;

        r = sd_bus_message_read_basic(msg, 't', &timeout_usec);
        if (r < 0)
                return r;
        if (timeout_usec == 0 || timeout_usec > PROTOCOL_TIMEOUT_MAX_USEC)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "the timeout is out of range");

        request.deadline_usec = now_monotonic_usec() + timeout_usec;
        request.userdata = sd_bus_message_ref(msg);
        r = queue_submit(peer->service->queue, &request);
        if (r < 0) {
                (void) sd_bus_message_unref(msg);
                return r == -ENOBUFS ? sd_bus_error_set(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
                                                       "too many requests wait")
                                     : r;
        }

        *uuids = *tenants = NULL; /* the queue's now */
        return 1;
}

static int method_task(TaskKind kind, sd_bus_message *msg, Peer *peer, sd_bus_error *error) {
        CLEANUP(strv_free_ptr) char **uuids = NULL, **tenants = NULL;
        int r;

        r = sd_bus_message_read_strv(msg, &uuids);
        if (r < 0)
                return r;
        r = uuids_check(uuids);
        if (r < 0)
                return r;
        if (r == 0)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                                "a list of UUIDs, each one once, is needed");
        if (kind == TASK_RESET && strv_length(uuids) == 0)
                return sd_bus_error_set(
                                error, SD_BUS_ERROR_INVALID_ARGS, "a reset needs the UUIDs of its GPUs");
        return submit(kind, msg, peer, &uuids, &tenants, error);
}

/* Of GPUs with their tenants. */
static int method_pairs(TaskKind kind, sd_bus_message *msg, Peer *peer, sd_bus_error *error) {
        CLEANUP(strv_free_ptr) char **uuids = NULL, **tenants = NULL;
        CLEANUP(free_ptr) GpuTenant *pairs = NULL;
        size_t n = 0;
        int r;

        r = protocol_read_pairs(msg, &pairs, &n);
        if (r == -EBADMSG || (r >= 0 && n == 0))
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                                "a list of UUIDs, each one once, with their tenants is needed");
        for (size_t i = 0; r >= 0 && i < n; i++) {
                r = strv_append(&uuids, pairs[i].uuid);
                if (r >= 0)
                        r = strv_append(&tenants, pairs[i].tenant);
        }
        return r < 0 ? r : submit(kind, msg, peer, &uuids, &tenants, error);
}

static int method_tenants(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        CLEANUP(strv_free_ptr) char **uuids = NULL, **tenants = NULL;
        int r;

        r = sd_bus_message_read_strv(msg, &tenants);
        if (r < 0)
                return r;
        if (strv_length(tenants) > PROTOCOL_TENANTS_MAX)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "these are too many tenants");
        STRV_FOREACH (tenant, tenants)
                if (!tenant_is_valid(*tenant))
                        return sd_bus_error_set(
                                        error, SD_BUS_ERROR_INVALID_ARGS, "a list of tenants is needed");
        return submit(TASK_TENANTS, msg, userdata, &uuids, &tenants, error);
}

/* From here on, monitoring is stopped until this peer asks to start it again, or leaves. */
static int method_quiesce(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        char **uuids = NULL, **tenants = NULL;
        Peer *peer = userdata;
        int r;

        r = submit(TASK_QUIESCE, msg, peer, &uuids, &tenants, error);
        if (r > 0 && !peer->quiesced) {
                peer->quiesced = true;
                resumer_hold(peer->service->resumer);
        }
        return r;
}

static int method_resume(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        char **uuids = NULL, **tenants = NULL;
        Peer *peer = userdata;
        int r;

        r = submit(TASK_RESUME, msg, peer, &uuids, &tenants, error);
        if (r > 0 && peer->quiesced) {
                peer->quiesced = false;
                resumer_release(peer->service->resumer);
        }
        return r;
}

static int method_leftovers(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        return method_pairs(TASK_LEFTOVERS, msg, userdata, error);
}

static int method_checks(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        return method_pairs(TASK_CHECKS, msg, userdata, error);
}

static int method_probe(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        return method_task(TASK_PROBE, msg, userdata, error);
}

static int method_reset(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        return method_task(TASK_RESET, msg, userdata, error);
}

static int method_holders(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        return method_task(TASK_HOLDERS, msg, userdata, error);
}

static const sd_bus_vtable service_vtable[] = { SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD_WITH_ARGS("Probe", SD_BUS_ARGS("as", uuids, "t", timeout_usec),
                        SD_BUS_RESULT("s", driver_version, "aa{sv}", gpus), method_probe, 0),
        SD_BUS_METHOD_WITH_ARGS("Reset", SD_BUS_ARGS("as", uuids, "t", timeout_usec),
                        SD_BUS_RESULT("a(sus)", results, "aa{sv}", gpus), method_reset, 0),
        SD_BUS_METHOD_WITH_ARGS("Holders", SD_BUS_ARGS("as", uuids, "t", timeout_usec),
                        SD_BUS_RESULT("a(sutussst)", holders), method_holders, 0),
        SD_BUS_METHOD_WITH_ARGS("Leftovers", SD_BUS_ARGS("a(ss)", gpus, "t", timeout_usec),
                        SD_BUS_RESULT("a(sutussst)", holders), method_leftovers, 0),
        SD_BUS_METHOD_WITH_ARGS("Quiesce", SD_BUS_ARGS("t", timeout_usec), SD_BUS_RESULT("s", failure),
                        method_quiesce, 0),
        SD_BUS_METHOD_WITH_ARGS("Resume", SD_BUS_ARGS("t", timeout_usec), SD_BUS_RESULT("s", failure),
                        method_resume, 0),
        SD_BUS_METHOD_WITH_ARGS("Checks", SD_BUS_ARGS("a(ss)", gpus, "t", timeout_usec),
                        SD_BUS_RESULT("a(sus)", results), method_checks, 0),
        SD_BUS_METHOD_WITH_ARGS("Tenants", SD_BUS_ARGS("as", tenants, "t", timeout_usec),
                        SD_BUS_RESULT("a(su)", signs), method_tenants, 0),
        SD_BUS_VTABLE_END };

static int on_peer_disconnected(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        Peer *peer = userdata;
        Service *service = peer->service;

        for (Peer **link = &service->peers; *link; link = &(*link)->next)
                if (*link == peer) {
                        *link = peer->next;
                        service->n_peers--;
                        break;
                }
        peer_free(peer);
        if (!service->peers && service->stopped)
                service->stopped(service->stopped_userdata);
        return 0;
}

/* Whom the socket belongs to: the user of gpuagentd, as the socket unit made it. 0 · -errno. */
static int socket_owner(int listen_fd, uid_t *ret) {
        struct sockaddr_un address = {};
        socklen_t size = sizeof address - 1; /* so that a path always ends */
        struct stat st;

        if (getsockname(listen_fd, (struct sockaddr *) &address, &size) < 0)
                return -errno;
        if (address.sun_family != AF_UNIX || address.sun_path[0] == '\0')
                return -EINVAL;
        if (stat(address.sun_path, &st) < 0)
                return -errno;
        *ret = st.st_uid;
        return 0;
}

static int peer_accept(int listen_fd, int *ret_fd) {
        CLEANUP(fd_close) int fd = -1;
        struct ucred credentials;
        socklen_t size = sizeof credentials;
        uid_t owner;
        int r;

        fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
                return -errno;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0)
                return -errno;

        /* The mode of the socket says so too; a wrong chmod must not be enough. */
        if (credentials.uid != 0) {
                r = socket_owner(listen_fd, &owner);
                if (r < 0)
                        return r;
                if (credentials.uid != owner)
                        return -EACCES;
        }

        *ret_fd = take_fd(&fd);
        return 0;
}

/* Takes the descriptor over. 0 · -errno. */
static int peer_new(Service *service, int accepted_fd, Peer **ret) {
        CLEANUP(peer_free_ptr) Peer *peer = NULL;
        CLEANUP(fd_close) int fd = accepted_fd;
        sd_id128_t id;
        int r;

        peer = calloc(1, sizeof *peer);
        if (!peer)
                return -ENOMEM;
        peer->service = service;

        r = sd_id128_randomize(&id);
        if (r >= 0)
                r = sd_bus_new(&peer->bus);
        if (r >= 0)
                r = sd_bus_set_fd(peer->bus, fd, fd);
        if (r < 0)
                return r;
        (void) take_fd(&fd);

        r = sd_bus_set_server(peer->bus, 1, id);
        if (r >= 0)
                r = sd_bus_set_trusted(peer->bus, 1); /* peer_accept() looked who it is */
        if (r >= 0)
                r = sd_bus_add_object_vtable(
                                peer->bus, NULL, PROTOCOL_PATH, PROTOCOL_INTERFACE, service_vtable, peer);
        if (r >= 0)
                r = sd_bus_match_signal(peer->bus, NULL, NULL, "/org/freedesktop/DBus/Local",
                                "org.freedesktop.DBus.Local", "Disconnected", on_peer_disconnected, peer);
        if (r >= 0)
                r = sd_bus_start(peer->bus);
        if (r >= 0)
                r = sd_bus_set_close_on_exit(peer->bus, false); /* it would flush, and that could block */
        if (r >= 0)
                r = sd_bus_attach_event(peer->bus, service->event, SD_EVENT_PRIORITY_NORMAL);
        if (r < 0)
                return r;

        *ret = take_ptr(&peer);
        return 0;
}

static int on_connection(sd_event_source *source, int listen_fd, uint32_t events, void *userdata) {
        Service *service = userdata;
        Peer *peer;
        int fd, r;

        r = peer_accept(listen_fd, &fd);
        if (r == -EAGAIN || r == -ECONNABORTED)
                return 0;
        if (r < 0) {
                (void) log_errno(r, "Refused a connection");
                return 0;
        }
        if (service->n_peers >= PEERS_MAX) {
                fd_close(&fd);
                log_message(LOG_WARNING, "Refused a connection: there are %d already", PEERS_MAX);
                return 0;
        }

        r = peer_new(service, fd, &peer);
        if (r < 0) {
                (void) log_errno(r, "Cannot serve a connection");
                return 0;
        }
        peer->next = service->peers;
        service->peers = peer;
        service->n_peers++;
        return 0;
}

int service_new(sd_event *event, Queue *queue, Resumer *resumer, int listen_fd, Service **ret) {
        CLEANUP(service_free_ptr) Service *service = NULL;
        int r;

        service = calloc(1, sizeof *service);
        if (!service)
                return -ENOMEM;
        service->event = sd_event_ref(event);
        service->queue = queue;
        service->resumer = resumer;
        r = sd_event_add_io(event, &service->accept_source, listen_fd, EPOLLIN, on_connection, service);
        if (r >= 0) /* a connection that cannot be taken stays there, and must not keep us busy */
                r = sd_event_source_set_ratelimit(service->accept_source, USEC_PER_SEC, ACCEPTS_PER_SECOND);
        if (r < 0)
                return r;

        *ret = take_ptr(&service);
        return 0;
}

void service_stop(Service *service, void (*stopped)(void *userdata), void *userdata) {
        service->stopped = stopped;
        service->stopped_userdata = userdata;
        /* Who comes now is served by the next run of this service. */
        service->accept_source = sd_event_source_disable_unref(service->accept_source);
        if (service->peers)
                log_message(LOG_NOTICE,
                                "Stopping, but not until the handovers that are under way have ended");
        else
                stopped(userdata);
}

Service* service_free(Service *service) {
        if (!service)
                return NULL;
        while (service->peers) {
                Peer *peer = service->peers;

                service->peers = peer->next;
                peer_free(peer);
        }
        (void) sd_event_source_disable_unref(service->accept_source);
        (void) sd_event_unref(service->event);
        free(service);
        return NULL;
}
