/* SPDX-License-Identifier: MIT */
/* nvidia-smi's arguments: short options of up to three letters, long ones with or without "=". */
#include <getopt.h>
#include <string.h>

#include "agent/base/parse.h"
#include "agent/base/text.h"
#include "cli/nvidia-smi.h"

#define BAD_ARGUMENTS "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n"

enum {
        OPTION_QUERY_GPU = 256,
        OPTION_QUERY_APPS,
        OPTION_FORMAT,
        OPTION_LOOP_MS,
        OPTION_PERSISTENCE,
        OPTION_HELP_QUERY_GPU,
        OPTION_HELP_QUERY_APPS,
        OPTION_DTD,
        OPTION_VERSION,
};

static const struct option long_options[] = {
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, OPTION_VERSION },
        { "list-gpus", no_argument, NULL, 'L' },
        { "id", required_argument, NULL, 'i' },
        { "filename", required_argument, NULL, 'f' },
        { "loop", optional_argument, NULL, 'l' },
        { "loop-ms", required_argument, NULL, OPTION_LOOP_MS },
        { "lms", required_argument, NULL, OPTION_LOOP_MS },
        { "query", no_argument, NULL, 'q' },
        { "xml-format", no_argument, NULL, 'x' },
        { "dtd", no_argument, NULL, OPTION_DTD },
        { "display", required_argument, NULL, 'd' },
        { "query-gpu", required_argument, NULL, OPTION_QUERY_GPU },
        { "query-compute-apps", required_argument, NULL, OPTION_QUERY_APPS },
        { "format", required_argument, NULL, OPTION_FORMAT },
        { "gpu-reset", optional_argument, NULL, 'r' },
        { "persistence-mode", required_argument, NULL, OPTION_PERSISTENCE },
        { "pm", required_argument, NULL, OPTION_PERSISTENCE },
        { "help-query-gpu", no_argument, NULL, OPTION_HELP_QUERY_GPU },
        { "help-query-compute-apps", no_argument, NULL, OPTION_HELP_QUERY_APPS },
        {},
};

/* Only one thing can be asked for at a time. */
static void set_mode(SmiOptions *options, SmiMode mode, const char *fields) {
        if (options->mode != SMI_MODE_TABLE)
                options->problem = BAD_ARGUMENTS;
        options->mode = mode;
        options->fields = fields;
}

static void set_persistence(SmiOptions *options, const char *value) {
        set_mode(options, SMI_MODE_PERSISTENCE, NULL);
        options->persistence = streq(value, "1") || strcasecmp(value, "ENABLED") == 0;
        if (!options->persistence && !streq(value, "0") && strcasecmp(value, "DISABLED") != 0)
                options->problem = BAD_ARGUMENTS;
}

static void set_loop(SmiOptions *options, const char *value, uint64_t scale) {
        uint32_t number = 5; /* seconds, without a value */

        if (value && parse_u32(value, 1000000, &number) < 0)
                options->problem = BAD_ARGUMENTS;
        options->loop_usec = number * scale;
}

static void set_format(SmiOptions *options, const char *value) {
        CLEANUP(strv_free_ptr) char **words = NULL;
        bool csv = false;

        options->format = value;
        if (list_parse(value, &words) < 0) {
                options->problem = BAD_ARGUMENTS;
                return;
        }
        STRV_FOREACH (word, words) {
                const char *text = text_strip(*word);

                if (streq(text, "csv"))
                        csv = true;
                else if (streq(text, "noheader"))
                        options->header = false;
                else if (streq(text, "nounits"))
                        options->units = false;
                else
                        options->problem = BAD_ARGUMENTS;
        }
        if (!csv)
                options->problem = "\"--format=\" switch is missing \"csv\"";
}

static void set_reset(SmiOptions *options, const char *value) {
        set_mode(options, SMI_MODE_RESET, NULL);
        /* The bus reset comes to the same here. */
        if (value && !streq(value, "bus"))
                options->problem = BAD_ARGUMENTS;
}

static void read_option(int option, const char *value, SmiOptions *options) {
        switch (option) {
        case 'h': set_mode(options, SMI_MODE_HELP, NULL); return;
        case OPTION_HELP_QUERY_GPU: set_mode(options, SMI_MODE_HELP_QUERY_GPU, NULL); return;
        case OPTION_HELP_QUERY_APPS: set_mode(options, SMI_MODE_HELP_QUERY_APPS, NULL); return;
        case OPTION_VERSION: set_mode(options, SMI_MODE_VERSION, NULL); return;
        case 'L': set_mode(options, SMI_MODE_LIST, NULL); return;
        case 'q': set_mode(options, SMI_MODE_LOG, NULL); return;
        case OPTION_QUERY_GPU: set_mode(options, SMI_MODE_QUERY_GPU, value); return;
        case OPTION_QUERY_APPS: set_mode(options, SMI_MODE_QUERY_APPS, value); return;
        case 'r': set_reset(options, value); return;
        case OPTION_PERSISTENCE: set_persistence(options, value); return;
        case OPTION_FORMAT: set_format(options, value); return;
        case 'i': options->ids = value; return;
        case 'f': options->filename = value; return;
        case 'd': options->display = value; return;
        case 'x': options->xml = true; return;
        case OPTION_DTD: return;
        case 'l': set_loop(options, value, USEC_PER_SEC); return;
        case OPTION_LOOP_MS: set_loop(options, value, USEC_PER_MSEC); return;
        default: options->problem = BAD_ARGUMENTS;
        }
}

/* `topo -m` and `nvlink -s` are words with options of their own. */
static bool parse_subcommand(int argc, char **argv, SmiOptions *ret) {
        bool topology = argc > 1 && streq(argv[1], "topo");

        if (argc < 2 || (!topology && !streq(argv[1], "nvlink")))
                return false;

        ret->mode = topology ? SMI_MODE_TOPOLOGY : SMI_MODE_NVLINK;
        ret->problem = BAD_ARGUMENTS;
        for (int i = 2; i < argc; i++)
                if (streq(argv[i], topology ? "-m" : "-s") ||
                                streq(argv[i], topology ? "--matrix" : "--status"))
                        ret->problem = NULL;
                else if (!topology && (streq(argv[i], "-i") || streq(argv[i], "--id")) && i + 1 < argc)
                        ret->ids = argv[++i];
                else
                        return ret->problem = BAD_ARGUMENTS, true;
        return true;
}

void smi_options_parse(int argc, char **argv, SmiOptions *ret) {
        SmiOptions options = { .header = true, .units = true };

        if (parse_subcommand(argc, argv, &options)) {
                *ret = options;
                return;
        }

        opterr = 0;
        optind = 0;
        for (;;) {
                int option = getopt_long_only(argc, argv, "hLi:f:l::qxd:r::", long_options, NULL);

                if (option < 0)
                        break;
                read_option(option, optarg, &options);
        }

        /* A value that follows -r or -l as a word of its own. */
        if (optind < argc && options.mode == SMI_MODE_RESET && streq(argv[optind], "bus"))
                optind++;
        else if (optind < argc && options.loop_usec > 0)
                set_loop(&options, argv[optind++], USEC_PER_SEC);
        if (optind < argc || (options.xml && options.mode != SMI_MODE_LOG))
                options.problem = BAD_ARGUMENTS;
        if ((options.mode == SMI_MODE_QUERY_GPU || options.mode == SMI_MODE_QUERY_APPS) && !options.format)
                options.problem = "Missing \"--format=\" switch. Please run 'nvidia-smi --help-query-gpu' "
                                  "for help.";
        *ret = options;
}
