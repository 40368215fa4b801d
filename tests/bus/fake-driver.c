/* SPDX-License-Identifier: MIT */
/* A driver service that does what a file says: fake-driver SOCKET SCRIPT LOG. The script is read anew at
 * every request, one setting a line:
 *
 *   gpus N                 how many there are (4)
 *   clique N               the clique of all of them (1)
 *   next N                 the clique they have after a reset
 *   delay MSEC             how long a reset takes (0)
 *   mode MODE              ok, missing, failed, unresponsive (errors of the protocol), stranger (an error of
 *                          nobody's), nonsense (a reply of another shape), hang (no reply), die (exit in
 * the middle)
 *   busy INDEX             a reset of this GPU is refused as in use
 *   broken INDEX           a reset of this GPU fails
 *   holder INDEX COMMAND
 *   leftover INDEX COMMAND a holder that is proven to be an ended tenant's
 *   raw INDEX              this GPU's name has an escape character in it
 *   mig INDEX              this GPU is in MIG mode
 *   check INDEX DETAIL     this GPU fails the site's checks; an INDEX of no GPU: there are checks, and all
 * pass
 *   quiesce TEXT           the monitoring does not stop, for this reason
 *   presence N             of every tenant (TENANT_UNKNOWN)
 *
 * Each request is appended to the log, with one line for each GPU where it changes something. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>
#include <systemd/sd-id128.h>

#include "agent/base/cleanup.h"
#include "agent/base/text.h"
#include "agent/driver/protocol.h"
#include "dbus/bus-util.h"

#define GPUS_MAX 1024U

typedef struct Script {
        unsigned n_gpus;
        unsigned clique, next_clique;
        unsigned delay_msec;
        unsigned presence;
        char mode[32];
        char quiesce[64];
        bool checks;
        bool busy[GPUS_MAX], broken[GPUS_MAX], raw[GPUS_MAX], mig[GPUS_MAX], leftover[GPUS_MAX];
        char holders[GPUS_MAX][sizeof(((GpuHolder *) NULL)->command)];
        char failed_checks[GPUS_MAX][32];
} Script;

static const char *script_path, *log_path;
static Script script;
static unsigned own_cliques[GPUS_MAX]; /* since a reset; 0: that of the script */
static bool ended[GPUS_MAX];           /* its leftover, while the script has it */

static void script_line(const char *line) {
        char word[32] = "", rest[64] = "";
        unsigned number = 0;

        (void) sscanf(line, "%31s %63[^\n]", word, rest);
        (void) sscanf(rest, "%u", &number);
        if (streq(word, "gpus"))
                script.n_gpus = number;
        else if (streq(word, "clique"))
                script.clique = number;
        else if (streq(word, "next"))
                script.next_clique = number;
        else if (streq(word, "delay"))
                script.delay_msec = number;
        else if (streq(word, "mode"))
                (void) snprintf(script.mode, sizeof script.mode, "%.31s", rest);
        else if (streq(word, "presence"))
                script.presence = number;
        else if (streq(word, "quiesce"))
                (void) snprintf(script.quiesce, sizeof script.quiesce, "%s", rest);
        else if (number >= GPUS_MAX)
                return;
        else if (streq(word, "busy"))
                script.busy[number] = true;
        else if (streq(word, "broken"))
                script.broken[number] = true;
        else if (streq(word, "raw"))
                script.raw[number] = true;
        else if (streq(word, "mig"))
                script.mig[number] = true;
        else if (streq(word, "check")) {
                script.checks = true;
                (void) sscanf(rest, "%*u %31[^\n]", script.failed_checks[number]);
        } else if (streq(word, "holder") || streq(word, "leftover")) {
                (void) sscanf(rest, "%*u %23[^\n]", script.holders[number]);
                script.leftover[number] = streq(word, "leftover");
        }
}

static void script_read(void) {
        CLEANUP(file_close) FILE *file = NULL;
        char line[128];

        script = (Script){ .n_gpus = 4, .clique = 1, .mode = "ok" };
        file = fopen(script_path, "re");
        while (file && fgets(line, sizeof line, file))
                script_line(line);
        for (size_t i = 0; i < GPUS_MAX; i++)
                ended[i] &= script.leftover[i];
}

static bool is_held(unsigned index) {
        return script.holders[index][0] != '\0' && !ended[index];
}

static void note(const char *what, const char *uuid) {
        CLEANUP(file_close) FILE *file = NULL;

        file = fopen(log_path, "ae");
        if (file)
                (void) fprintf(file, "%s %s\n", what, uuid);
}

static void uuid_format(unsigned index, char ret[static GPU_UUID_SIZE]) {
        (void) snprintf(ret, GPU_UUID_SIZE, "GPU-00000000-0000-4000-8000-%012x", index);
}

static int uuid_index(const char *uuid, unsigned *ret) {
        unsigned index;

        if (sscanf(uuid, "GPU-00000000-0000-4000-8000-%12x", &index) != 1 || index >= script.n_gpus)
                return -ENOENT;
        *ret = index;
        return 0;
}

static void sample_fill(unsigned index, GpuSample *ret) {
        gpu_sample_init(ret);
        uuid_format(index, ret->uuid);
        (void) snprintf(ret->bus_id, sizeof ret->bus_id, "00000000:%02X:%02X.0", index / 32, index % 32);
        (void) snprintf(ret->name, sizeof ret->name, "%sFake GB200", script.raw[index] ? "\033" : "");
        ret->index = ret->minor = index;
        ret->clique_id = own_cliques[index] > 0 ? own_cliques[index] : script.clique;
        (void) snprintf(ret->cluster_uuid, sizeof ret->cluster_uuid, "00000000-0000-4000-9000-000000000001");
        ret->fabric_state = FABRIC_COMPLETED;
        (void) snprintf(ret->fabric_status_text, sizeof ret->fabric_status_text, "Success");
        ret->fabric_health = FABRIC_HEALTH_HEALTHY;
        ret->n_links = ret->n_links_active = 18;
        for (uint32_t i = 0; i < ret->n_links; i++)
                ret->links[i] = (GpuLink){ .link = i, .active = true };
        ret->recovery_action = RECOVERY_NONE;
        ret->persistence = true;
        ret->checks = script.checks;
        ret->mig = script.mig[index];
        ret->n_processes = is_held(index);
        ret->memory_total = 192ULL << 30;
        ret->memory_used = 1ULL << 30;
        ret->utilization = 7;
        ret->power_mw = 123456;
        ret->temperature = 40;
}

static int answer_probe(sd_bus_message *msg, const unsigned *gpus, size_t n) {
        CLEANUP(message_unref_ptr) sd_bus_message *reply = NULL;
        CLEANUP(free_ptr) GpuSample *samples = NULL;
        int r;

        samples = calloc(n + 1, sizeof *samples);
        if (!samples)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                sample_fill(gpus[i], &samples[i]);
        r = sd_bus_message_new_method_return(msg, &reply);
        if (r >= 0)
                r = protocol_append_probe(reply, "999.1", samples, n);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int answer_reset(sd_bus_message *msg, const unsigned *gpus, size_t n) {
        CLEANUP(message_unref_ptr) sd_bus_message *reply = NULL;
        CLEANUP(free_ptr) GpuReset *resets = NULL;
        CLEANUP(free_ptr) GpuSample *looks = NULL;
        size_t n_looks = 0;
        int r;

        resets = calloc(n + 1, sizeof *resets);
        looks = calloc(n + 1, sizeof *looks);
        if (!resets || !looks)
                return -ENOMEM;
        (void) usleep(script.delay_msec * 1000);
        for (size_t i = 0; i < n; i++) {
                uuid_format(gpus[i], resets[i].uuid);
                resets[i].verdict = script.busy[gpus[i]] || (script.leftover[gpus[i]] && is_held(gpus[i]))
                                ? RESET_IN_USE
                                : script.broken[gpus[i]] ? RESET_FAILED
                                                         : RESET_DONE;
                if (resets[i].verdict == RESET_DONE) {
                        own_cliques[gpus[i]] = script.next_clique;
                        sample_fill(gpus[i], &looks[n_looks++]);
                }
                note("reset", resets[i].uuid);
        }
        r = sd_bus_message_new_method_return(msg, &reply);
        if (r >= 0)
                r = protocol_append_resets(reply, resets, n);
        if (r >= 0)
                r = protocol_append_samples(reply, looks, n_looks);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int answer_holders(sd_bus_message *msg, const unsigned *gpus, size_t n) {
        CLEANUP(message_unref_ptr) sd_bus_message *reply = NULL;
        CLEANUP(free_ptr) GpuHolder *holders = NULL;
        size_t n_holders = 0;
        int r;

        holders = calloc(n + 1, sizeof *holders);
        if (!holders)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                GpuHolder *holder = &holders[n_holders];

                if (!is_held(gpus[i]))
                        continue;
                *holder = (GpuHolder){
                        .pid = 1860, .start_time = 1, .uid = 1000, .user = "joe", .used_bytes = 4096
                };
                uuid_format(gpus[i], holder->uuid);
                (void) snprintf(holder->command, sizeof holder->command, "%s", script.holders[gpus[i]]);
                (void) snprintf(holder->where, sizeof holder->where, "unit session-3.scope");
                n_holders++;
        }
        r = sd_bus_message_new_method_return(msg, &reply);
        if (r >= 0)
                r = protocol_append_holders(reply, holders, n_holders);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int answer_checks(sd_bus_message *msg, const unsigned *gpus, size_t n) {
        CLEANUP(message_unref_ptr) sd_bus_message *reply = NULL;
        CLEANUP(free_ptr) GpuReset *checks = NULL;
        int r;

        checks = calloc(n + 1, sizeof *checks);
        if (!checks)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                const char *failed = script.failed_checks[gpus[i]];

                uuid_format(gpus[i], checks[i].uuid);
                checks[i].verdict = failed[0] != '\0' ? RESET_FAILED : RESET_DONE;
                (void) snprintf(checks[i].detail, sizeof checks[i].detail, "%s", failed);
        }
        r = sd_bus_message_new_method_return(msg, &reply);
        if (r >= 0)
                r = protocol_append_resets(reply, checks, n);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int answer_tenants(sd_bus_message *msg, char *const *tenants) {
        CLEANUP(message_unref_ptr) sd_bus_message *reply = NULL;
        CLEANUP(free_ptr) TenantSign *signs = NULL;
        size_t n = strv_length(tenants);
        int r;

        signs = calloc(n + 1, sizeof *signs);
        if (!signs)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                (void) snprintf(signs[i].tenant, sizeof signs[i].tenant, "%s", tenants[i]);
                signs[i].presence = script.presence;
        }
        r = sd_bus_message_new_method_return(msg, &reply);
        if (r >= 0)
                r = protocol_append_tenants(reply, signs, n);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int answer_failure(sd_bus_message *msg, const char *failure) {
        CLEANUP(message_unref_ptr) sd_bus_message *reply = NULL;
        int r;

        r = sd_bus_message_new_method_return(msg, &reply);
        if (r >= 0)
                r = protocol_append_failure(reply, failure);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int answer_by_mode(sd_bus_message *msg) {
        static const struct {
                const char *mode;
                const char *error;
        } errors[] = {
                { "missing", PROTOCOL_ERROR_MISSING },
                { "failed", PROTOCOL_ERROR_FAILED },
                { "unresponsive", PROTOCOL_ERROR_UNRESPONSIVE },
                { "stranger", SD_BUS_ERROR_NOT_SUPPORTED },
        };

        if (streq(script.mode, "die"))
                _exit(0);
        if (streq(script.mode, "hang"))
                return 1;
        if (streq(script.mode, "nonsense"))
                return sd_bus_reply_method_return(msg, "u", 7);
        for (size_t i = 0; i < ELEMENTSOF(errors); i++)
                if (streq(script.mode, errors[i].mode))
                        return sd_bus_reply_method_errorf(
                                        msg, errors[i].error, "by the script: %s", script.mode);
        return 0;
}

static int read_pairs(sd_bus_message *msg, unsigned *gpus, size_t *ret_n, sd_bus_error *error) {
        CLEANUP(free_ptr) GpuTenant *pairs = NULL;
        size_t n;
        int r;

        r = protocol_read_pairs(msg, &pairs, &n);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++)
                if (i >= GPUS_MAX || uuid_index(pairs[i].uuid, &gpus[i]) < 0)
                        return sd_bus_error_setf(
                                        error, PROTOCOL_ERROR_NO_SUCH_GPU, "no GPU %s", pairs[i].uuid);
        *ret_n = n;
        return 0;
}

static int on_pairs(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        const char *member = sd_bus_message_get_member(msg);
        CLEANUP(free_ptr) unsigned *gpus = NULL;
        size_t n = 0;
        int r;

        script_read();
        note(member, "");
        r = answer_by_mode(msg);
        if (r != 0)
                return r;
        gpus = calloc(GPUS_MAX, sizeof *gpus);
        if (!gpus)
                return -ENOMEM;
        r = read_pairs(msg, gpus, &n, error);
        if (r < 0)
                return r;

        if (streq(member, "Checks"))
                return answer_checks(msg, gpus, n);
        for (size_t i = 0; i < n; i++)
                ended[gpus[i]] = script.leftover[gpus[i]];
        return answer_holders(msg, gpus, n);
}

static int on_other(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        const char *member = sd_bus_message_get_member(msg);
        CLEANUP(strv_free_ptr) char **tenants = NULL;
        int r;

        script_read();
        note(member, "");
        r = answer_by_mode(msg);
        if (r != 0)
                return r;
        if (!streq(member, "Tenants"))
                return answer_failure(msg, streq(member, "Quiesce") ? script.quiesce : "");
        r = sd_bus_message_read_strv(msg, &tenants);
        return r < 0 ? r : answer_tenants(msg, tenants);
}

static int on_method(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        CLEANUP(strv_free_ptr) char **uuids = NULL;
        CLEANUP(free_ptr) unsigned *gpus = NULL;
        const char *member = sd_bus_message_get_member(msg);
        size_t n = 0;
        int r;

        script_read();
        note(member, "");
        r = answer_by_mode(msg);
        if (r != 0)
                return r;

        r = sd_bus_message_read_strv(msg, &uuids);
        if (r < 0)
                return r;
        gpus = calloc(GPUS_MAX, sizeof *gpus);
        if (!gpus)
                return -ENOMEM;
        STRV_FOREACH (uuid, uuids) {
                if (n >= GPUS_MAX || uuid_index(*uuid, &gpus[n]) < 0)
                        return sd_bus_error_setf(error, PROTOCOL_ERROR_NO_SUCH_GPU, "no GPU %s", *uuid);
                n++;
        }
        if (n == 0)
                for (; n < script.n_gpus; n++)
                        gpus[n] = (unsigned) n;

        if (streq(member, "Probe"))
                return answer_probe(msg, gpus, n);
        if (streq(member, "Reset"))
                return answer_reset(msg, gpus, n);
        return answer_holders(msg, gpus, n);
}

static const sd_bus_vtable driver_vtable[] = { SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Probe", "ast", "saa{sv}", on_method, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Reset", "ast", "a(sus)aa{sv}", on_method, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Holders", "ast", "a(sutussst)", on_method, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Leftovers", "a(ss)t", "a(sutussst)", on_pairs, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Checks", "a(ss)t", "a(sus)", on_pairs, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Quiesce", "t", "s", on_other, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Resume", "t", "s", on_other, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Tenants", "ast", "a(su)", on_other, SD_BUS_VTABLE_UNPRIVILEGED), SD_BUS_VTABLE_END };

/* One peer at a time; a new one takes the place of the last. */
static sd_bus *peer;

static int on_connection(sd_event_source *source, int listen_fd, uint32_t revents, void *userdata) {
        sd_id128_t id;
        int fd;

        fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
                return 0;
        if (peer)
                (void) sd_bus_detach_event(peer);
        peer = sd_bus_close_unref(peer);
        if (sd_bus_new(&peer) < 0 || sd_id128_randomize(&id) < 0 || sd_bus_set_fd(peer, fd, fd) < 0 ||
                        sd_bus_set_server(peer, 1, id) < 0 || sd_bus_start(peer) < 0 ||
                        sd_bus_add_object_vtable(peer, NULL, PROTOCOL_PATH, PROTOCOL_INTERFACE,
                                        driver_vtable, NULL) < 0 ||
                        sd_bus_attach_event(peer, sd_event_source_get_event(source), 0) < 0)
                peer = sd_bus_close_unref(peer); /* one that only looked whether we listen is gone already */
        return 0;
}

int main(int argc, char **argv) {
        CLEANUP(event_unref_ptr) sd_event *event = NULL;
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd;

        if (argc != 4 || strlen(argv[1]) >= sizeof address.sun_path)
                return 2;
        script_path = argv[2];
        log_path = argv[3];

        (void) snprintf(address.sun_path, sizeof address.sun_path, "%s", argv[1]);
        (void) unlink(argv[1]);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || bind(fd, (const struct sockaddr *) &address, sizeof address) < 0 || listen(fd, 16) < 0)
                return EXIT_FAILURE;
        /* gpuagentd runs as another user here, and the real socket is its own. */
        if (chmod(argv[1], 0666) < 0)
                return EXIT_FAILURE;

        if (sd_event_default(&event) < 0 ||
                        sd_event_add_io(event, NULL, fd, EPOLLIN, on_connection, NULL) < 0)
                return EXIT_FAILURE;
        (void) sd_event_loop(event);
        return EXIT_SUCCESS;
}
