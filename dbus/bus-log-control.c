/* SPDX-License-Identifier: MIT */
/* org.freedesktop.LogControl1 (`systemctl service-log-level`); the target cannot be changed.
 *
 * sd-bus knows two ways to let a property be set: by everyone, or by whom it takes for privileged, after a
 * synchronous question to the bus and a look at the caller's PID. So a filter takes these calls before, and
 * asks as for any method. */
#include <errno.h>

#include "agent/base/text.h"
#include "agent/log/log.h"
#include "dbus/bus-call.h"
#include "dbus/bus-objects.h"

#define LOG_CONTROL_INTERFACE "org.freedesktop.LogControl1"
#define LOG_CONTROL_PATH      "/org/freedesktop/LogControl1"

static int property_get_level(sd_bus *bus, const char *path, const char *interface, const char *property,
                sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append_basic(reply, 's', log_level_to_string(log_get_level()));
}

static int property_get_target(sd_bus *bus, const char *path, const char *interface, const char *property,
                sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append_basic(reply, 's', "journal");
}

static int property_get_identifier(sd_bus *bus, const char *path, const char *interface,
                const char *property, sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append_basic(reply, 's', "gpuagentd");
}

/* For introspection: the filter lets no call through to it. */
static int property_set_nothing(sd_bus *bus, const char *path, const char *interface, const char *property,
                sd_bus_message *value, void *userdata, sd_bus_error *error) {
        return -EACCES;
}

static int set_level(sd_bus_message *msg, const char *text, sd_bus_error *error) {
        int level;

        level = log_level_from_string(text);
        if (level < 0)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                                "The log levels are emerg, alert, crit, err, warning, notice, info, debug");
        log_set_level(level);
        return sd_bus_reply_method_return(msg, NULL);
}

static int on_message(sd_bus_message *msg, void *userdata, sd_bus_error *error) {
        CLEANUP(bus_call_free_ptr) BusCall *call = NULL;
        const char *interface, *property, *text;
        int r;

        if (sd_bus_message_is_method_call(msg, "org.freedesktop.DBus.Properties", "Set") <= 0 ||
                        !streq(sd_bus_message_get_path(msg), LOG_CONTROL_PATH))
                return 0;
        if (sd_bus_message_has_signature(msg, "ssv") <= 0 ||
                        sd_bus_message_read(msg, "ss", &interface, &property) <= 0 ||
                        !streq(interface, LOG_CONTROL_INTERFACE) ||
                        sd_bus_message_read(msg, "v", "s", &text) <= 0)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                                "There is no such property of type s to set");

        r = bus_authorize(userdata, msg, ACTION_MANAGE, &call, error);
        if (r <= 0)
                return r < 0 ? r : 1; /* 0: a question is out; the message comes round again */

        if (streq(property, "LogLevel"))
                return set_level(msg, text, error);
        if (!streq(property, "LogTarget"))
                return sd_bus_error_set(
                                error, SD_BUS_ERROR_INVALID_ARGS, "There is no such property to set");
        if (!streq(text, "journal") && !streq(text, "auto"))
                return sd_bus_error_set(error, SD_BUS_ERROR_NOT_SUPPORTED, "The log goes to the journal");
        return sd_bus_reply_method_return(msg, NULL);
}

static const sd_bus_vtable log_control_vtable[] = { SD_BUS_VTABLE_START(0),
        SD_BUS_WRITABLE_PROPERTY("LogLevel", "s", property_get_level, property_set_nothing, 0, 0),
        SD_BUS_WRITABLE_PROPERTY("LogTarget", "s", property_get_target, property_set_nothing, 0, 0),
        SD_BUS_PROPERTY("SyslogIdentifier", "s", property_get_identifier, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_VTABLE_END };

int bus_log_control_add(BusConnection *connection) {
        int r;

        r = sd_bus_add_object_vtable(connection->bus, NULL, LOG_CONTROL_PATH, LOG_CONTROL_INTERFACE,
                        log_control_vtable, connection);
        if (r >= 0)
                r = sd_bus_add_filter(connection->bus, NULL, on_message, connection);
        return r;
}
