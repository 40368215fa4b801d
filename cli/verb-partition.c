/* SPDX-License-Identifier: MIT */
/* gpuagentctl partition: the partitions and their GPUs. */
#include "agent/base/text.h"
#include "cli/groups.h"

int verb_partition(const Options *options, int argc, char **argv) {
        static const char *const columns[] = { "PARTITION", "NAME", "GPUS" };

        if (argc > 1 && !streq(argv[1], "list"))
                return fail_with(CLI_USAGE, "'partition %s' is unknown; the command is: partition [list]",
                                argv[1]);
        return groups_print(options, "ListPartitions", GROUP_NUMBER_NAME, columns);
}
