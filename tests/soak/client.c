/* SPDX-License-Identifier: MIT */
/* A client that many calls come from, over the private socket:
 *
 *     client watch        reads all of the tray's properties, 50 times a second, until SIGTERM; then prints
 *                         how often, how often it took over 50 ms, and the longest in milliseconds
 *     client flood N M    N resets of one GPU each, of M, at once, for a tenant each; then prints how many
 *                         succeeded, and how many failed
 *     client leave N M    the same, and is gone without an answer
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/base/clock.h"
#include "agent/base/parse.h"
#include "agent/base/text.h"

#define PRIVATE_ADDRESS "unix:path=/run/gpuagent/private"
#define OBJECT          "/org/gpuagent1"
#define INTERFACE       "org.gpuagent1.Manager"
#define PAUSE_USEC      (20 * USEC_PER_MSEC)
#define LONG_USEC       (50 * USEC_PER_MSEC)
#define WAIT_USEC       (600 * USEC_PER_SEC)
#define CALLS_MAX       100000

typedef struct Flood {
        uint32_t succeeded, failed;
} Flood;

DEFINE_CLEANUP(sd_bus, bus_close_ptr, sd_bus_flush_close_unref)

static volatile sig_atomic_t ended;

static void on_term(int signal) {
        ended = signal;
}

static int connect_private(sd_bus **ret) {
        CLEANUP(bus_close_ptr) sd_bus *bus = NULL;
        int r;

        r = sd_bus_new(&bus);
        if (r >= 0)
                r = sd_bus_set_address(bus, PRIVATE_ADDRESS);
        if (r >= 0)
                r = sd_bus_start(bus);
        if (r < 0)
                return r;
        *ret = take_ptr(&bus);
        return 0;
}

static int watch(sd_bus *bus) {
        usec_t longest = 0;
        uint32_t n = 0, n_long = 0;
        int r = 0;

        (void) signal(SIGTERM, on_term);
        while (!ended && r >= 0) {
                usec_t start = now_monotonic_usec(), took;
                sd_bus_message *reply = NULL;

                r = sd_bus_call_method(bus, NULL, OBJECT, "org.freedesktop.DBus.Properties", "GetAll", NULL,
                                &reply, "s", INTERFACE);
                sd_bus_message_unref(reply);
                took = now_monotonic_usec() - start;
                if (r < 0 && ended)
                        break; /* the signal came in the middle of it */
                n++;
                if (took > LONG_USEC)
                        n_long++;
                if (took > longest)
                        longest = took;
                (void) usleep(PAUSE_USEC);
        }
        (void) printf("%u %u %u\n", n, n_long, (unsigned) (longest / USEC_PER_MSEC));
        return ended ? 0 : r;
}

static int on_reset_answered(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        Flood *flood = userdata;

        (void) error;
        if (sd_bus_message_is_method_error(reply, NULL))
                flood->failed++;
        else
                flood->succeeded++;
        return 0;
}

static int send_reset(sd_bus *bus, uint32_t i, uint32_t n_gpus, const char *kind, Flood *flood) {
        sd_bus_message *call = NULL;
        char gpu[16], tenant[32];
        int r;

        (void) snprintf(gpu, sizeof gpu, "%u", i % n_gpus);
        (void) snprintf(tenant, sizeof tenant, "%s/%u", kind, i);
        r = sd_bus_message_new_method_call(bus, &call, NULL, OBJECT, INTERFACE, "Reset");
        if (r >= 0)
                r = sd_bus_message_append(call, "asa{sv}", 1, gpu, 1, "tenant", "s", tenant);
        if (r >= 0)
                r = sd_bus_call_async(bus, NULL, call, on_reset_answered, flood, WAIT_USEC);
        sd_bus_message_unref(call);
        return r;
}

static int flood(sd_bus *bus, uint32_t n, uint32_t n_gpus, const char *kind) {
        Flood counts = {};
        int r = 0;

        for (uint32_t i = 0; i < n && r >= 0; i++)
                r = send_reset(bus, i, n_gpus, kind, &counts);
        if (r >= 0)
                r = sd_bus_flush(bus);
        if (streq(kind, "leave"))
                _exit(r < 0); /* not even a goodbye */

        while (r >= 0 && counts.succeeded + counts.failed < n) {
                r = sd_bus_process(bus, NULL);
                if (r == 0)
                        r = sd_bus_wait(bus, WAIT_USEC);
        }
        (void) printf("%u %u\n", counts.succeeded, counts.failed);
        return r;
}

int main(int argc, char **argv) {
        CLEANUP(bus_close_ptr) sd_bus *bus = NULL;
        const char *verb = argc > 1 ? argv[1] : "";
        uint32_t n = 0, n_gpus = 0;
        int r;

        if (streq(verb, "watch") ? argc != 2
                                 : argc != 4 || (!streq(verb, "flood") && !streq(verb, "leave")) ||
                                                        parse_u32(argv[2], CALLS_MAX, &n) < 0 ||
                                                        parse_u32(argv[3], CALLS_MAX, &n_gpus) < 0 ||
                                                        n_gpus == 0) {
                (void) fputs("Usage: client watch | flood N GPUS | leave N GPUS\n", stderr);
                return 2;
        }

        r = connect_private(&bus);
        if (r >= 0)
                r = streq(verb, "watch") ? watch(bus) : flood(bus, n, n_gpus, verb);
        if (r < 0)
                (void) fprintf(stderr, "client: %s\n", strerror(-r));
        return r < 0;
}
