/* SPDX-License-Identifier: MIT */
/* gpuagentctl: reads the command line and runs one verb. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "agent/base/text.h"
#include "cli/complete.h"
#include "cli/hosts.h"
#include "cli/options.h"
#include "cli/print.h"

static int verb_complete(const Options *options, int argc, char **argv);

static const Verb verbs[] = {
        { "list", "[TRAY...]", -1, OPTION_HOST | OPTION_JSON | OPTION_LEGEND | OPTION_WATCH, verb_list },
        { "status", "[GPU...]", -1, OPTION_HOST | OPTION_JSON, verb_status },
        { "reset", "", 0, OPTION_HOST | OPTION_ID | OPTION_TENANT | OPTION_IDENTIFIER | OPTION_NO_WAIT,
                        verb_reset },
        { "verify", "", 0, OPTION_HOST | OPTION_ID | OPTION_CHECKS, verb_verify },
        { "acquire", "", 0, OPTION_HOST | OPTION_ID | OPTION_TENANT | OPTION_IDENTIFIER | OPTION_SHARED,
                        verb_acquire },
        { "release", "", 0,
                        OPTION_HOST | OPTION_ID | OPTION_TENANT | OPTION_IDENTIFIER | OPTION_NO_WAIT |
                                        OPTION_FORCE,
                        verb_release },
        { "ps", "", 0, OPTION_HOST | OPTION_JSON | OPTION_LEGEND | OPTION_ID, verb_ps },
        { "clique", "", 0, OPTION_HOST | OPTION_JSON | OPTION_LEGEND, verb_clique },
        { "partition", "list|create|add|remove|delete", -1,
                        OPTION_HOST | OPTION_JSON | OPTION_LEGEND | OPTION_ID | OPTION_WAIT, verb_partition,
                        VERB_OWN },
        { "fabric", "domain|trays|links", 1, OPTION_HOST | OPTION_JSON | OPTION_LEGEND, verb_fabric,
                        VERB_OWN },
        { "redfish", "TRAY PATH", 2, OPTION_JSON, verb_redfish },
        { "gres", "", 0, OPTION_HOST, verb_gres, VERB_OWN },
        { "topology", "", 0, OPTION_HOST | OPTION_OUTPUT | OPTION_RECONFIGURE, verb_topology, VERB_OWN },
        { "monitor", "", 0, OPTION_HOST | OPTION_JSON, verb_monitor, VERB_EVENTS },
        { "metrics", "", 0, OPTION_HOST, verb_metrics, VERB_METRICS },
        { "reload", "", 0, OPTION_HOST, verb_reload },
        { "maintenance", "on|off [REASON...]", -1, OPTION_HOST, verb_maintenance },
        { "forget", "GPU", 1, OPTION_HOST, verb_forget },
        { "boot-reset", "", 0, 0, verb_boot_reset },
        { "oci-hook", "prestart|poststop", 1, 0, verb_oci_hook },
        { "oci-spec", "", 0, 0, verb_oci_spec },
        { "npd-check", "[GPU]", 1, 0, verb_npd_check },
        { "nfd-features", "[FILE]", 1, 0, verb_nfd_features },
        { "slurm-prolog", "", 0, OPTION_IDENTIFIER, verb_slurm_prolog },
        { "slurm-epilog", "", 0, OPTION_IDENTIFIER, verb_slurm_epilog },
        { "slurm-health", "", 0, 0, verb_slurm_health },
        { "slurm-check", "[FILE]", 1, OPTION_JSON, verb_slurm_check },
        { "complete", "WHAT [VERB]", 2, 0, verb_complete },
};

typedef enum LongOption {
        LONG_JSON = 256,
        LONG_JOB,
        LONG_TENANT,
        LONG_TIMEOUT,
        LONG_NO_LEGEND,
        LONG_NO_WAIT,
        LONG_WAIT,
        LONG_WATCH,
        LONG_SHARED,
        LONG_FORCE,
        LONG_CHECKS,
        LONG_RECONFIGURE,
        LONG_CONFIG,
        LONG_VERSION,
} LongOption;

static const struct option long_options[] = {
        { "json", required_argument, NULL, LONG_JSON },
        { "host", required_argument, NULL, 'H' },
        { "id", required_argument, NULL, 'i' },
        { "job", required_argument, NULL, LONG_JOB },
        { "tenant", required_argument, NULL, LONG_TENANT },
        { "timeout", required_argument, NULL, LONG_TIMEOUT },
        { "identifier", required_argument, NULL, 't' },
        { "no-legend", no_argument, NULL, LONG_NO_LEGEND },
        { "no-wait", no_argument, NULL, LONG_NO_WAIT },
        { "wait", no_argument, NULL, LONG_WAIT },
        { "watch", no_argument, NULL, LONG_WATCH },
        { "shared", no_argument, NULL, LONG_SHARED },
        { "force", no_argument, NULL, LONG_FORCE },
        { "checks", no_argument, NULL, LONG_CHECKS },
        { "output", required_argument, NULL, 'o' },
        { "reconfigure", no_argument, NULL, LONG_RECONFIGURE },
        { "quiet", no_argument, NULL, 'q' },
        { "config", required_argument, NULL, LONG_CONFIG },
        { "version", no_argument, NULL, LONG_VERSION },
        { "help", no_argument, NULL, 'h' },
        {},
};

static void print_help(void) {
        (void) puts("gpuagentctl [OPTION...] [VERB] [ARGUMENT...]\n"
                    "\n"
                    "Shows the GPUs of a tray and hands them over from one tenant to the next.\n"
                    "\n"
                    "  list [TRAY...] [--watch]    one line a GPU (the default)\n"
                    "  status [GPU...]             what is wrong, since when, and what cures it\n"
                    "  ps, verify [--checks]       who holds the GPUs; whether they are clean\n"
                    "  monitor, metrics            changes as they come; for Prometheus\n"
                    "  reset                       reset GPUs and verify them\n"
                    "  acquire, release            book GPUs for a tenant; end that, and reset them\n"
                    "  maintenance on [WHY]|off    hand out nothing, and leave the driver alone\n"
                    "  forget GPU, reload          a GPU that is gone; read the configuration anew\n"
                    "  clique, fabric domain|trays|links, redfish TRAY PATH\n"
                    "  partition [list] | create NAME [--id N] GPU... | add|remove PART GPU... |\n"
                    "            delete PART       GPU: tray2, tray2:0-1, 2:0,3; [--wait]\n"
                    "  topology [-o FILE [--reconfigure]], gres, slurm-check [FILE]\n"
                    "                              files for Slurm; what is wrong with its own\n"
                    "  boot-reset, slurm-prolog, slurm-epilog, slurm-health, oci-hook, oci-spec,\n"
                    "  npd-check, nfd-features     run by units, Slurm, container engines, Kubernetes\n"
                    "\n"
                    "  -H, --host TRAY,...         other trays, [USER@]TRAY, over ssh\n"
                    "  -i, --id LIST               GPUs: 0,1,2,3, UUIDs or their beginnings, bus ids\n"
                    "  --tenant T, --job ID[.N]    the tenant; the Slurm job that it is\n"
                    "  --shared, --force           acquire: with others; release: whoever has them\n"
                    "  --timeout SEC, --no-wait    give up after this long; return once it is asked\n"
                    "  -t, --identifier ID         have the outcome logged under this identifier\n"
                    "  --json short|pretty         for programs\n"
                    "  --no-legend, -q, --quiet, --config FILE, --version, -h, --help");
}

static int set_output(Options *options, const char *mode) {
        if (streq(mode, "short"))
                options->output = OUTPUT_JSON_SHORT;
        else if (streq(mode, "pretty"))
                options->output = OUTPUT_JSON_PRETTY;
        else
                return fail_with(CLI_USAGE, "--json=%s: the modes are short and pretty", mode);
        options->given |= OPTION_JSON;
        return CLI_DONE;
}

static int put_tenant(Options *options, const char *tenant) {
        if (options->given & OPTION_TENANT)
                return fail_with(CLI_USAGE, "one tenant may be given, by --job or --tenant");
        if (!tenant_is_valid(tenant))
                return fail_with(CLI_USAGE, "'%s' is no tenant, such as slurm/27.0", tenant);
        (void) snprintf(options->tenant, sizeof options->tenant, "%s", tenant);
        options->given |= OPTION_TENANT;
        return CLI_DONE;
}

/* "27.1", or "27" for whichever of them has a lease. */
static int set_job(Options *options, const char *job) {
        CLEANUP(free_ptr) char *id = strdup(job);
        char tenant[TENANT_MAX + 1];
        uint32_t id_number, restarts = 0;
        char *dot;
        int r;

        if (!id)
                return fail_with(CLI_FAILED, "out of memory");
        dot = strchr(id, '.');
        if (dot)
                *dot = '\0';
        r = parse_u32(id, UINT32_MAX, &id_number);
        if (r >= 0 && dot)
                r = parse_u32(dot + 1, UINT32_MAX, &restarts);
        if (r < 0)
                return fail_with(CLI_USAGE, "'%s' is no job, such as 27 or 27.1", job);
        (void) snprintf(tenant, sizeof tenant, "slurm/%u.%u", id_number, restarts);
        r = put_tenant(options, tenant);
        options->any_restart = !dot;
        return r;
}

/* "slurm/27" is that job, as --job has it. */
static int set_tenant(Options *options, const char *tenant) {
        const char *job;
        size_t n = tenant_job(tenant, &job);

        return n > 0 && job[n] == '\0' ? set_job(options, job) : put_tenant(options, tenant);
}

static int set_timeout(Options *options, const char *timeout) {
        if (parse_duration(timeout, &options->timeout_usec) < 0 || options->timeout_usec == 0)
                return fail_with(CLI_USAGE, "--timeout=%s: give seconds, more than 0", timeout);
        return CLI_DONE;
}

static int set_identifier(Options *options, const char *identifier) {
        if (!identifier_is_valid(identifier))
                return fail_with(CLI_USAGE, "'%s' is no syslog identifier", identifier);
        options->identifier = identifier;
        options->given |= OPTION_IDENTIFIER;
        return CLI_DONE;
}

static int set_option(Options *options, int option, const char *argument) {
        switch (option) {
        case LONG_JSON: return set_output(options, argument);
        case 'H':
                options->hosts = argument;
                options->given |= OPTION_HOST;
                return CLI_DONE;
        case 'i':
                if (options->given & OPTION_ID)
                        return fail_with(
                                        CLI_USAGE, "-i may be given once: -i %s,%s", options->ids, argument);
                options->ids = argument;
                options->given |= OPTION_ID;
                return CLI_DONE;
        case LONG_JOB: return set_job(options, argument);
        case LONG_TENANT: return set_tenant(options, argument);
        case LONG_TIMEOUT: return set_timeout(options, argument);
        case 't': return set_identifier(options, argument);
        case LONG_NO_LEGEND:
                options->legend = false;
                options->given |= OPTION_LEGEND;
                return CLI_DONE;
        case LONG_NO_WAIT:
                options->wait = false;
                options->given |= OPTION_NO_WAIT;
                return CLI_DONE;
        case LONG_WAIT:
                options->until_reset = true;
                options->given |= OPTION_WAIT;
                return CLI_DONE;
        case LONG_WATCH:
                options->watch = true;
                options->given |= OPTION_WATCH;
                return CLI_DONE;
        case LONG_SHARED:
                options->shared = true;
                options->given |= OPTION_SHARED;
                return CLI_DONE;
        case LONG_FORCE:
                options->force = true;
                options->given |= OPTION_FORCE;
                return CLI_DONE;
        case LONG_CHECKS:
                options->checks = true;
                options->given |= OPTION_CHECKS;
                return CLI_DONE;
        case 'o':
                options->output_path = argument;
                options->given |= OPTION_OUTPUT;
                return CLI_DONE;
        case LONG_RECONFIGURE:
                options->reconfigure = true;
                options->given |= OPTION_RECONFIGURE;
                return CLI_DONE;
        case 'q': options->quiet = true; return CLI_DONE;
        case LONG_CONFIG: options->config_path = argument; return CLI_DONE;
        }
        return CLI_USAGE; /* getopt_long() has said what is wrong */
}

/* The options behind the flags, which a verb may not take. */
static const char *const option_names[] = { "--json", "--no-legend", "--id", "--job and --tenant",
        "--identifier", "--no-wait", "--watch", "--shared", "--force", "--checks", "--host", "--wait",
        "--output", "--reconfigure" };

/* Of the lowest flag. */
static const char* option_name(uint32_t flags) {
        return option_names[__builtin_ctz(flags)];
}

/* Whether the verb takes an option; those without a flag fit all of them. */
static bool verb_takes(const Verb *verb, const char *option) {
        char name[32];
        size_t n;

        (void) snprintf(name, sizeof name, "--%s", option);
        n = strlen(name);
        for (size_t i = 0; i < ELEMENTSOF(option_names); i++)
                for (const char *at = strstr(option_names[i], name); at; at = strstr(at + 1, name))
                        if (at[n] == '\0' || at[n] == ' ')
                                return verb->options & (UINT32_C(1) << i);
        return true;
}

static const Verb* verb_find(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
                if (streq(name, verbs[i].name))
                        return &verbs[i];
        return NULL;
}

/* For the completion of shells: what there is to choose from. */
static int verb_complete(const Options *options, int argc, char **argv) {
        const char *what = argc > 1 ? argv[1] : "";
        const Verb *verb = argc > 2 ? verb_find(argv[2]) : NULL;

        if (streq(what, "verbs")) {
                for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
                        if (verbs[i].run != verb_complete)
                                print_line(stdout, "%s", verbs[i].name);
        } else if (streq(what, "options")) {
                for (const struct option *option = long_options; option->name; option++)
                        if (!verb || verb_takes(verb, option->name))
                                print_line(stdout, "--%s%s", option->name,
                                                option->has_arg == required_argument ? "=" : "");
        } else {
                complete_from_agent(options, what);
        }
        return CLI_DONE;
}

/* For the trays of -H, or those that list is given; else for this one. */
static int run_where(const Verb *verb, const Options *options, int argc, char **argv) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(strv_free_ptr) char **hosts = NULL;
        bool named = verb->run == verb_list && argc > 1;
        int r = 0;

        if (verb->output == VERB_OWN)
                return verb->run(options, argc, argv);
        if (named && options->hosts)
                return fail_with(CLI_USAGE, "give the trays as arguments or with -H, not both");
        for (int i = 1; named && i < argc && r >= 0; i++)
                if (!strv_contains(hosts, argv[i]))
                        r = strv_append(&hosts, argv[i]);
        if (r < 0)
                return fail_with(CLI_FAILED, "out of memory");
        if (named)
                r = hosts_check(hosts, &failure);
        else if (options->hosts)
                r = hosts_parse(options->hosts, &hosts, &failure);
        if (r < 0)
                return failure_report(&failure);
        return hosts ? hosts_run(verb, options, hosts, argc, argv) : verb->run(options, argc, argv);
}

static int run_verb(const Options *options, int argc, char **argv) {
        static char *const fallback[] = { (char *) "list", NULL };
        const char *name = argc > 0 ? argv[0] : fallback[0];
        const Verb *verb = verb_find(name);
        uint32_t wrong;

        if (!verb)
                return fail_with(CLI_USAGE, "'%s' is unknown; see gpuagentctl --help", name);
        wrong = options->given & ~verb->options;
        if (wrong != 0)
                return fail_with(CLI_USAGE, "%s takes no %s", verb->name, option_name(wrong));
        if (verb->max_arguments == 0 && argc > 1 && verb->options & OPTION_ID)
                return fail_with(CLI_USAGE, "%s has its GPUs from -i: gpuagentctl %s -i %s", verb->name,
                                verb->name, argv[1]);
        if (verb->max_arguments >= 0 && argc - 1 > verb->max_arguments)
                return fail_with(CLI_USAGE, "too many arguments; the command is: %s%s%s", verb->name,
                                verb->arguments[0] ? " " : "", verb->arguments);
        return run_where(verb, options, argc > 0 ? argc : 1, argc > 0 ? argv : (char **) fallback);
}

/* What is printed into a full disk or a closed pipe is not done. */
static int finish(int exit_code) {
        bool failed = fflush(stdout) != 0 || ferror(stdout);

        /* A stdout that was closed all along lacks nothing where nothing was printed. */
        if (fclose(stdout) != 0 && errno != EBADF)
                failed = true;
        if (failed && exit_code == CLI_DONE)
                return fail_with(CLI_FAILED, "cannot write the output");
        return exit_code;
}

int main(int argc, char **argv) {
        Options options = { .legend = true, .wait = true };
        int option;

        while ((option = getopt_long(argc, argv, "H:i:o:t:qh", long_options, NULL)) >= 0) {
                int r;

                if (option == 'h') {
                        print_help();
                        return finish(CLI_DONE);
                }
                if (option == LONG_VERSION) {
                        (void) puts("gpuagentctl " VERSION);
                        return finish(CLI_DONE);
                }
                r = set_option(&options, option, optarg);
                if (r != CLI_DONE)
                        return r;
        }

        return finish(run_verb(&options, argc - optind, argv + optind));
}
