/* SPDX-License-Identifier: MIT */
/* A message bus of its own with the shipped policy, gpuagentd as its user on it, and a driver that follows a
 * script. It takes root: the users and groups that the policy names are bound over /etc in a private mount
 * namespace. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>

#include "dbus/bus-api.h"
#include "dbus/bus-error.h"
#include "dbus/bus-util.h"

#define MANAGER       BUS_PATH, BUS_MANAGER_INTERFACE
#define GPU_UUID(hex) "GPU-00000000-0000-4000-8000-00000000000" hex
#define GPU_PATH(hex) BUS_GPU_PATH "/GPU_00000000_0000_4000_8000_00000000000" hex

#define NOBODY_UID 65534
#define AGENT_UID  64001
#define ADMIN_GID  64002

#define EXIT_SKIPPED 77

typedef struct Fixture {
        char dir[32];
        pid_t bus, driver, agent;
        sd_bus *root, *admin, *nobody; /* three callers; admin is nobody with the group gpuagent-admin */
} Fixture;

/* cmocka's group setup and teardown. */
int bus_fixture_setup(void **state);
int bus_fixture_teardown(void **state);

/* Skips with exit code 77 where this cannot run; else runs main's tests. */
void bus_fixture_require(void);

/* cmocka's test setup: the driver does as usual again, and all GPUs are reset. */
int bus_fixture_calm(void **state);

/* What the driver does from now on, and the configuration that the next reload finds. */
void fixture_script(const Fixture *f, const char *text);
void fixture_config(const Fixture *f, const char *text);

/* Requests to the driver and GPUs of resets so far, by the words at the start of their lines ("reset",
 * "Probe"). */
unsigned fixture_count(const Fixture *f, const char *words);

/* Starts (again) what setup started, stops it with a signal and waits for its end. The bus comes with its
 * three callers. */
void fixture_start_bus(Fixture *f);
void fixture_stop_bus(Fixture *f);
void fixture_start_driver(Fixture *f);
void fixture_start_agent(Fixture *f);
void fixture_spawn_agent(Fixture *f); /* without waiting for its name */
void fixture_stop(pid_t *pid, int signal_number);
void fixture_stop_agent(Fixture *f, int signal_number); /* until its name is gone, too */

/* A connection as this user; the group 0 for none. */
sd_bus* fixture_connect(const Fixture *f, uid_t uid, gid_t group);

/* A connection to the private socket as this user. 0 and *ret · -errno. */
int fixture_connect_private(const Fixture *f, uid_t uid, sd_bus **ret);

/* Calls, and holds that it fails with this error, or (NULL) does not fail. The arguments as in
 * sd_bus_message_append(3). */
void fixture_expect(sd_bus *bus, const char *path, const char *interface, const char *member,
                const char *error_name, const char *types, ...);

/* The same, with the message of the error; to be freed. */
char* fixture_expect_message(sd_bus *bus, const char *path, const char *interface, const char *member,
                const char *error_name, const char *types, ...);

/* Properties, read by nobody. */
char* fixture_text(const Fixture *f, const char *path, const char *interface, const char *property);
uint64_t fixture_number(
                const Fixture *f, const char *path, const char *interface, const char *property, char type);

/* The verified resets of all GPUs. */
uint64_t fixture_resets(const Fixture *f);

/* Whether the name is on the bus. */
bool fixture_has_name(const Fixture *f);

/* Open file descriptors of the agent. */
unsigned fixture_descriptors(const Fixture *f);

/* The same, with no work under way for which it would have a connection to the driver service. */
unsigned fixture_descriptors_at_rest(const Fixture *f);

/* Waits up to ten seconds for a condition. */
#define wait_until(condition)                                    \
        do {                                                     \
                unsigned _tries = 0;                             \
                bool _met;                                       \
                while (!(_met = (condition)) && ++_tries < 1000) \
                        (void) usleep(10000);                    \
                assert_true(_met);                               \
        } while (0)
