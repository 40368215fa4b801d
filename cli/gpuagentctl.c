/* SPDX-License-Identifier: MIT */
/* gpuagentctl: reads the command line and runs one verb. */
#include <errno.h>
#include <getopt.h>
#include <stddef.h>
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

/* An option: how it is written, which verbs take it, and what it does. */
typedef struct OptionRow OptionRow;

struct OptionRow {
        const char *name;
        int argument;  /* getopt_long()'s word on it */
        char letter;   /* 0: it has none */
        uint32_t flag; /* OptionFlag; 0: it fits every verb */
        /* A CliExit; what is not CLI_DONE was said. NULL: it is answered at once. */
        int (*set)(const OptionRow *row, Options *options, const char *argument);
        size_t place; /* in Options, for set_text() and its like */
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

static int set_output(const OptionRow *row, Options *options, const char *mode) {
        if (streq(mode, "short"))
                options->output = OUTPUT_JSON_SHORT;
        else if (streq(mode, "pretty"))
                options->output = OUTPUT_JSON_PRETTY;
        else
                return fail_with(CLI_USAGE, "--json=%s: the modes are short and pretty", mode);
        return CLI_DONE;
}

static int put_tenant(Options *options, const char *tenant) {
        if (options->given & OPTION_TENANT)
                return fail_with(CLI_USAGE, "one tenant may be given, by --job or --tenant");
        if (!tenant_is_valid(tenant))
                return fail_with(CLI_USAGE, "'%s' is no tenant, such as slurm/27.0", tenant);
        (void) snprintf(options->tenant, sizeof options->tenant, "%s", tenant);
        return CLI_DONE;
}

/* "27.1", or "27" for whichever of them has a lease. */
static int set_job(const OptionRow *row, Options *options, const char *job) {
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
static int set_tenant(const OptionRow *row, Options *options, const char *tenant) {
        const char *job;
        size_t n = tenant_job(tenant, &job);

        return n > 0 && job[n] == '\0' ? set_job(row, options, job) : put_tenant(options, tenant);
}

static int set_timeout(const OptionRow *row, Options *options, const char *timeout) {
        if (parse_duration(timeout, &options->timeout_usec) < 0 || options->timeout_usec == 0)
                return fail_with(CLI_USAGE, "--timeout=%s: give seconds, more than 0", timeout);
        return CLI_DONE;
}

static int set_identifier(const OptionRow *row, Options *options, const char *identifier) {
        if (!identifier_is_valid(identifier))
                return fail_with(CLI_USAGE, "'%s' is no syslog identifier", identifier);
        options->identifier = identifier;
        return CLI_DONE;
}

static int set_ids(const OptionRow *row, Options *options, const char *ids) {
        if (options->given & OPTION_ID)
                return fail_with(CLI_USAGE, "-i may be given once: -i %s,%s", options->ids, ids);
        options->ids = ids;
        return CLI_DONE;
}

static int set_text(const OptionRow *row, Options *options, const char *text) {
        *(const char **) ((char *) options + row->place) = text;
        return CLI_DONE;
}

static int set_true(const OptionRow *row, Options *options, const char *nothing) {
        *(bool *) ((char *) options + row->place) = true;
        return CLI_DONE;
}

static int set_false(const OptionRow *row, Options *options, const char *nothing) {
        *(bool *) ((char *) options + row->place) = false;
        return CLI_DONE;
}

static const OptionRow option_rows[] = {
        { "json", required_argument, 0, OPTION_JSON, set_output },
        { "host", required_argument, 'H', OPTION_HOST, set_text, offsetof(Options, hosts) },
        { "id", required_argument, 'i', OPTION_ID, set_ids },
        { "job", required_argument, 0, OPTION_TENANT, set_job },
        { "tenant", required_argument, 0, OPTION_TENANT, set_tenant },
        { "timeout", required_argument, 0, 0, set_timeout },
        { "identifier", required_argument, 't', OPTION_IDENTIFIER, set_identifier },
        { "no-legend", no_argument, 0, OPTION_LEGEND, set_false, offsetof(Options, legend) },
        { "no-wait", no_argument, 0, OPTION_NO_WAIT, set_false, offsetof(Options, wait) },
        { "wait", no_argument, 0, OPTION_WAIT, set_true, offsetof(Options, until_reset) },
        { "watch", no_argument, 0, OPTION_WATCH, set_true, offsetof(Options, watch) },
        { "shared", no_argument, 0, OPTION_SHARED, set_true, offsetof(Options, shared) },
        { "force", no_argument, 0, OPTION_FORCE, set_true, offsetof(Options, force) },
        { "checks", no_argument, 0, OPTION_CHECKS, set_true, offsetof(Options, checks) },
        { "output", required_argument, 'o', OPTION_OUTPUT, set_text, offsetof(Options, output_path) },
        { "reconfigure", no_argument, 0, OPTION_RECONFIGURE, set_true, offsetof(Options, reconfigure) },
        { "quiet", no_argument, 'q', 0, set_true, offsetof(Options, quiet) },
        { "config", required_argument, 0, 0, set_text, offsetof(Options, config_path) },
        { "version", no_argument, 0, 0, NULL },
        { "help", no_argument, 'h', 0, NULL },
};

/* The names behind the lowest of the flags: "--job and --tenant". */
static void flag_format(uint32_t flags, char *ret, size_t size) {
        uint32_t lowest = flags & -flags;
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTSOF(option_rows) && n < size; i++)
                if (option_rows[i].flag == lowest)
                        n += (size_t) snprintf(ret + n, size - n, "%s--%s", n > 0 ? " and " : "",
                                        option_rows[i].name);
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
                for (size_t i = 0; i < ELEMENTSOF(option_rows); i++)
                        if (!verb || (option_rows[i].flag & ~verb->options) == 0)
                                print_line(stdout, "--%s%s", option_rows[i].name,
                                                option_rows[i].argument == required_argument ? "=" : "");
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
        char wrong_name[64];
        uint32_t wrong;

        if (!verb)
                return fail_with(CLI_USAGE, "'%s' is unknown; see gpuagentctl --help", name);
        wrong = options->given & ~verb->options;
        if (wrong != 0) {
                flag_format(wrong, wrong_name, sizeof wrong_name);
                return fail_with(CLI_USAGE, "%s takes no %s", verb->name, wrong_name);
        }
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

/* The rows as getopt_long() takes them. */
typedef struct OptionWords {
        struct option long_options[ELEMENTSOF(option_rows) + 1];
        char short_options[2 * ELEMENTSOF(option_rows) + 1];
} OptionWords;

static void option_words_fill(OptionWords *ret) {
        size_t n = 0;

        *ret = (OptionWords){};
        for (size_t i = 0; i < ELEMENTSOF(option_rows); i++) {
                const OptionRow *row = &option_rows[i];

                ret->long_options[i] = (struct option){ row->name, row->argument, NULL,
                        row->letter ?: 256 + (int) i };
                if (row->letter)
                        ret->short_options[n++] = row->letter;
                if (row->letter && row->argument == required_argument)
                        ret->short_options[n++] = ':';
        }
}

/* The next option of the command line, with its argument in optarg. 1 and *ret · 0 at their end · -EINVAL it
 * is none, and that was said. */
static int next_option(const OptionWords *words, int argc, char **argv, const OptionRow **ret) {
        int option;

        option = getopt_long(argc, argv, words->short_options, words->long_options, NULL);
        if (option < 0)
                return 0;
        for (size_t i = 0; i < ELEMENTSOF(option_rows); i++)
                if (words->long_options[i].val == option) {
                        *ret = &option_rows[i];
                        return 1;
                }
        return -EINVAL;
}

int main(int argc, char **argv) {
        Options options = { .legend = true, .wait = true };
        const OptionRow *row;
        OptionWords words;
        int r;

        option_words_fill(&words);
        while ((r = next_option(&words, argc, argv, &row)) > 0) {
                if (!row->set) {
                        if (row->letter == 'h')
                                print_help();
                        else
                                (void) puts("gpuagentctl " VERSION);
                        return finish(CLI_DONE);
                }
                r = row->set(row, &options, optarg);
                if (r != CLI_DONE)
                        return r;
                options.given |= row->flag;
        }
        if (r < 0)
                return CLI_USAGE;
        return finish(run_verb(&options, argc - optind, argv + optind));
}
