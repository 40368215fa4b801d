/* SPDX-License-Identifier: MIT */
/* Names of nodes as Slurm writes them: "sched-worker[1-2,5],login". */
#pragma once

#define NODE_LIST_MAX 4096

/* The names, which are sorted as people count, as one list. 0 and *ret (to be freed) · -ENOMEM. */
int node_list_format(char *const *names, char **ret);

/* The names of a list with up to one bracket a name. 0 and *ret (a strv to be freed) · -EINVAL · -E2BIG
 * more than NODE_LIST_MAX · -ENOMEM. */
int node_list_parse(const char *text, char ***ret);
