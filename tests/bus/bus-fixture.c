/* SPDX-License-Identifier: MIT */
#include "tests/bus/bus-fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/io.h"
#include "agent/base/text.h"

#define DEFAULT_CONFIG                                                                            \
        "driver: {poll-interval: 1h, probe-timeout: 1s, reset-timeout: 5s, fabric-timeout: 1s}\n" \
        "handover: {busy-grace: 0s}\n"

/* What dbus-daemon's own system.conf says, without its users and files; then the shipped policy. */
static const char bus_config[] =
                "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\"\n"
                " \"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\n"
                "<busconfig><type>system</type><listen>unix:path=%s/bus</listen><auth>EXTERNAL</auth>\n"
                "<policy context=\"default\"><allow user=\"*\"/><deny own=\"*\"/><deny "
                "send_type=\"method_call\"/>\n"
                "<allow send_type=\"signal\"/><allow send_requested_reply=\"true\" "
                "send_type=\"method_return\"/>\n"
                "<allow send_requested_reply=\"true\" send_type=\"error\"/><allow "
                "receive_type=\"method_call\"/>\n"
                "<allow receive_type=\"method_return\"/><allow receive_type=\"error\"/><allow "
                "receive_type=\"signal\"/>\n"
                "<allow send_destination=\"org.freedesktop.DBus\" "
                "send_interface=\"org.freedesktop.DBus\"/>\n"
                "<allow send_destination=\"org.freedesktop.PolicyKit1\"/></policy>\n"
                "<policy user=\"root\"><allow own=\"org.freedesktop.PolicyKit1\"/></policy>\n"
                "<include>" POLICY "</include></busconfig>\n";

static void write_file(const char *dir, const char *name, const char *text) {
        CLEANUP(free_ptr) char *path = NULL;

        assert_true(asprintf(&path, "%s/%s", dir, name) > 0);
        assert_int_equal(file_write_atomic(path, text, strlen(text), 0644), 0);
}

void fixture_script(const Fixture *f, const char *text) {
        write_file(f->dir, "script", text);
}

void fixture_config(const Fixture *f, const char *text) {
        write_file(f->dir, "config.yaml", text);
}

/* The users and groups of this system, and ours. */
static void bind_users(const char *dir) {
        static const struct {
                const char *name, *path, *lines;
        } files[] = {
                { "passwd", "/etc/passwd", "gpuagent:x:64001:64001::/:/usr/sbin/nologin\n" },
                { "group", "/etc/group", "gpuagent:x:64001:\ngpuagent-admin:x:64002:\n" },
        };

        for (size_t i = 0; i < ELEMENTSOF(files); i++) {
                CLEANUP(free_ptr) char *old = NULL, *new = NULL, *path = NULL;

                assert_int_equal(file_read(AT_FDCWD, files[i].path, 1 << 20, &old, NULL), 0);
                /* Ours first: the first line of a name counts. */
                assert_true(asprintf(&new, "%s%s", files[i].lines, old) > 0);
                write_file(dir, files[i].name, new);
                assert_true(asprintf(&path, "%s/%s", dir, files[i].name) > 0);
                assert_int_equal(mount(path, files[i].path, NULL, MS_BIND, NULL), 0);
        }
}

static pid_t spawn(const Fixture *f, uid_t uid, char *const *argv) {
        CLEANUP(free_ptr) char *log = NULL;
        int fd, program;
        pid_t pid;

        assert_true(asprintf(&log, "%s/output", f->dir) > 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid > 0)
                return pid;

        fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);
        if (fd < 0 || dup2(fd, STDERR_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0)
                _exit(126);
        /* It is built in somebody's home, as often as not, where the agent's user cannot get. */
        program = open(argv[0], O_PATH | O_CLOEXEC);
        if (uid != 0 && (setgroups(0, NULL) < 0 || setgid(uid) < 0 || setuid(uid) < 0))
                _exit(126);
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of the user would take it back */
        (void) fexecve(program, argv, environ);
        _exit(127);
}

void fixture_stop(pid_t *pid, int signal_number) {
        if (*pid <= 0)
                return;
        assert_int_equal(kill(*pid, signal_number), 0);
        assert_int_equal(waitpid(*pid, NULL, 0), *pid);
        *pid = 0;
}

/* A bus that is busy may name the old one still when the next is asked for. */
void fixture_stop_agent(Fixture *f, int signal_number) {
        fixture_stop(&f->agent, signal_number);
        wait_until(!fixture_has_name(f));
}

/* Somebody listens, and has not merely made the socket. */
static bool socket_is_there(const Fixture *f, const char *name) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        CLEANUP(fd_close) int fd = -1;

        (void) snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", f->dir, name);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_true(fd >= 0);
        return connect(fd, (const struct sockaddr *) &address, sizeof address) == 0;
}

void fixture_stop_bus(Fixture *f) {
        CLEANUP(free_ptr) char *path = NULL;

        f->root = sd_bus_close_unref(f->root);
        f->admin = sd_bus_close_unref(f->admin);
        f->nobody = sd_bus_close_unref(f->nobody);
        fixture_stop(&f->bus, SIGKILL);
        assert_true(asprintf(&path, "%s/bus", f->dir) > 0);
        assert_int_equal(unlink(path), 0);
}

/* dbus-broker takes its socket from systemd and logs to the journal. Where there is none, nobody reads it
 * here. */
static pid_t spawn_broker(const Fixture *f, char *option) {
        static const struct sockaddr_un journal = { AF_UNIX, "/run/systemd/journal/socket" };
        CLEANUP(free_ptr) char *address = NULL;

        if (access(journal.sun_path, F_OK) < 0) {
                int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0); /* for as long as we live */

                assert_int_equal(mount("tmpfs", "/run", "tmpfs", 0, NULL), 0);
                assert_int_equal(mkdir("/run/systemd", 0755), 0);
                assert_int_equal(mkdir("/run/systemd/journal", 0755), 0);
                assert_int_equal(bind(fd, (const struct sockaddr *) &journal, sizeof journal), 0);
        }
        assert_true(asprintf(&address, "--listen=%s/bus", f->dir) > 0);
        return spawn(f, 0,
                        (char *[]){ (char *) SOCKET_ACTIVATE, address,
                                        (char *) "--setenv=DBUS_SYSTEM_BUS_ADDRESS",
                                        (char *) "--fdname=dbus.socket", (char *) DBUS_BROKER,
                                        (char *) "--scope=system", option, NULL });
}

void fixture_start_bus(Fixture *f) {
        CLEANUP(free_ptr) char *config = NULL, *option = NULL, *socket = NULL;

        assert_true(asprintf(&config, bus_config, f->dir) > 0);
        assert_true(asprintf(&socket, "%s/bus", f->dir) > 0);
        write_file(f->dir, "bus.conf", config);
        assert_true(asprintf(&option, "--config-file=%s/bus.conf", f->dir) > 0);
        if (getenv("GPUAGENT_TEST_BROKER"))
                f->bus = spawn_broker(f, option);
        else
                f->bus = spawn(f, 0, (char *[]){ (char *) DBUS_DAEMON, option, (char *) "--nofork", NULL });
        wait_until(socket_is_there(f, "bus"));
        assert_int_equal(chmod(socket, 0666), 0);
        f->root = fixture_connect(f, 0, 0);
        f->admin = fixture_connect(f, NOBODY_UID, ADMIN_GID);
        f->nobody = fixture_connect(f, NOBODY_UID, 0);
}

void fixture_start_driver(Fixture *f) {
        CLEANUP(free_ptr) char *socket = NULL, *script = NULL, *log = NULL;

        assert_true(asprintf(&socket, "%s/driver", f->dir) > 0);
        assert_true(asprintf(&script, "%s/script", f->dir) > 0);
        assert_true(asprintf(&log, "%s/driver.log", f->dir) > 0);
        (void) unlink(socket);
        f->driver = spawn(f, 0, (char *[]){ (char *) FAKE_DRIVER, socket, script, log, NULL });
        wait_until(socket_is_there(f, "driver"));
}

void fixture_spawn_agent(Fixture *f) {
        CLEANUP(free_ptr) char *config = NULL, *directory = NULL, *socket = NULL;

        assert_true(asprintf(&config, "%s/config.yaml", f->dir) > 0);
        assert_true(asprintf(&directory, "%s/run", f->dir) > 0);
        assert_true(asprintf(&socket, "%s/driver", f->dir) > 0);
        f->agent = spawn(f, AGENT_UID,
                        (char *[]){ (char *) GPUAGENTD, (char *) "--config", config,
                                        (char *) "--runtime-directory", directory,
                                        (char *) "--driver-socket", socket, NULL });
}

static bool driver_is_unknown(const Fixture *f) {
        CLEANUP(free_ptr) char *driver_state = fixture_text(f, MANAGER, "DriverState");

        return streq(driver_state, "unknown");
}

void fixture_start_agent(Fixture *f) {
        fixture_spawn_agent(f);
        wait_until(fixture_has_name(f));
        wait_until(!driver_is_unknown(
                        f)); /* until its first answer, or trouble, there are no GPUs to ask for */
}

void bus_fixture_require(void) {
        if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0) {
                (void) printf("1..0 # SKIP takes root and a mount namespace\n");
                exit(EXIT_SKIPPED);
        }
        if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                exit(EXIT_FAILURE);
}

int bus_fixture_setup(void **state) {
        CLEANUP(free_ptr) char *run = NULL, *address = NULL;
        Fixture *f;

        f = calloc(1, sizeof *f);
        assert_non_null(f);
        (void) snprintf(f->dir, sizeof f->dir, "/tmp/gpuagent-bus-XXXXXX");
        assert_non_null(mkdtemp(f->dir));
        assert_int_equal(chmod(f->dir, 0755), 0);
        bind_users(f->dir);

        assert_true(asprintf(&run, "%s/run", f->dir) > 0);
        assert_int_equal(mkdir(run, 0755), 0);
        assert_int_equal(chown(run, AGENT_UID, AGENT_UID), 0);
        fixture_script(f, "");
        fixture_config(f, DEFAULT_CONFIG);
        assert_true(asprintf(&address, "unix:path=%s/bus", f->dir) > 0);
        assert_int_equal(setenv("DBUS_SYSTEM_BUS_ADDRESS", address, 1), 0);

        fixture_start_bus(f);
        fixture_start_driver(f);
        fixture_start_agent(f);
        *state = f;
        return 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *where) {
        return remove(path);
}

int bus_fixture_teardown(void **state) {
        Fixture *f = *state;
        int status;

        assert_int_equal(kill(f->agent, SIGTERM), 0);
        assert_int_equal(waitpid(f->agent, &status, 0), f->agent);
        fixture_stop(&f->driver, SIGKILL);
        fixture_stop_bus(f);
        (void) umount("/etc/passwd");
        (void) umount("/etc/group");
        (void) nftw(f->dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
        free(f);
        /* Sanitizers make it another one. */
        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

int bus_fixture_calm(void **state) {
        const Fixture *f = *state;

        fixture_script(f, "");
        fixture_config(f, DEFAULT_CONFIG);
        fixture_expect(f->root, MANAGER, "Reload", NULL, "");
        fixture_expect(f->root, MANAGER, "SetMaintenance", NULL, "bs", 0, "");
        fixture_expect(f->root, MANAGER, "Release", NULL, "sasa{sv}", "test/calm", 4, "0", "1", "2", "3", 1,
                        "force", "b", 1);
        fixture_expect(f->root, MANAGER, "Reset", NULL, "asa{sv}", 0, 0);
        return 0;
}

sd_bus* fixture_connect(const Fixture *f, uid_t uid, gid_t group) {
        sd_bus *bus = NULL;
        const char *name;

        /* The bus reads user and groups from the socket: those at the time of connect(). */
        assert_int_equal(setgroups(group ? 1 : 0, &group), 0);
        assert_int_equal(setresuid(-1, uid, 0), 0);
        assert_true(sd_bus_open_system(&bus) >= 0);
        assert_true(sd_bus_get_unique_name(bus, &name) >= 0);
        assert_int_equal(setresuid(-1, 0, 0), 0);
        assert_int_equal(setgroups(0, NULL), 0);
        return bus;
}

int fixture_connect_private(const Fixture *f, uid_t uid, sd_bus **ret) {
        CLEANUP(bus_close_ptr) sd_bus *bus = NULL;
        CLEANUP(free_ptr) char *address = NULL;
        int r;

        assert_true(asprintf(&address, "unix:path=%s/run/private", f->dir) > 0);
        assert_true(sd_bus_new(&bus) >= 0);
        assert_true(sd_bus_set_address(bus, address) >= 0);

        assert_int_equal(setresuid(-1, uid, 0), 0);
        r = sd_bus_start(bus);
        while (r >= 0 && (r = sd_bus_is_ready(bus)) == 0) {
                r = sd_bus_process(bus, NULL);
                if (r == 0)
                        r = sd_bus_wait(bus, USEC_PER_SEC);
        }
        assert_int_equal(setresuid(-1, 0, 0), 0);
        if (r < 0)
                return r;

        *ret = take_ptr(&bus);
        return 0;
}

unsigned fixture_count(const Fixture *f, const char *words) {
        CLEANUP(free_ptr) char *path = NULL;
        CLEANUP(file_close) FILE *file = NULL;
        char line[128];
        unsigned n = 0;

        assert_true(asprintf(&path, "%s/driver.log", f->dir) > 0);
        file = fopen(path, "re");
        while (file && fgets(line, sizeof line, file))
                n += startswith(line, words) != NULL;
        return n;
}

static char* call_and_expect(sd_bus *bus, const char *path, const char *interface, const char *member,
                const char *error_name, const char *types, va_list arguments) {
        CLEANUP(message_unref_ptr) sd_bus_message *msg = NULL, *reply = NULL;
        CLEANUP(bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int r;

        r = sd_bus_message_new_method_call(bus, &msg, BUS_NAME, path, interface, member);
        assert_true(r >= 0);
        assert_true(sd_bus_message_appendv(msg, types, arguments) >= 0);
        r = sd_bus_call(bus, msg, 30 * USEC_PER_SEC, &error, &reply);
        if (!error_name) {
                if (r < 0)
                        fail_msg("%s %s fails: %s: %s", path, member, error.name, error.message);
                return NULL;
        }
        if (r >= 0)
                fail_msg("%s %s does not fail", path, member);
        assert_string_equal(error.name, error_name);
        return strdup(error.message);
}

char* fixture_expect_message(sd_bus *bus, const char *path, const char *interface, const char *member,
                const char *error_name, const char *types, ...) {
        va_list arguments;
        char *message;

        va_start(arguments, types);
        message = call_and_expect(bus, path, interface, member, error_name, types, arguments);
        va_end(arguments);
        return message;
}

void fixture_expect(sd_bus *bus, const char *path, const char *interface, const char *member,
                const char *error_name, const char *types, ...) {
        va_list arguments;

        va_start(arguments, types);
        free(call_and_expect(bus, path, interface, member, error_name, types, arguments));
        va_end(arguments);
}

char* fixture_text(const Fixture *f, const char *path, const char *interface, const char *property) {
        CLEANUP(bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        char *text = NULL;
        int r;

        r = sd_bus_get_property_string(f->nobody, BUS_NAME, path, interface, property, &error, &text);
        if (r < 0)
                fail_msg("%s of %s: %s", property, path, error.message);
        return text;
}

uint64_t fixture_number(
                const Fixture *f, const char *path, const char *interface, const char *property, char type) {
        CLEANUP(bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        union {
                uint64_t u64;
                uint32_t u32;
                int boolean;
        } value = {};
        int r;

        r = sd_bus_get_property_trivial(
                        f->nobody, BUS_NAME, path, interface, property, &error, type, &value);
        if (r < 0)
                fail_msg("%s of %s: %s", property, path, error.message);
        return type == 't' ? value.u64 : value.u32;
}

uint64_t fixture_resets(const Fixture *f) {
        static const char *const paths[] = { GPU_PATH("0"), GPU_PATH("1"), GPU_PATH("2"), GPU_PATH("3") };
        uint64_t sum = 0;

        for (size_t i = 0; i < ELEMENTSOF(paths); i++)
                sum += fixture_number(f, paths[i], BUS_GPU_INTERFACE, "ResetCount", 't');
        return sum;
}

bool fixture_has_name(const Fixture *f) {
        return sd_bus_get_name_creds(f->root, BUS_NAME, 0, NULL) >= 0;
}

unsigned fixture_descriptors(const Fixture *f) {
        CLEANUP(free_ptr) char *path = NULL;
        unsigned n = 0;
        DIR *dir;

        /* What it closes after an answer is closed when it gives the next. */
        assert_true(sd_bus_call_method(f->root, BUS_NAME, "/org/gpuagent1", "org.freedesktop.DBus.Peer",
                                    "Ping", NULL, NULL, NULL) >= 0);
        assert_true(asprintf(&path, "/proc/%d/fd", (int) f->agent) > 0);
        dir = opendir(path);
        assert_non_null(dir);
        while (readdir(dir))
                n++;
        (void) closedir(dir);
        return n;
}

unsigned fixture_descriptors_at_rest(const Fixture *f) {
        fixture_expect(f->root, MANAGER, "Refresh", NULL, "a{sv}", 0);
        return fixture_descriptors(f);
}
