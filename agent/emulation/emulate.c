/* SPDX-License-Identifier: MIT */
/* The levers of the emulated tray: boot it, partition its fabric, break it, use its GPUs. */
#include "agent/emulation/emulate.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/base/parse.h"
#include "agent/base/text.h"

static const struct {
        const char *name;
        int (*run)(char **args, const EmulateOptions *options);
        const char *arguments;
        const char *help;
} verbs[] = {
        { "boot", verb_boot, "[--config FILE] [--devices DIR]", "make the tray and its device nodes" },
        { "status", verb_status, "", "show the tray" },
        { "fabric-query", verb_fabric_query, "", "UUID PARTITION NAME CLIQUE of each GPU" },
        { "partition", verb_partition, "VERB …", "list | create | add | remove | delete | assign" },
        { "tenant", verb_tenant, "VERB GPU …", "write | read | hold | load: use a GPU as a job does" },
        { "fail-reset", verb_fail_reset, "GPU… [--count N]", "let resets fail" },
        { "reset-lies", verb_reset_lies, "GPU… on|off", "let resets report success and change nothing" },
        { "lost", verb_lost, "GPU…", "let GPUs fall off the bus" },
        { "xid", verb_xid, "GPU NUMBER [--export]", "report an Xid, with what it entails" },
        { "recovery", verb_recovery, "GPU… ACTION", "demand a recovery action, by name or number" },
        { "settle", verb_settle, "GPU… TIME|never|default",
                        "how long the fabric takes after the next reset" },
        { "link", verb_link, "GPU LINK up|down", "take an NVLink down or up" },
        { "mig", verb_mig, "GPU… on|off", "switch MIG mode" },
        { "clique", verb_clique, "GPU… CLIQUE", "change the clique under the GPU, without a reset" },
        { "field-error", verb_field_error, "GPU FIELD CODE|off", "let one field value fail" },
        { "phantoms", verb_phantoms, "GPU N", "let N processes appear while the list is being read" },
        { "ecc", verb_ecc, "GPU corrected|uncorrected N", "count ECC errors" },
        { "remap", verb_remap, "GPU…", "let a row wait for its remapping" },
        { "hang", verb_hang, "on|off [--path FILE]", "let every call hang, in a sleep or on reading FILE" },
        { "init-error", verb_init_error, "CODE|off [--count N]", "let nvmlInit fail" },
        { "blank", verb_blank, "on|off", "let calls succeed without an answer" },
        { "heal", verb_heal, "[GPU…]", "take back all that was injected" },
};

int fail(const char *format, ...) {
        va_list args;

        (void) fputs("gpuagent-emulate: ", stderr);
        va_start(args, format);
        (void) vfprintf(stderr, format, args);
        va_end(args);
        (void) fputc('\n', stderr);
        return 1;
}

int fail_usage(const char *usage) {
        (void) fprintf(stderr, "gpuagent-emulate: usage: gpuagent-emulate %s\n", usage);
        return 2;
}

int fail_errno(int error, const char *what) {
        return fail("%s: %s", what, strerror(error < 0 ? -error : error));
}

int open_tray(Tray *ret) {
        int r;

        r = tray_edit(ret);
        if (r == -ENOENT)
                return fail("there is no emulated tray; \"gpuagent-emulate boot\" makes one");
        if (r == -EACCES)
                return fail("only root can change the tray");
        return r < 0 ? fail_errno(r, TRAY_PATH) : 0;
}

int save_tray(Tray *tray) {
        int r;

        r = tray_commit(tray);
        return r < 0 ? fail_errno(r, TRAY_PATH) : 0;
}

TrayGpu* name_gpu(const Tray *tray, const char *s) {
        TrayGpu *gpu;
        GpuId id;

        if (gpu_id_parse(s, &id) < 0) {
                (void) fail("\"%s\" is no GPU's index, UUID or bus id", s);
                return NULL;
        }
        gpu = tray_find_gpu(tray, &id);
        if (!gpu)
                (void) fail("there is no GPU %s", s);
        return gpu;
}

int change_gpus(char **args, void (*change)(Tray *tray, TrayGpu *gpu, const void *value),
                const void *value) {
        CLEANUP(tray_done) Tray tray = TRAY_INIT;
        int r;

        r = open_tray(&tray);
        if (r != 0)
                return r;

        for (; *args; args++) {
                CLEANUP(strv_free_ptr) char **list = NULL;

                if (list_parse(*args, &list) < 0)
                        return fail("\"%s\" is no list of GPUs", *args);
                STRV_FOREACH (item, list) {
                        TrayGpu *gpu = name_gpu(&tray, *item);

                        if (!gpu)
                                return 1;
                        change(&tray, gpu, value);
                }
        }
        return save_tray(&tray);
}

/* The width that printf has to fill for so many columns: an ellipsis has three bytes and one column. */
static int padding(const char *text, int columns) {
        for (; *text; text++)
                columns += (*text & 0xc0) == 0x80;
        return columns;
}

static int help(void) {
        (void) puts("gpuagent-emulate [OPTION…] VERB …\n\n"
                    "Changes the emulated tray. A GPU is an index, a UUID or a PCI bus id, or a list of "
                    "them with\n"
                    "commas.\n\nVerbs:");
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
                (void) printf("  %-13s %-*s %s\n", verbs[i].name, padding(verbs[i].arguments, 32),
                                verbs[i].arguments, verbs[i].help);
        (void) printf("\nOptions:\n"
                      "  -c, --config FILE    instead of " TRAY_CONFIG_PATH "\n"
                      "      --devices DIR    where the nvidiaN nodes are made\n"
                      "      --count N        how often a failure happens (without it: until it is taken "
                      "back)\n"
                      "      --path FILE      what a hanging call reads\n"
                      "      --id N           a new partition's id\n"
                      "      --clique N       a new partition's clique (its id)\n"
                      "      --load N         percent\n"
                      "      --memory N       MiB that a tenant uses\n"
                      "      --offset N       bytes into the GPU's memory\n"
                      "      --time T         how long a tenant stays (without it: until it is stopped)\n"
                      "      --export         print the kernel's line in the journal's export format\n"
                      "  -h, --help\n"
                      "      --version\n");
        return 0;
}

enum {
        OPTION_DEVICES = 256,
        OPTION_COUNT,
        OPTION_PATH,
        OPTION_ID,
        OPTION_CLIQUE,
        OPTION_LOAD,
        OPTION_MEMORY,
        OPTION_OFFSET,
        OPTION_TIME,
        OPTION_EXPORT,
        OPTION_VERSION,
};

static const struct option long_options[] = {
        { "config", required_argument, NULL, 'c' },
        { "devices", required_argument, NULL, OPTION_DEVICES },
        { "count", required_argument, NULL, OPTION_COUNT },
        { "path", required_argument, NULL, OPTION_PATH },
        { "id", required_argument, NULL, OPTION_ID },
        { "clique", required_argument, NULL, OPTION_CLIQUE },
        { "load", required_argument, NULL, OPTION_LOAD },
        { "memory", required_argument, NULL, OPTION_MEMORY },
        { "offset", required_argument, NULL, OPTION_OFFSET },
        { "time", required_argument, NULL, OPTION_TIME },
        { "export", no_argument, NULL, OPTION_EXPORT },
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, OPTION_VERSION },
        {},
};

/* 0 · -EINVAL · 1: done already. */
static int read_option(int option, const char *value, EmulateOptions *options) {
        int r;

        switch (option) {
        case 'c': options->config = value; return 0;
        case OPTION_DEVICES: options->devices = value; return 0;
        case OPTION_PATH: options->path = value; return 0;
        case OPTION_COUNT: return parse_u32(value, TRAY_COUNT_UNLIMITED - 1, &options->count);
        case OPTION_ID: return parse_u32(value, PARTITION_ID_MAX, &options->id);
        case OPTION_CLIQUE: return parse_u32(value, UINT32_MAX - 1, &options->clique);
        case OPTION_LOAD: return parse_u32(value, 100, &options->load);
        case OPTION_MEMORY:
                r = parse_u64(value, UINT64_MAX >> 20, &options->memory);
                options->memory <<= 20;
                return r;
        case OPTION_OFFSET: return parse_u64(value, INT64_MAX, &options->offset);
        case OPTION_TIME: return parse_duration(value, &options->time_usec);
        case OPTION_EXPORT: options->export = true; return 0;
        case 'h': (void) help(); return 1;
        case OPTION_VERSION: (void) puts("gpuagent-emulate " VERSION); return 1;
        default: return -EINVAL;
        }
}

int main(int argc, char **argv) {
        EmulateOptions options = {
                .count = TRAY_COUNT_UNLIMITED,
                .id = UINT32_MAX,
                .clique = UINT32_MAX,
                .load = 80,
                .time_usec = USEC_INFINITY,
        };

        for (;;) {
                int option = getopt_long(argc, argv, "c:h", long_options, NULL);
                int r;

                if (option < 0)
                        break;
                if (option == '?')
                        return 2;
                r = read_option(option, optarg, &options);
                if (r > 0)
                        return 0;
                if (r < 0) {
                        (void) fail("\"%s\" is not a value of this option", optarg ?: "");
                        return 2;
                }
        }

        if (!argv[optind])
                return fail_usage("[OPTION…] VERB …; --help lists the verbs");
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
                if (streq(argv[optind], verbs[i].name))
                        return verbs[i].run(argv + optind + 1, &options);
        (void) fail("there is no verb \"%s\"; --help lists them", argv[optind]);
        return 2;
}
