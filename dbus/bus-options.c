/* SPDX-License-Identifier: MIT */
#include "dbus/bus-options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/array.h"
#include "agent/base/cleanup.h"
#include "agent/base/parse.h"
#include "agent/base/text.h"

/* The longest GPU id is a UUID. */
#define ID_LENGTH_MAX 64U

#define NAME_SHOWN_SIZE 64

static int malformed(sd_bus_error *error) {
        return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                        "The arguments do not have the method's signature");
}

int bus_ids_read(sd_bus_message *msg, const char ***ret, sd_bus_error *error) {
        CLEANUP(free_ptr) const char **ids = NULL;
        const char *id;
        size_t n = 0;
        int r;

        r = sd_bus_message_enter_container(msg, 'a', "s");
        if (r <= 0)
                return malformed(error);

        while ((r = sd_bus_message_read_basic(msg, 's', &id)) > 0) {
                if (n >= BUS_IDS_MAX)
                        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                        "More than %u GPUs are named", BUS_IDS_MAX);
                if (id[0] == '\0' || strlen(id) > ID_LENGTH_MAX)
                        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "%s is not a GPU id",
                                        id[0] == '\0' ? "An empty string" : "An overlong string");

                r = array_reserve(&ids, n, 2);
                if (r < 0)
                        return r;
                ids[n++] = id;
                ids[n] = NULL;
        }
        if (r < 0 || sd_bus_message_exit_container(msg) < 0)
                return malformed(error);

        *ret = take_ptr(&ids);
        return 0;
}

int bus_tenant_check(const char *tenant, sd_bus_error *error) {
        char shown[NAME_SHOWN_SIZE];

        if (tenant_is_valid(tenant))
                return 0;
        text_escape(tenant, shown, sizeof shown);
        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                        "\"%s\" is not a tenant (slurm/26.0, pod/UID …)", shown);
}

static int read_text(sd_bus_message *msg, const char **ret) {
        return sd_bus_message_read(msg, "v", "s", ret);
}

static int read_tenant(sd_bus_message *msg, BusOptions *options, sd_bus_error *error) {
        if (read_text(msg, &options->tenant) <= 0)
                return -EBADMSG;
        return bus_tenant_check(options->tenant, error);
}

static int read_identifier(sd_bus_message *msg, BusOptions *options, sd_bus_error *error) {
        if (read_text(msg, &options->identifier) <= 0)
                return -EBADMSG;
        if (!identifier_is_valid(options->identifier))
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                                "Option identifier is not a syslog identifier");
        return 0;
}

static int read_reason(sd_bus_message *msg, BusOptions *options, sd_bus_error *error) {
        const char *reason;

        if (read_text(msg, &reason) <= 0)
                return -EBADMSG;
        if (strlen(reason) >= sizeof options->reason)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "Option reason is too long");
        text_escape(reason, options->reason, sizeof options->reason);
        return 0;
}

static int read_timeout(sd_bus_message *msg, BusOptions *options, sd_bus_error *error) {
        if (sd_bus_message_read(msg, "v", "t", &options->timeout_usec) <= 0)
                return -EBADMSG;
        if (options->timeout_usec == 0)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "Option timeout-usec is 0");
        return 0;
}

static int read_boolean(sd_bus_message *msg, bool *ret) {
        int value;

        if (sd_bus_message_read(msg, "v", "b", &value) <= 0)
                return -EBADMSG;
        *ret = value;
        return 0;
}

static int read_wait(sd_bus_message *msg, BusOptions *options, sd_bus_error *error) {
        bool wait;
        int r;

        r = read_boolean(msg, &wait);
        if (r >= 0)
                options->no_wait = !wait;
        return r;
}

static int read_shared(sd_bus_message *msg, BusOptions *options, sd_bus_error *error) {
        return read_boolean(msg, &options->shared);
}

static int read_force(sd_bus_message *msg, BusOptions *options, sd_bus_error *error) {
        return read_boolean(msg, &options->force);
}

static int read_checks(sd_bus_message *msg, BusOptions *options, sd_bus_error *error) {
        return read_boolean(msg, &options->checks);
}

static int read_clique(sd_bus_message *msg, BusOptions *options, sd_bus_error *error) {
        if (sd_bus_message_read(msg, "v", "u", &options->clique) <= 0)
                return -EBADMSG;
        if (options->clique == UNKNOWN_U32)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "Option clique is too large");
        return 0;
}

static int read_from(sd_bus_message *msg, BusOptions *options, sd_bus_error *error) {
        static const uint32_t none[1];
        const void *numbers;
        size_t size;

        if (sd_bus_message_enter_container(msg, 'v', "au") <= 0 ||
                        sd_bus_message_read_array(msg, 'u', &numbers, &size) <= 0 ||
                        sd_bus_message_exit_container(msg) < 0)
                return -EBADMSG;
        options->from = size > 0 ? numbers : none;
        options->n_from = size / sizeof *options->from;
        return 0;
}

static const struct {
        const char *name;
        const char *type;
        int (*read)(sd_bus_message *msg, BusOptions *options, sd_bus_error *error);
} option_table[] = {
        { "tenant", "s", read_tenant },
        { "identifier", "s", read_identifier },
        { "reason", "s", read_reason },
        { "timeout-usec", "t", read_timeout },
        { "wait", "b", read_wait },
        { "shared", "b", read_shared },
        { "force", "b", read_force },
        { "checks", "b", read_checks },
        { "clique", "u", read_clique },
        { "from", "au", read_from },
};

static int read_option(sd_bus_message *msg, const char *name, uint32_t *seen, BusOptions *options,
                sd_bus_error *error) {
        char shown[NAME_SHOWN_SIZE];
        int r;

        for (size_t i = 0; i < ELEMENTSOF(option_table); i++) {
                if (!streq(name, option_table[i].name))
                        continue;
                if (*seen & 1U << i)
                        return sd_bus_error_setf(
                                        error, SD_BUS_ERROR_INVALID_ARGS, "Option %s is given twice", name);
                *seen |= 1U << i;

                r = option_table[i].read(msg, options, error);
                if (r == -EBADMSG)
                        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                        "Option %s is not of type %s", name, option_table[i].type);
                return r;
        }

        text_escape(name, shown, sizeof shown);
        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "There is no option \"%s\"", shown);
}

int bus_options_read(sd_bus_message *msg, BusOptions *ret, sd_bus_error *error) {
        BusOptions options = { .clique = UNKNOWN_U32 };
        uint32_t seen = 0;
        const char *name;
        int r;

        r = sd_bus_message_enter_container(msg, 'a', "{sv}");
        if (r <= 0)
                return malformed(error);

        while ((r = sd_bus_message_enter_container(msg, 'e', "sv")) > 0) {
                if (sd_bus_message_read_basic(msg, 's', &name) <= 0)
                        return malformed(error);
                r = read_option(msg, name, &seen, &options, error);
                if (r < 0)
                        return r;
                if (sd_bus_message_exit_container(msg) < 0)
                        return malformed(error);
        }
        if (r < 0 || sd_bus_message_exit_container(msg) < 0 || sd_bus_message_at_end(msg, true) <= 0)
                return malformed(error);

        *ret = options;
        return 0;
}

int bus_options_check(const BusOptions *options, uint32_t fit, sd_bus_error *error) {
        const struct {
                const char *name;
                BusOptionFlag flag;
                bool given;
        } special[] = {
                { "shared", BUS_OPTION_SHARED, options->shared },
                { "force", BUS_OPTION_FORCE, options->force },
                { "checks", BUS_OPTION_CHECKS, options->checks },
                { "clique", BUS_OPTION_CLIQUE, options->clique != UNKNOWN_U32 },
                { "from", BUS_OPTION_FROM, options->from },
        };

        for (size_t i = 0; i < ELEMENTSOF(special); i++)
                if (special[i].given && !(fit & special[i].flag))
                        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                        "Option %s is not for this method", special[i].name);
        return 0;
}
