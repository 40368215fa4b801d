/* SPDX-License-Identifier: MIT */
#include "dbus/unit-watch.h"

#include <string.h>

#include "agent/base/text.h"
#include "dbus/bus-util.h"

#define SYSTEMD_NAME      "org.freedesktop.systemd1"
#define SYSTEMD_PATH      "/org/freedesktop/systemd1"
#define SYSTEMD_INTERFACE "org.freedesktop.systemd1.Manager"

/* An id of a container, as all engines make them. */
#define ID_LENGTH 64

/* "kubepods-burstable-pod<uid>.slice", "libpod-<id>.scope"; whose it is the look finds out. */
static bool unit_may_be_tenant(const char *name) {
        const char *dot = strrchr(name, '.');

        return dot &&
                        ((streq(dot, ".slice") && strstr(name, "-pod")) ||
                                        (streq(dot, ".scope") && dot - name > ID_LENGTH));
}

static int on_unit_removed(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        Manager *manager = userdata;
        const char *name;

        if (sd_bus_message_read(msg, "s", &name) > 0 && unit_may_be_tenant(name))
                manager_look_for_tenants(manager, now_read());
        return 0;
}

static int on_answer(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        return 0;
}

void unit_watch_start(sd_bus *bus, Manager *manager) {
        CLEANUP(message_unref_ptr) sd_bus_message *msg = NULL;
        int r;

        r = sd_bus_match_signal_async(bus, NULL, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_INTERFACE,
                        "UnitRemoved", on_unit_removed, on_answer, manager);
        if (r >= 0)
                r = sd_bus_message_new_method_call(
                                bus, &msg, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_INTERFACE, "Subscribe");
        if (r >= 0)
                r = sd_bus_message_set_auto_start(msg, false);
        if (r >= 0)
                (void) sd_bus_call_async(bus, NULL, msg, on_answer, NULL, 0);
}
