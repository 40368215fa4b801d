/* SPDX-License-Identifier: MIT */
/* The command line, once it is read, and what a verb is. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/clock.h"
#include "agent/base/parse.h"

typedef enum OutputMode {
        OUTPUT_TABLE,
        OUTPUT_JSON_SHORT,
        OUTPUT_JSON_PRETTY,
        OUTPUT_CELLS, /* a table's texts as short JSON, for a process that makes one table of many trays */
} OutputMode;

/* Which options a verb takes; any other is wrong usage. --help, --version, --timeout, --quiet and --config
 * fit every verb. */
typedef enum OptionFlag {
        OPTION_JSON = 1 << 0,
        OPTION_LEGEND = 1 << 1,
        OPTION_ID = 1 << 2,
        OPTION_TENANT = 1 << 3, /* --tenant and --job */
        OPTION_IDENTIFIER = 1 << 4,
        OPTION_NO_WAIT = 1 << 5,
        OPTION_WATCH = 1 << 6,
        OPTION_SHARED = 1 << 7,
        OPTION_FORCE = 1 << 8,
        OPTION_CHECKS = 1 << 9,
        OPTION_HOST = 1 << 10,
        OPTION_WAIT = 1 << 11,
        OPTION_OUTPUT = 1 << 12,
        OPTION_RECONFIGURE = 1 << 13,
} OptionFlag;

typedef struct Options {
        uint32_t given; /* OptionFlag */
        OutputMode output;
        bool legend;
        bool quiet;
        bool wait;
        bool until_reset; /* --wait: a change of partitions, until it has taken effect */
        bool watch;
        bool shared;
        bool force;
        bool checks;
        bool reconfigure;            /* have slurmctld read what was written */
        const char *output_path;     /* NULL: stdout */
        bool batch;                  /* nobody can be asked anything */
        const char *hosts;           /* -H as it was written; NULL: this tray */
        const char *host;            /* the one tray that a verb is run for; NULL: this one */
        const char *ids;             /* -i as it was written; NULL: all GPUs */
        char tenant[TENANT_MAX + 1]; /* "" for none */
        bool any_restart;        /* --job without N: the tenant has N = 0, and may be one with another N */
        const char *identifier;  /* NULL for none */
        usec_t timeout_usec;     /* 0: the verb's own */
        const char *config_path; /* NULL: the usual files */
} Options;

/* What becomes of what a verb prints for many trays. */
typedef enum VerbOutput {
        VERB_ANSWER, /* lines; one table if it takes OPTION_LEGEND; one array of JSON */
        VERB_EVENTS, /* the same, but each line of JSON comes by itself, and at once */
        VERB_METRICS,
        VERB_OWN, /* nothing: the verb asks all of the trays itself, see cli/trays.h */
} VerbOutput;

/* Verbs return a CliExit. argv[0] is the verb's name, the rest its arguments. */
typedef struct Verb {
        const char *name;
        const char *arguments; /* for the usage line, "" for none */
        int max_arguments;     /* -1: any number */
        uint32_t options;      /* OptionFlag */
        int (*run)(const Options *options, int argc, char **argv);
        VerbOutput output;
} Verb;

int verb_list(const Options *options, int argc, char **argv);
int verb_status(const Options *options, int argc, char **argv);
int verb_reset(const Options *options, int argc, char **argv);
int verb_verify(const Options *options, int argc, char **argv);
int verb_gres(const Options *options, int argc, char **argv);
int verb_topology(const Options *options, int argc, char **argv);
int verb_ps(const Options *options, int argc, char **argv);
int verb_clique(const Options *options, int argc, char **argv);
int verb_partition(const Options *options, int argc, char **argv);
int verb_fabric(const Options *options, int argc, char **argv);
int verb_redfish(const Options *options, int argc, char **argv);
int verb_monitor(const Options *options, int argc, char **argv);
int verb_metrics(const Options *options, int argc, char **argv);
int verb_reload(const Options *options, int argc, char **argv);
int verb_boot_reset(const Options *options, int argc, char **argv);
int verb_acquire(const Options *options, int argc, char **argv);
int verb_release(const Options *options, int argc, char **argv);
int verb_maintenance(const Options *options, int argc, char **argv);
int verb_forget(const Options *options, int argc, char **argv);
int verb_oci_spec(const Options *options, int argc, char **argv);
int verb_oci_hook(const Options *options, int argc, char **argv);
int verb_npd_check(const Options *options, int argc, char **argv);
int verb_nfd_features(const Options *options, int argc, char **argv);
int verb_slurm_prolog(const Options *options, int argc, char **argv);
int verb_slurm_check(const Options *options, int argc, char **argv);
int verb_slurm_health(const Options *options, int argc, char **argv);
int verb_slurm_epilog(const Options *options, int argc, char **argv);
