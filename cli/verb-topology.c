/* SPDX-License-Identifier: MIT */
/* gpuagentctl topology: Slurm's topology from the trays' cliques. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "agent/base/io.h"
#include "agent/base/text.h"
#include "cli/program.h"
#include "cli/slurm-features.h"
#include "cli/topology.h"
#include "cli/trays.h"

#define SCONTROL      "/usr/bin/scontrol"
#define FILE_SIZE_MAX (16 << 20)

/* slurmctld answers when it has read everything anew. */
#define RECONFIGURE_TIMEOUT_USEC (60 * USEC_PER_SEC)

/* Stands at the end of a file until slurmctld has read it: what was interrupted, or failed, is done the
 * next time. */
#define UNREAD "# slurmctld has not read this yet\n"

/* How long one run waits for another, which may wait for trays and for slurmctld. */
#define LOCK_TIMEOUT_USEC (120 * USEC_PER_SEC)
#define LOCK_STEP_USEC    (50 * USEC_PER_MSEC)

/* Holds off other runs that write into the folder of the file: what one reads of the old file, and tells
 * slurmctld, is what it replaces. The file is renamed over, so the lock is the folder's; where the file
 * system has none, there is none. 0 and *ret_fd, which holds it (-1: none) · negative, and *failure says
 * why. */
static int lock_folder(const char *path, int *ret_fd, Failure *failure) {
        usec_t deadline_usec = usec_add(now_monotonic_usec(), LOCK_TIMEOUT_USEC);
        const char *slash = strrchr(path, '/');
        CLEANUP(free_ptr) char *folder = NULL;
        CLEANUP(fd_close) int fd = -1;

        folder = slash ? strndup(path, (size_t) (slash - path) + 1) : strdup(".");
        if (!folder)
                return failure_errno(failure, -ENOMEM, "cannot write %s", path);
        fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return failure_errno(failure, -errno, "cannot write %s", path);
        while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
                if (errno != EWOULDBLOCK)
                        return 0;
                if (now_monotonic_usec() >= deadline_usec)
                        return failure_set(failure, CLI_FAILED,
                                        "another run has been writing %s for %u s; end it, or try again",
                                        path, (unsigned) (LOCK_TIMEOUT_USEC / USEC_PER_SEC));
                (void) usleep((useconds_t) LOCK_STEP_USEC);
        }
        *ret_fd = take_fd(&fd);
        return 0;
}

static int add_trays(const HostTrays *trays, Topology *ret, Failure *failure) {
        for (size_t i = 0; i < trays->n_trays; i++) {
                const HostTray *tray = &trays->trays[i];
                char name[HOST_NAME_MAX + 1];
                int r;

                host_tray_node(tray, name);
                r = topology_add(ret, name, host_tray_is_there(tray) ? &tray->tray : NULL);
                if (r == -EEXIST)
                        return failure_set(failure, CLI_FAILED, "%s is %s, which another tray is, too",
                                        tray->host, name);
                if (r < 0)
                        return failure_errno(failure, r, "cannot note the trays");
        }
        return host_trays_check_owners(trays, failure);
}

/* The file as it is. 0, *ret_text (NULL: there is none; to be freed) and *ret · negative, and *failure
 * says why. */
static int read_old(const char *path, char **ret_text, Topology *ret, Failure *failure) {
        CLEANUP(free_ptr) char *text = NULL;
        int r;

        r = file_read(AT_FDCWD, path, FILE_SIZE_MAX, &text, NULL);
        /* Where the power fails, some file systems leave an empty file. */
        if (r == -ENOENT || (r >= 0 && text[0] == '\0'))
                return 0;
        if (r < 0)
                return failure_errno(failure, r, "cannot read %s", path);
        r = topology_parse(text, ret);
        if (r == -EMEDIUMTYPE)
                return failure_set(failure, CLI_FAILED,
                                "%s was made by somebody else, and stays as it is; move it away first",
                                path);
        if (r == -ENOMEM)
                return failure_errno(failure, r, "cannot read %s", path);
        if (r < 0)
                print_complaint("%s was changed by hand, so that what it says of silent trays is lost",
                                path);

        *ret_text = take_ptr(&text);
        return 0;
}

static void warn(const HostTrays *trays, const Topology *topology) {
        for (size_t i = 0; i < trays->n_trays; i++) {
                const HostTray *tray = &trays->trays[i];

                if (!host_tray_is_there(tray))
                        host_tray_report(tray);
                else if (!streq(tray->tray.driver_state, "ok"))
                        print_complaint("%s: the driver is %s", tray->name, tray->tray.driver_state);
        }
        for (size_t i = 0; i < topology->n_nodes; i++) {
                const TopologyNode *node = &topology->nodes[i];

                if (node->state == TOPOLOGY_LEFT_OUT)
                        print_complaint("%s is left out: %s", node->name, node->why);
        }
}

static int reconfigure(Failure *failure) {
        char *const argv[] = { (char *) SCONTROL, (char *) "reconfigure", NULL };
        CLEANUP(free_ptr) char *output = NULL;
        int r;

        r = program_run(argv, usec_add(now_monotonic_usec(), RECONFIGURE_TIMEOUT_USEC), &output);
        if (r < 0)
                return failure_errno(failure, r, "cannot run " SCONTROL " reconfigure");
        if (r > 0)
                return failure_set(failure, CLI_FAILED, SCONTROL " reconfigure: %.*s",
                                (int) strcspn(output, "\n"), output);
        return 0;
}

/* What Slurm reads in both is the same, and it has read it. */
static bool is_read(const char *old, const char *text) {
        CLEANUP(free_ptr) char *was = NULL, *is = NULL;

        return old && !strstr(old, UNREAD) && topology_strip(old, &was) >= 0 &&
                        topology_strip(text, &is) >= 0 && streq(was, is);
}

static int write_file(const char *path, const char *text, const char *more, Failure *failure) {
        CLEANUP(free_ptr) char *all = NULL;
        int r;

        if (asprintf(&all, "%s%s", text, more) < 0) {
                all = NULL;
                return failure_errno(failure, -ENOMEM, "cannot write %s", path);
        }
        r = file_write_atomic(path, all, strlen(all), 0644);
        return r < 0 ? failure_errno(failure, r, "cannot write %s", path) : 0;
}

/* Writes what has changed, and has slurmctld read it. */
static int update(const Options *options, const ClientConfig *config, const Topology *topology,
                const char *path, const char *old, const char *text, Failure *failure) {
        bool features = config->topology.format == TOPOLOGY_FEATURES;
        int r;

        if (!options->reconfigure || features || is_read(old, text)) {
                r = old && streq(old, text) ? 0 : write_file(path, text, "", failure);
                if (r >= 0 && options->reconfigure && features)
                        r = features_apply(topology,
                                        usec_add(now_monotonic_usec(), RECONFIGURE_TIMEOUT_USEC), failure);
                return r;
        }
        r = write_file(path, text, UNREAD, failure);
        if (r >= 0)
                r = reconfigure(failure);
        return r < 0 ? r : write_file(path, text, "", failure);
}

static int run(const Options *options, const ClientConfig *config, char **hosts, Failure *failure) {
        CLEANUP(host_trays_done) HostTrays trays = {};
        CLEANUP(topology_done) Topology topology = {}, old = {};
        CLEANUP(free_ptr) char *was = NULL, *text = NULL, *why = NULL, *target = NULL;
        const char *path = options->output_path;
        CLEANUP(fd_close) int lock_fd = -1;
        int r = 0;

        if (path) {
                target = realpath(path, NULL); /* a link stays one */
                path = target ?: path;
                r = lock_folder(path, &lock_fd, failure);
                if (r >= 0)
                        r = read_old(path, &was, &old, failure);
                if (r < 0)
                        return r;
        }
        r = host_trays_read(options, hosts, &trays);
        if (r < 0)
                return failure_errno(failure, r, "cannot ask the trays");
        r = add_trays(&trays, &topology, failure);
        if (r < 0)
                return r;

        topology_resolve(&topology, &old, now_realtime_usec());
        r = topology_format(&topology, config, &text);
        if (r < 0)
                return failure_errno(failure, r, "cannot make the topology");
        /* A timer asks twice a minute: what is wrong is told when it is new. */
        if (!options->quiet && (!was || !streq(was, text)))
                warn(&trays, &topology);
        r = topology_check(&topology, config, &why);
        if (r < 0)
                return failure_set(failure, CLI_FAILED, "%s%s", why ?: "out of memory",
                                path ? "; the file stays as it is" : "");
        if (path)
                return update(options, config, &topology, path, was, text, failure);
        (void) fputs(text, stdout);
        return 0;
}

int verb_topology(const Options *options, int argc, char **argv) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(client_config_free_ptr) ClientConfig *config = NULL;
        CLEANUP(strv_free_ptr) char **hosts = NULL;
        int r;

        if (options->reconfigure && !options->output_path)
                return fail_with(CLI_USAGE, "--reconfigure needs a file, with -o");
        r = host_trays_named(options, NULL, &config, &hosts, &failure);
        if (r < 0)
                return failure_report(&failure);
        /* One tray is no topology. */
        if (!options->hosts && !config->trays)
                return fail_with(CLI_USAGE,
                                "say which trays there are, in client.trays of gpuagentctl.yaml or with -H");
        r = run(options, config, hosts, &failure);
        return r < 0 ? failure_report(&failure) : CLI_DONE;
}
