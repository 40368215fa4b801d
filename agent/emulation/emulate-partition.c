/* SPDX-License-Identifier: MIT */
/* gpuagent-emulate partition: what a fabric controller does with the tray. A GPU takes what changed at its
 * next reset. */
#include <stdio.h>
#include <string.h>

#include "agent/base/text.h"
#include "agent/emulation/boot.h"
#include "agent/emulation/emulate.h"

/* Above it is the default partition, which is there without GPUs, too. */
#define PARTITION_SITE_MAX 32765U

static int save(Tray *tray) {
        int r;

        /* The file first: what the running tray shows must be there after a boot, too. */
        r = partitions_save(tray);
        return r < 0 ? fail_errno(r, TRAY_PARTITIONS_PATH) : save_tray(tray);
}

static TrayPartition* name_partition(const Tray *tray, const char *s) {
        TrayPartition *partition = NULL;
        uint32_t id;

        if (parse_u32(s, PARTITION_ID_MAX, &id) >= 0)
                partition = tray_find_partition(tray, id);
        if (!partition)
                partition = tray_find_partition_by_name(tray, s);
        if (!partition)
                (void) fail("there is no partition %s", s);
        return partition;
}

/* Calls `change` for each GPU named. 0, or the exit code. */
static int each_gpu(Tray *tray, char **args, int (*change)(Tray *tray, TrayGpu *gpu, uint32_t partition),
                uint32_t partition) {
        for (; *args; args++) {
                CLEANUP(strv_free_ptr) char **list = NULL;

                if (list_parse(*args, &list) < 0)
                        return fail("\"%s\" is no list of GPUs", *args);
                STRV_FOREACH (item, list) {
                        TrayGpu *gpu = name_gpu(tray, *item);
                        int r;

                        if (!gpu)
                                return 1;
                        r = change(tray, gpu, partition);
                        if (r != 0)
                                return r;
                }
        }
        return 0;
}

static int gpu_join(Tray *tray, TrayGpu *gpu, uint32_t partition) {
        if (gpu->partition != PARTITION_NONE && gpu->partition != partition)
                return fail("GPU %u is in partition %u; remove it there first", gpu->index, gpu->partition);
        gpu->partition = partition;
        return 0;
}

static int gpu_leave(Tray *tray, TrayGpu *gpu, uint32_t partition) {
        if (gpu->partition != partition)
                return fail("GPU %u is not in partition %u", gpu->index, partition);
        gpu->partition = PARTITION_NONE;
        return 0;
}

static int gpu_move(Tray *tray, TrayGpu *gpu, uint32_t partition) {
        gpu->partition = partition;
        return 0;
}

static bool name_is_valid(const char *s) {
        size_t n = strlen(s);

        if (n == 0 || n >= TRAY_NAME_SIZE)
                return false;
        for (; *s != '\0'; s++)
                if (*s <= ' ' || *s > '~')
                        return false;
        return true;
}

static uint32_t free_id(const Tray *tray) {
        uint32_t id = 1;

        while (tray_find_partition(tray, id))
                id++;
        return id;
}

/* 0 and *ret, or the exit code. */
static int make_partition(Tray *tray, const char *name, uint32_t id, uint32_t clique, TrayPartition **ret) {
        int r;

        if (!name_is_valid(name))
                return fail("a partition's name has 1 to %d printable characters without spaces",
                                TRAY_NAME_SIZE - 1);
        if (id == PARTITION_NONE || tray_find_partition(tray, id) || tray_find_partition_by_name(tray, name))
                return fail("there is a partition %u or %s already", id, name);

        r = tray_add_partition(tray, ret);
        if (r < 0)
                return fail_errno(r, "cannot add a partition");
        (*ret)->id = id;
        (*ret)->clique = clique;
        (void) snprintf((*ret)->name, sizeof(*ret)->name, "%s", name);
        return 0;
}

static int partition_list(Tray *tray, char **args, const EmulateOptions *options) {
        (void) printf("%-6s %-20s %-7s %s\n", "ID", "NAME", "CLIQUE", "GPUS");
        for (uint32_t i = 0; i < tray->header->n_partitions; i++) {
                const TrayPartition *partition = &tray->partitions[i];
                const char *separator = "";

                (void) printf("%-6u %-20s %-7u ", partition->id, partition->name, partition->clique);
                for (uint32_t k = 0; k < tray->header->n_gpus; k++)
                        if (tray->gpus[k].partition == partition->id) {
                                (void) printf("%s%u", separator, k);
                                separator = ",";
                        }
                (void) puts(*separator == '\0' ? "-" : "");
        }
        return 0;
}

static int partition_create(Tray *tray, char **args, const EmulateOptions *options) {
        uint32_t id = options->id == UINT32_MAX ? free_id(tray) : options->id;
        TrayPartition *partition;
        int r;

        r = make_partition(
                        tray, args[0], id, options->clique == UINT32_MAX ? id : options->clique, &partition);
        if (r == 0)
                r = each_gpu(tray, args + 1, gpu_join, id);
        if (r == 0)
                r = save(tray);
        if (r == 0)
                (void) printf("partition created: %u %s\n", id, args[0]);
        return r;
}

static int partition_add(Tray *tray, char **args, const EmulateOptions *options) {
        TrayPartition *partition = name_partition(tray, args[0]);
        int r;

        if (!partition)
                return 1;
        r = each_gpu(tray, args + 1, gpu_join, partition->id);
        if (r == 0)
                r = save(tray);
        if (r == 0)
                (void) printf("GPUs added: %u %s\n", partition->id, partition->name);
        return r;
}

static int partition_remove(Tray *tray, char **args, const EmulateOptions *options) {
        TrayPartition *partition = name_partition(tray, args[0]);
        int r;

        if (!partition)
                return 1;
        r = each_gpu(tray, args + 1, gpu_leave, partition->id);
        if (r == 0)
                r = save(tray);
        if (r == 0)
                (void) printf("GPUs removed: %u %s\n", partition->id, partition->name);
        return r;
}

static int partition_delete(Tray *tray, char **args, const EmulateOptions *options) {
        TrayPartition *partition = name_partition(tray, args[0]);
        int r;

        if (!partition)
                return 1;
        for (uint32_t i = 0; i < tray->header->n_gpus; i++)
                if (tray->gpus[i].partition == partition->id)
                        tray->gpus[i].partition = PARTITION_NONE;
        *partition = tray->partitions[--tray->header->n_partitions];

        r = save(tray);
        if (r == 0)
                (void) puts("partition deleted; its GPUs are in no partition");
        return r;
}

static bool partition_is_empty(const Tray *tray, uint32_t id) {
        for (uint32_t i = 0; i < tray->header->n_gpus; i++)
                if (tray->gpus[i].partition == id)
                        return false;
        return true;
}

/* A partition is of the whole domain; of one that has no GPU here any more this tray knows nothing. */
static void forget_empty(Tray *tray) {
        for (uint32_t i = tray->header->n_partitions; i > 0; i--)
                if (tray->partitions[i - 1].id <= PARTITION_SITE_MAX &&
                                partition_is_empty(tray, tray->partitions[i - 1].id))
                        tray->partitions[i - 1] = tray->partitions[--tray->header->n_partitions];
}

/* assign ID NAME GPU…: what an operator's helper calls, whatever the partitions were before. */
static int partition_assign(Tray *tray, char **args, const EmulateOptions *options) {
        TrayPartition *partition;
        uint32_t id;
        int r;

        if (parse_u32(args[0], PARTITION_ID_MAX, &id) < 0)
                return fail("\"%s\" is no partition's id", args[0]);
        forget_empty(tray);
        if (id != PARTITION_NONE && !tray_find_partition(tray, id)) {
                r = make_partition(tray, args[1], id, options->clique == UINT32_MAX ? id : options->clique,
                                &partition);
                if (r != 0)
                        return r;
        }
        r = each_gpu(tray, args + 2, gpu_move, id);
        if (r != 0)
                return r;
        forget_empty(tray);
        return save(tray);
}

static const struct {
        const char *name;
        int (*run)(Tray *tray, char **args, const EmulateOptions *options);
        size_t min_args;
        size_t max_args;
} partition_verbs[] = {
        { "list", partition_list, 0, 0 },
        { "create", partition_create, 1, SIZE_MAX },
        { "add", partition_add, 2, SIZE_MAX },
        { "remove", partition_remove, 2, SIZE_MAX },
        { "delete", partition_delete, 1, 1 },
        { "assign", partition_assign, 3, SIZE_MAX },
};

int verb_partition(char **args, const EmulateOptions *options) {
        CLEANUP(tray_done) Tray tray = TRAY_INIT;
        const char *verb = *args ?: "list";
        size_t n = *args ? strv_length(++args) : 0;
        int r;

        for (size_t i = 0; i < ELEMENTSOF(partition_verbs); i++) {
                if (!streq(partition_verbs[i].name, verb))
                        continue;
                if (n < partition_verbs[i].min_args || n > partition_verbs[i].max_args)
                        break;
                r = open_tray(&tray);
                if (r != 0)
                        return r;
                if (!tray.header->model.cluster)
                        return fail("GPUs of this kind (%s) have no partitions", tray.header->model.preset);
                return partition_verbs[i].run(&tray, args, options);
        }
        return fail_usage("partition list | create NAME [--id N] [--clique N] GPU… | add PART GPU… | "
                          "remove PART GPU… | delete PART | assign ID NAME GPU…");
}
