/* SPDX-License-Identifier: MIT */
/* The least that a client of the agent can be: connect to the system bus, one call, done. */
#include <stdio.h>
#include <string.h>
#include <systemd/sd-bus.h>

int main(void) {
        sd_bus_message *reply = NULL;
        sd_bus *bus = NULL;
        int r;

        r = sd_bus_open_system(&bus);
        if (r >= 0)
                r = sd_bus_call_method(bus, "org.gpuagent1", "/org/gpuagent1", "org.gpuagent1.Manager",
                                "ListGPUs", NULL, &reply, "");
        sd_bus_message_unref(reply);
        sd_bus_flush_close_unref(bus);
        if (r < 0)
                (void) fprintf(stderr, "bare-client: %s\n", strerror(-r));
        return r < 0;
}
