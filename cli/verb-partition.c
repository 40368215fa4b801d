/* SPDX-License-Identifier: MIT */
/* gpuagentctl partition: the partitions of all trays and their GPUs, and the operator's changes of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/text.h"
#include "cli/change-wait.h"
#include "cli/change.h"
#include "cli/hosts.h"
#include "cli/table.h"

/* Lines of the list: the GPUs of one tray that are in the same partition. */
typedef struct Line {
        Partition partition;
        const char *tray;
        size_t place; /* of the tray, and of the GPU */
        uint32_t index;
} Line;

static int compare_lines(const void *a, const void *b) {
        const Line *x = a, *y = b;

        if (x->partition.id != y->partition.id)
                return x->partition.id < y->partition.id ? -1 : 1;
        if (x->place != y->place)
                return x->place < y->place ? -1 : 1;
        return (x->index > y->index) - (x->index < y->index);
}

static size_t collect_lines(const Domain *domain, Line *ret) {
        size_t n = 0;

        for (size_t i = 0; i < domain->trays.n_trays; i++) {
                const HostTray *tray = &domain->trays.trays[i];

                for (size_t j = 0; j < tray->tray.n_gpus; j++) {
                        ret[n] = (Line){
                                .tray = tray->name,
                                .place = i,
                                .index = tray->tray.gpus[j].index,
                        };
                        partition_of_gpu(&tray->tray.gpus[j], &ret[n++].partition);
                }
        }
        qsort(ret, n, sizeof *ret, compare_lines);
        return n;
}

static int print_lines(const Options *options, const Line *lines, size_t n) {
        static const char *const columns[] = { "PARTITION", "NAME", "TRAY", "GPUS" };
        CLEANUP(table_free_ptr) Table *table = NULL;
        CLEANUP(free_ptr) uint32_t *indexes = calloc(n + 1, sizeof *indexes);
        int r;

        if (!indexes)
                return -ENOMEM;
        r = table_new(options, columns, ELEMENTSOF(columns), &table);
        if (r < 0)
                return r;
        for (size_t i = 0, same; i < n; i += same) {
                for (same = 0; i + same < n && lines[i + same].partition.id == lines[i].partition.id &&
                                lines[i + same].place == lines[i].place;
                                same++)
                        indexes[same] = lines[i + same].index;
                table_add_u32(table, lines[i].partition.id);
                table_add_string(table, lines[i].partition.name);
                table_add_string(table, lines[i].tray);
                table_add_list(table, indexes, same);
        }
        return table_print(table);
}

static int partition_list(Domain *domain, char **arguments, Failure *failure) {
        CLEANUP(free_ptr) Line *lines = NULL;
        size_t n = 0;
        int r = -ENOMEM;

        if (domain->trays.n_trays == 1 && !domain_is_complete(domain, failure))
                return -EIO;
        for (size_t i = 0; i < domain->trays.n_trays; i++) {
                n += domain->trays.trays[i].tray.n_gpus;
                if (!host_tray_is_there(&domain->trays.trays[i]))
                        host_tray_report(&domain->trays.trays[i]);
        }
        lines = calloc(n + 1, sizeof *lines);
        if (lines)
                r = print_lines(domain->options, lines, collect_lines(domain, lines));
        if (r < 0)
                return failure_errno(failure, r, "cannot print the partitions");
        return domain_is_complete(domain, NULL) ? CLI_DONE : CLI_FAILED;
}

/* What the GPUs wait for, and how it is done. */
static void say_pending(const Domain *domain, size_t first, size_t n) {
        const HostTray *tray = &domain->trays.trays[domain->members[first].tray];
        CLEANUP(free_ptr) Member *pending = calloc(n, sizeof *pending);
        CLEANUP(free_ptr) char *list = NULL;
        bool local = host_is_local(tray->host);
        size_t n_pending = 0;

        for (size_t i = first; pending && i < first + n; i++) {
                const GpuView *gpu = domain_gpu(domain, &domain->members[i]);

                if (gpu && gpu->reset_pending)
                        pending[n_pending++] = domain->members[i];
        }
        if (n_pending == 0 || members_format(pending, n_pending, &list) < 0)
                return;
        print_line(stdout,
                        "%s: %s keep%s %s old clique until reset: gpuagentctl%s%s reset -i %s  "
                        "(GPUs must be idle; with Slurm the epilog resets a job's GPUs when it ends)",
                        tray->name, list, n_pending == 1 ? "s" : "", n_pending == 1 ? "its" : "their",
                        local ? "" : " -H ", local ? "" : tray->host, strchr(list, ' ') + 1);
}

/* A tray whose GPUs are not all in the same partition is in no block of Slurm's topology. */
static void warn_of_split(const Domain *domain, size_t place) {
        const HostTray *tray = &domain->trays.trays[place];
        const GpuView *first = tray->tray.gpus;

        for (size_t i = 1; i < tray->tray.n_gpus; i++)
                if (tray->tray.gpus[i].partition != first->partition) {
                        print_complaint("warning: the GPUs of %s are in more than one partition "
                                        "(%u and %u): Slurm's topology has no place for such a tray",
                                        tray->name, first->partition, tray->tray.gpus[i].partition);
                        return;
                }
}

/* Another operator may have taken the same GPUs, or the same number, at the same time. Of two, the one who
 * looks last sees it; `alone`: nobody else is to be in the partition. */
static int check_change(const Domain *domain, const Partition *to, bool alone, Failure *failure) {
        for (size_t i = 0; i < domain->trays.n_trays; i++) {
                const HostTray *tray = &domain->trays.trays[i];

                for (size_t j = 0; j < tray->tray.n_gpus; j++) {
                        const GpuView *gpu = &tray->tray.gpus[j];
                        bool ours = domain_is_chosen(domain, gpu);

                        if (ours && gpu->partition != to->id)
                                return failure_set(failure, CLI_FAILED,
                                                "GPU %u of %s is not in partition %u: somebody else has "
                                                "moved it meanwhile",
                                                gpu->index, tray->name, to->id);
                        if (!ours && alone && gpu->partition == to->id)
                                return failure_set(failure, CLI_FAILED,
                                                "GPU %u of %s is in partition %u, too: somebody else has "
                                                "made it meanwhile; remove your GPUs, and take another --id",
                                                gpu->index, tray->name, to->id);
                }
        }
        return 0;
}

/* Moves what was chosen, and says what comes next. */
static int change(Domain *domain, const Partition *to, bool alone, const char *done, Failure *failure) {
        int r;

        r = domain_change(domain, to, failure);
        if (r < 0)
                return r;
        if (!domain->options->quiet)
                print_line(stdout, "%s", done);
        (void) fflush(stdout);
        domain_refresh(domain);
        for (size_t i = 0, n; i < domain->n_members; i += n) {
                n = domain_same_tray(domain, i);
                if (!domain->options->quiet && !domain->options->until_reset)
                        say_pending(domain, i, n);
                warn_of_split(domain, domain->members[i].tray);
        }
        r = check_change(domain, to, alone, failure);
        if (r < 0)
                return r;
        return domain->options->until_reset ? change_wait(domain, to) : CLI_DONE;
}

/* Refuses GPUs that are in another partition than `wanted`. In none are those that are to join, and those
 * that the same command has removed before it was stopped. */
static int check_members(const Domain *domain, const Partition *wanted, bool joining, Failure *failure) {
        for (size_t i = 0; i < domain->n_members; i++) {
                const Member *member = &domain->members[i];
                const char *tray = domain->trays.trays[member->tray].name;
                char where[96];

                if (member->before.id == wanted->id || member->before.id == PARTITION_NONE ||
                                (joining && member->before.id == UNKNOWN_U32))
                        continue;
                partition_format(&member->before, where, sizeof where);
                if (joining)
                        return failure_set(failure, CLI_FAILED,
                                        "GPU %u of %s is in partition %s; remove it there first",
                                        member->index, tray, where);
                return failure_set(failure, CLI_FAILED, "GPU %u of %s is not in partition %u, but in %s",
                                member->index, tray, wanted->id, where);
        }
        return 0;
}

/* A GPU of which its tray knows no partition (nobody has told it since its boot) may be in this one. Refuses
 * that, where its clique says so and it was not chosen. */
static int check_unknown(const Domain *domain, uint32_t id, Failure *failure) {
        for (size_t i = 0; i < domain->trays.n_trays; i++)
                for (size_t j = 0; j < domain->trays.trays[i].tray.n_gpus; j++) {
                        const GpuView *gpu = &domain->trays.trays[i].tray.gpus[j];

                        if (gpu->partition == UNKNOWN_U32 && gpu->clique_id == id &&
                                        !domain_is_chosen(domain, gpu))
                                return failure_set(failure, CLI_FAILED,
                                                "GPU %u of %s is in clique %u, and its partition is not "
                                                "known: see AFTER A BOOT in gpuagent-fabric(7)",
                                                gpu->index, domain->trays.trays[i].name, id);
                }
        return 0;
}

static int choose_all(Domain *domain, char **specs, Failure *failure) {
        int r = 0;

        STRV_FOREACH (spec, specs)
                if (r >= 0)
                        r = domain_choose(domain, *spec, failure);
        return r;
}

static int check_name(const char *name, Failure *failure) {
        uint32_t number;

        if (!partition_name_is_plain(name) || parse_u32(name, UINT32_MAX, &number) >= 0)
                return failure_set(failure, CLI_USAGE,
                                "'%s' is no name of a partition: up to 63 letters, digits, '.', '_' and "
                                "'-', the first no '-', and no number",
                                name);
        return 0;
}

/* Whether all GPUs of a partition were chosen. */
static bool is_chosen_whole(const Domain *domain, uint32_t id) {
        for (size_t i = 0; i < domain->trays.n_trays; i++)
                for (size_t j = 0; j < domain->trays.trays[i].tray.n_gpus; j++) {
                        const GpuView *gpu = &domain->trays.trays[i].tray.gpus[j];

                        if (gpu->partition == id && !domain_is_chosen(domain, gpu))
                                return false;
                }
        return true;
}

/* The number of the partition that is to be made: of --id, or a free one. One of that name and number which
 * has no other GPUs than it is to have is what the same command made before it was stopped. */
static int find_id(const Domain *domain, const char *name, uint32_t *ret, Failure *failure) {
        const char *text = domain->options->ids;
        uint32_t id = PARTITION_NONE;
        Partition there;
        int r;

        if (text && (parse_u32(text, PARTITION_USER_MAX, &id) < 0 || id == PARTITION_NONE))
                return failure_set(failure, CLI_USAGE, "--id %s: a partition is a number from 1 to %u", text,
                                PARTITION_USER_MAX);
        r = domain_find_partition(domain, name, &there, failure);
        if (r == -ENOENT && text)
                r = domain_find_partition(domain, text, &there, failure);
        if (r == -ENOENT) {
                *ret = text ? id : domain_free_id(domain);
                return 0;
        }
        if (r < 0)
                return r;
        if (there.id > PARTITION_USER_MAX || !streq(there.name, name) || (text && there.id != id) ||
                        !is_chosen_whole(domain, there.id))
                return failure_set(failure, CLI_FAILED, "there is a partition %u%s%s already", there.id,
                                there.name[0] ? " " : "", there.name);
        *ret = there.id;
        return 0;
}

static int partition_create(Domain *domain, char **arguments, Failure *failure) {
        Partition to = {};
        char done[128];
        int r;

        /* A tray that does not answer may have GPUs of that number: they would share a clique. */
        if (!domain_is_complete(domain, failure))
                return -EIO;
        r = check_name(arguments[0], failure);
        if (r >= 0)
                r = choose_all(domain, arguments + 1, failure);
        if (r >= 0)
                r = find_id(domain, arguments[0], &to.id, failure);
        if (r >= 0)
                r = check_unknown(domain, to.id, failure);
        if (r >= 0)
                r = check_members(domain, &to, true, failure);
        if (r < 0)
                return r;
        (void) snprintf(to.name, sizeof to.name, "%s", arguments[0]);
        (void) snprintf(done, sizeof done, "partition created: %u %s", to.id, to.name);
        return change(domain, &to, true, done, failure);
}

static int partition_move(Domain *domain, char **arguments, bool joining, Failure *failure) {
        const Partition none = { .id = PARTITION_NONE };
        char name[96], done[128];
        Partition named;
        int r;

        r = domain_find_partition(domain, arguments[0], &named, failure);
        if (r >= 0)
                r = choose_all(domain, arguments + 1, failure);
        if (r >= 0)
                r = check_members(domain, &named, joining, failure);
        if (r < 0)
                return r;
        partition_format(&named, name, sizeof name);
        (void) snprintf(done, sizeof done, "GPUs %s: %s", joining ? "added" : "removed", name);
        return change(domain, joining ? &named : &none, false, done, failure);
}

static int partition_add(Domain *domain, char **arguments, Failure *failure) {
        return partition_move(domain, arguments, true, failure);
}

static int partition_remove(Domain *domain, char **arguments, Failure *failure) {
        return partition_move(domain, arguments, false, failure);
}

/* Of a tray that does not answer nobody knows whether its GPUs are in it. */
static int partition_delete(Domain *domain, char **arguments, Failure *failure) {
        const Partition none = { .id = PARTITION_NONE };
        Partition from;
        int r;

        if (!domain_is_complete(domain, failure))
                return -EIO;
        r = domain_find_partition(domain, arguments[0], &from, failure);
        if (r >= 0 && from.id == PARTITION_DEFAULT)
                return failure_set(failure, CLI_FAILED, "the default partition stays; remove its GPUs");
        if (r >= 0)
                r = domain_choose_partition(domain, from.id, failure);
        if (r >= 0)
                r = check_unknown(domain, from.id, failure);
        if (r < 0)
                return r;
        return change(domain, &none, false, "partition deleted; its GPUs are in no partition", failure);
}

static const struct {
        const char *name;
        const char *arguments;
        int n_least, n_most; /* -1: any number */
        uint32_t options;
        /* a CliExit · negative, and *failure */
        int (*run)(Domain *domain, char **arguments, Failure *failure);
        int first_spec; /* the argument from which on GPUs are named; -1: none are */
} subverbs[] = {
        { "list", "", 0, 0, OPTION_HOST | OPTION_JSON | OPTION_LEGEND, partition_list, -1 },
        { "create", " NAME [--id N] GPU...", 2, -1, OPTION_HOST | OPTION_ID | OPTION_WAIT, partition_create,
                        1 },
        { "add", " PARTITION GPU...", 2, -1, OPTION_HOST | OPTION_WAIT, partition_add, 1 },
        { "remove", " PARTITION GPU...", 2, -1, OPTION_HOST | OPTION_WAIT, partition_remove, 1 },
        { "delete", " PARTITION", 1, 1, OPTION_HOST | OPTION_WAIT, partition_delete, -1 },
};

int verb_partition(const Options *options, int argc, char **argv) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(domain_done) Domain domain = {};
        const char *name = argc > 1 ? argv[1] : "list";
        int n = argc > 2 ? argc - 2 : 0, r;
        char **arguments = argv + argc - n;

        for (size_t i = 0; i < ELEMENTSOF(subverbs); i++) {
                if (!streq(name, subverbs[i].name))
                        continue;
                if (n < subverbs[i].n_least || (subverbs[i].n_most >= 0 && n > subverbs[i].n_most) ||
                                (options->given & ~subverbs[i].options) != 0)
                        return fail_with(CLI_USAGE, "the command is: partition %s%s", name,
                                        subverbs[i].arguments);
                r = domain_open(options,
                                subverbs[i].first_spec < 0 ? NULL : arguments + subverbs[i].first_spec,
                                &domain, &failure);
                if (r >= 0)
                        r = subverbs[i].run(&domain, arguments, &failure);
                return r < 0 ? failure_report(&failure) : r;
        }
        return fail_with(CLI_USAGE,
                        "'partition %s' is unknown; the command is: partition list|create|add|remove|delete",
                        name);
}
