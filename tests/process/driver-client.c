/* SPDX-License-Identifier: MIT */
/* Asks gpuagent-driver one thing, for tests: driver-client SOCKET VERB SECONDS [WORD…]. The words of
 * probe, reset and holders are UUIDs, of leftovers and checks UUID=TENANT, of tenants tenants; of hold, a
 * command that is executed with monitoring stopped, before the connection is closed without a word. Prints
 * one line a GPU, holder or tenant; an error as its last word and message, with exit status 1. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/base/text.h"
#include "agent/driver/protocol.h"

DEFINE_CLEANUP(sd_bus, bus_close_ptr, sd_bus_close_unref)
DEFINE_CLEANUP(sd_bus_message, message_unref_ptr, sd_bus_message_unref)

static void print_samples(const GpuSample *samples, size_t n) {
        char action[32];

        for (size_t i = 0; i < n; i++) {
                const GpuSample *s = &samples[i];

                recovery_action_format(s->recovery_action, action, sizeof action);
                (void) printf("%u %s %s minor=%u clique=%u cluster=%s fabric=%s/%u links=%u/%u action=%s "
                              "processes=%u "
                              "partition=%u/%s/%u used=%" PRIu64 " lost=%d error=%s\n",
                                s->index, s->uuid, s->bus_id, s->minor, s->clique_id, s->cluster_uuid,
                                fabric_state_to_string(s->fabric_state), s->fabric_status, s->n_links_active,
                                s->n_links, action, s->n_processes, s->partition, s->partition_name,
                                s->partition_clique, s->memory_used, s->lost, s->error);
        }
}

static int print_probe(sd_bus_message *reply) {
        CLEANUP(free_ptr) GpuSample *samples = NULL;
        char version[DRIVER_VERSION_SIZE];
        size_t n;
        int r;

        r = protocol_read_probe(reply, version, &samples, &n);
        if (r < 0)
                return r;
        (void) printf("driver %s\n", version);
        print_samples(samples, n);
        return 0;
}

static int print_resets(sd_bus_message *reply) {
        CLEANUP(free_ptr) GpuReset *resets = NULL;
        size_t n;
        int r;

        r = protocol_read_resets(reply, &resets, &n);
        for (size_t i = 0; r >= 0 && i < n; i++)
                (void) printf("%s %s %s\n", resets[i].uuid, reset_verdict_to_string(resets[i].verdict),
                                resets[i].detail);
        return r;
}

static int print_looks(sd_bus_message *reply) {
        CLEANUP(free_ptr) GpuSample *samples = NULL;
        size_t n;
        int r;

        r = print_resets(reply);
        if (r >= 0)
                r = protocol_read_samples(reply, &samples, &n);
        if (r >= 0)
                print_samples(samples, n);
        return r;
}

static int print_holders(sd_bus_message *reply) {
        CLEANUP(free_ptr) GpuHolder *holders = NULL;
        char text[256];
        size_t n;
        int r;

        r = protocol_read_holders(reply, &holders, &n);
        for (size_t i = 0; r >= 0 && i < n; i++) {
                gpu_holder_format(&holders[i], text, sizeof text);
                (void) printf("%s %s start=%" PRIu64 " used=%" PRIu64 "\n", holders[i].uuid, text,
                                holders[i].start_time, holders[i].used_bytes);
        }
        return r;
}

static int print_tenants(sd_bus_message *reply) {
        static const char *const names[_TENANT_PRESENCE_MAX] = { "unknown", "alive", "no-sign" };
        CLEANUP(free_ptr) TenantSign *signs = NULL;
        size_t n;
        int r;

        r = protocol_read_tenants(reply, &signs, &n);
        for (size_t i = 0; r >= 0 && i < n; i++)
                (void) printf("%s %s\n", signs[i].tenant, names[signs[i].presence]);
        return r;
}

static int print_failure(sd_bus_message *reply) {
        char failure[FAILURE_SIZE];
        int r;

        r = protocol_read_failure(reply, failure);
        if (r >= 0 && failure[0])
                (void) printf("failure: %s\n", failure);
        return r;
}

static int append_words(sd_bus_message *call, char *const *words, usec_t timeout_usec) {
        return protocol_append_request(call, words, timeout_usec);
}

static int append_pairs(sd_bus_message *call, char *const *words, usec_t timeout_usec) {
        CLEANUP(strv_free_ptr) char **uuids = NULL, **tenants = NULL;

        for (; *words; words++) {
                char *equals = strchr(*words, '=');

                if (!equals)
                        return -EINVAL;
                *equals = '\0';
                if (strv_append(&uuids, *words) < 0 || strv_append(&tenants, equals + 1) < 0)
                        return -ENOMEM;
        }
        return protocol_append_request_pairs(call, uuids, tenants, timeout_usec);
}

static int append_time(sd_bus_message *call, char *const *words, usec_t timeout_usec) {
        return protocol_append_request_timeout(call, timeout_usec);
}

static const struct {
        const char *verb;
        const char *method;
        int (*append)(sd_bus_message *call, char *const *words, usec_t timeout_usec);
        int (*print)(sd_bus_message *reply);
} verbs[] = {
        { "probe", "Probe", append_words, print_probe },
        { "reset", "Reset", append_words, print_looks },
        { "holders", "Holders", append_words, print_holders },
        { "leftovers", "Leftovers", append_pairs, print_holders },
        { "quiesce", "Quiesce", append_time, print_failure },
        { "hold", "Quiesce", append_time, print_failure },
        { "resume", "Resume", append_time, print_failure },
        { "checks", "Checks", append_pairs, print_resets },
        { "tenants", "Tenants", append_words, print_tenants },
};

/* What happens while the connection lives on. */
static int execute(char *const *words) {
        int status;
        pid_t pid;

        (void) fflush(stdout);
        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0) {
                (void) execvp(words[0], words);
                _exit(EXIT_FAILURE);
        }
        return waitpid(pid, &status, 0) < 0 ? -errno : 0;
}

static int ask(const char *socket, size_t verb, char *const *words, usec_t timeout_usec,
                sd_bus_error *error) {
        CLEANUP(message_unref_ptr) sd_bus_message *call = NULL, *reply = NULL;
        CLEANUP(bus_close_ptr) sd_bus *bus = NULL;
        CLEANUP(free_ptr) char *address = NULL;
        int r;

        if (asprintf(&address, "unix:path=%s", socket) < 0)
                return -ENOMEM;
        r = sd_bus_new(&bus);
        if (r >= 0)
                r = sd_bus_set_address(bus, address);
        if (r >= 0)
                r = sd_bus_start(bus);
        if (r >= 0)
                r = sd_bus_message_new_method_call(
                                bus, &call, NULL, PROTOCOL_PATH, PROTOCOL_INTERFACE, verbs[verb].method);
        if (r >= 0)
                r = verbs[verb].append(call, words, timeout_usec);
        if (r >= 0)
                r = sd_bus_call(bus, call, timeout_usec + 10 * USEC_PER_SEC, error, &reply);
        if (r >= 0)
                r = verbs[verb].print(reply);
        if (r >= 0 && streq(verbs[verb].verb, "hold") && *words)
                r = execute(words);
        return r;
}

int main(int argc, char *argv[]) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        usec_t timeout_usec;
        int r;

        if (argc < 4 || parse_duration(argv[3], &timeout_usec) < 0)
                return 2;
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++) {
                if (!streq(argv[2], verbs[i].verb))
                        continue;
                r = ask(argv[1], i, argv + 4, timeout_usec, &error);
                if (r < 0) {
                        const char *name = error.name ? strrchr(error.name, '.') : NULL;

                        (void) printf("%s: %s\n", name ? name + 1 : "error", error.message ?: strerror(-r));
                }
                sd_bus_error_free(&error);
                return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
        }
        return 2;
}
