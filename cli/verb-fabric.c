/* SPDX-License-Identifier: MIT */
/* gpuagentctl fabric: the NVLink fabric over all trays, by domain, tray or link. */
#include <stdlib.h>
#include <string.h>

#include "agent/base/array.h"
#include "agent/base/text.h"
#include "agent/config/client-config.h"
#include "cli/table.h"
#include "cli/trays.h"

/* Numbers, each once, the smallest first. */
typedef struct NumberSet {
        uint32_t *values;
        size_t n;
} NumberSet;

/* What some GPUs have in common. */
typedef struct Summary {
        const char *cluster; /* "" for none */
        size_t n_trays;
        uint32_t n_gpus, n_pending, n_links, n_links_active;
        NumberSet partitions, cliques;
        const char *health; /* the worst */
} Summary;

typedef struct Summaries {
        Summary *summaries;
        size_t n;
} Summaries;

static void summary_done(Summary *summary) {
        free(summary->partitions.values);
        free(summary->cliques.values);
}

static void summaries_done(Summaries *all) {
        for (size_t i = 0; i < all->n; i++)
                summary_done(&all->summaries[i]);
        free(all->summaries);
}

/* One that is not known is no member. */
static int number_set_add(NumberSet *set, uint32_t value) {
        size_t i = 0;
        int r;

        while (i < set->n && set->values[i] < value)
                i++;
        if (value == UNKNOWN_U32 || (i < set->n && set->values[i] == value))
                return 0;
        r = array_reserve(&set->values, set->n, 1);
        if (r < 0)
                return r;
        memmove(set->values + i + 1, set->values + i, (set->n - i) * sizeof *set->values);
        set->values[i] = value;
        set->n++;
        return 0;
}

static const char* worse_health(const char *a, const char *b) {
        static const char *const order[] = { "unhealthy", "degraded", "unknown", "healthy" };

        for (size_t i = 0; i < ELEMENTSOF(order); i++)
                if (streq(a, order[i]) || streq(b, order[i]))
                        return order[i];
        return a;
}

static int summary_add(Summary *summary, const GpuView *gpu) {
        int r;

        summary->n_gpus++;
        summary->n_pending += gpu->reset_pending;
        if (gpu->n_links != UNKNOWN_U32 && gpu->n_links_active != UNKNOWN_U32) {
                summary->n_links += gpu->n_links;
                summary->n_links_active += gpu->n_links_active;
        }
        summary->health = worse_health(summary->health ?: "healthy", gpu->health);
        r = number_set_add(&summary->partitions, gpu->partition);
        return r < 0 ? r : number_set_add(&summary->cliques, gpu->clique_id);
}

/* What both tables of summaries end with. */
static void add_summary(Table *table, const Summary *summary) {
        table_add_u32(table, summary->n_gpus);
        table_add_list(table, summary->partitions.values, summary->partitions.n);
        table_add_list(table, summary->cliques.values, summary->cliques.n);
        table_add_u32(table, summary->n_pending);
        table_add_u32(table, summary->n_links_active);
        table_add_u32(table,
                        summary->n_links_active == UNKNOWN_U32 ? UNKNOWN_U32
                                                               : summary->n_links - summary->n_links_active);
        table_add_string(table, summary->health);
}

static int summaries_get(Summaries *all, const char *cluster, Summary **ret) {
        int r;

        for (size_t i = 0; i < all->n; i++)
                if (streq(all->summaries[i].cluster, cluster)) {
                        *ret = &all->summaries[i];
                        return 0;
                }
        r = array_reserve(&all->summaries, all->n, 1);
        if (r < 0)
                return r;
        all->summaries[all->n] = (Summary){ .cluster = cluster };
        *ret = &all->summaries[all->n++];
        return 0;
}

/* Counts a tray once in each of its GPUs' clusters. */
static int summaries_add(Summaries *all, const Tray *tray) {
        for (size_t i = 0; i < tray->n_gpus; i++) {
                const GpuView *gpu = &tray->gpus[i];
                Summary *summary;
                bool counted = false;
                int r;

                for (size_t j = 0; j < i && !counted; j++)
                        counted = streq(tray->gpus[j].cluster_uuid, gpu->cluster_uuid);
                r = summaries_get(all, gpu->cluster_uuid, &summary);
                if (r >= 0)
                        r = summary_add(summary, gpu);
                if (r < 0)
                        return r;
                summary->n_trays += !counted;
        }
        return 0;
}

static int print_domain(const Options *options, const ClientConfig *config, const HostTrays *trays) {
        static const char *const columns[] = { "CLUSTER", "TRAYS", "GPUS", "PARTITIONS", "CLIQUES", "RESETS",
                "NVLINKS", "DOWN", "HEALTH" };
        CLEANUP(table_free_ptr) Table *table = NULL;
        CLEANUP(summaries_done) Summaries all = {};
        int r;

        r = table_new(options, columns, ELEMENTSOF(columns), &table);
        for (size_t i = 0; i < trays->n_trays && r >= 0; i++)
                r = summaries_add(&all, &trays->trays[i].tray);
        if (r < 0)
                return r;
        for (size_t i = 0; i < all.n; i++) {
                table_add_string(table, all.summaries[i].cluster);
                table_add_u32(table, (uint32_t) all.summaries[i].n_trays);
                add_summary(table, &all.summaries[i]);
        }
        return table_print(table);
}

/* From 1; unknown for a tray that is not in client.trays. */
static uint32_t find_slot(const ClientConfig *config, const char *name) {
        uint32_t slot = 1;

        for (char **tray = config->trays; tray && *tray; tray++, slot++)
                if (streq(host_name(*tray), name))
                        return slot;
        return UNKNOWN_U32;
}

/* A tray that is split over clusters has a row for each, and one that is not there a row without numbers. */
static int add_tray(Table *table, const HostTray *tray, uint32_t slot) {
        static const Summary missing = {
                .n_gpus = UNKNOWN_U32, .n_pending = UNKNOWN_U32, .n_links_active = UNKNOWN_U32
        };
        static const Summary empty = {};
        CLEANUP(summaries_done) Summaries all = {};
        int r;

        r = summaries_add(&all, &tray->tray);
        for (size_t i = 0; i < all.n || i == 0; i++) {
                const Summary *summary = host_tray_is_there(tray) ? &empty : &missing;

                if (i < all.n)
                        summary = &all.summaries[i];
                table_add_u32(table, slot);
                table_add_string(table, tray->name);
                table_add_string(table, summary->cluster);
                add_summary(table, summary);
        }
        return r;
}

static int print_trays(const Options *options, const ClientConfig *config, const HostTrays *trays) {
        static const char *const columns[] = { "SLOT", "TRAY", "CLUSTER", "GPUS", "PARTITIONS", "CLIQUES",
                "RESETS", "NVLINKS", "DOWN", "HEALTH" };
        CLEANUP(table_free_ptr) Table *table = NULL;
        int r;

        r = table_new(options, columns, ELEMENTSOF(columns), &table);
        for (size_t i = 0; i < trays->n_trays && r >= 0; i++)
                r = add_tray(table, &trays->trays[i], find_slot(config, trays->trays[i].name));
        return r < 0 ? r : table_print(table);
}

static int print_links(const Options *options, const ClientConfig *config, const HostTrays *trays) {
        static const char *const columns[] = { "TRAY", "GPU", "LINK", "STATE", "REMOTE" };
        CLEANUP(table_free_ptr) Table *table = NULL;
        int r;

        r = table_new(options, columns, ELEMENTSOF(columns), &table);
        if (r < 0)
                return r;
        for (size_t i = 0; i < trays->n_trays; i++)
                for (size_t j = 0; j < trays->trays[i].tray.n_gpus; j++) {
                        const GpuView *gpu = &trays->trays[i].tray.gpus[j];

                        for (size_t k = 0; k < gpu->n_links_known; k++) {
                                table_add_string(table, trays->trays[i].name);
                                table_add_u32(table, gpu->index);
                                table_add_u32(table, gpu->links[k].link);
                                table_add_string(table, gpu->links[k].active ? "up" : "down");
                                table_add_string(table, gpu->links[k].remote);
                        }
                }
        return table_print(table);
}

static const struct {
        const char *name;
        int (*print)(const Options *options, const ClientConfig *config, const HostTrays *trays);
} views[] = {
        { "domain", print_domain },
        { "trays", print_trays },
        { "links", print_links },
};

/* Names the trays that are missing in what was printed, or old there. The exit code. */
static int report_trays(const Options *options, const HostTrays *trays) {
        CLEANUP(failure_done) Failure failure = {};
        CliExit exit_code = CLI_DONE;

        if (host_trays_check_owners(trays, &failure) < 0)
                exit_code = failure_report(&failure);
        for (size_t i = 0; i < trays->n_trays; i++) {
                const HostTray *tray = &trays->trays[i];

                if (!host_tray_is_there(tray)) {
                        host_tray_report(tray);
                        exit_code = trays->n_trays == 1 ? tray->failure.exit_code : CLI_FAILED;
                } else if (!streq(tray->tray.driver_state, "ok") && !options->quiet) {
                        print_complaint("%s: the driver is %s", tray->name, tray->tray.driver_state);
                }
        }
        return exit_code;
}

int verb_fabric(const Options *options, int argc, char **argv) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(client_config_free_ptr) ClientConfig *config = NULL;
        CLEANUP(strv_free_ptr) char **hosts = NULL;
        CLEANUP(host_trays_done) HostTrays trays = {};
        size_t view = 0;
        int r;

        while (view < ELEMENTSOF(views) && (argc < 2 || !streq(argv[1], views[view].name)))
                view++;
        if (view == ELEMENTSOF(views))
                return fail_with(CLI_USAGE, "the command is: fabric domain|trays|links");

        r = host_trays_named(options, NULL, &config, &hosts, &failure);
        if (r < 0)
                return failure_report(&failure);
        r = host_trays_read(options, hosts, &trays);
        if (r >= 0)
                r = views[view].print(options, config, &trays);
        if (r < 0)
                return fail_with(CLI_FAILED, "cannot show the fabric: %s", strerror(-r));
        return report_trays(options, &trays);
}
