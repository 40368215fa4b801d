/* SPDX-License-Identifier: MIT */
/* The trays that an operator looks after, and which of their GPUs are in which partition. */
#pragma once

#include "agent/config/client-config.h"
#include "cli/trays.h"

/* NVIDIA's numbers: none, those for sites, and the one that all GPUs are in at first. */
#define PARTITION_NONE     0U
#define PARTITION_USER_MAX 32765U
#define PARTITION_DEFAULT  32766U

#define PARTITION_NAME_SIZE 64

typedef struct Partition {
        uint32_t id;
        char name[PARTITION_NAME_SIZE]; /* "" for none */
} Partition;

/* One GPU that a command is about. */
typedef struct Member {
        size_t tray; /* its place among the domain's trays */
        uint32_t index;
        char uuid[GPU_UUID_SIZE];
        Partition before; /* where it was at first; id UNKNOWN_U32 if its tray cannot tell */
} Member;

typedef struct Domain {
        const Options *options;
        ClientConfig *config;
        char **hosts; /* those of -H, else client.trays, else those that are named, else this one */
        HostTrays trays;
        Member *members; /* those chosen so far, by tray and index, each once */
        size_t n_members;
} Domain;

void domain_done(Domain *domain);

/* Reads the configuration and asks all trays. `specs` are the GPUs that are named, NULL-terminated or
 * NULL. 0 and *ret (to be given to domain_done), each tray with its failure · negative, and *failure says
 * why. */
int domain_open(const Options *options, char *const *specs, Domain *ret, Failure *failure);

/* Asks the trays that have answered once more, after a look of their agents at the driver. A tray that is
 * gone then has its failure. */
void domain_refresh(Domain *domain);

/* The same for one tray, by its place, and without a look. */
void domain_reread(Domain *domain, size_t place);

/* Chooses the GPUs that a spec names (see gpu-spec.h), or all that are in a partition. 0 · negative, and
 * *failure says which is not there. */
int domain_choose(Domain *domain, const char *spec, Failure *failure);
int domain_choose_partition(Domain *domain, uint32_t id, Failure *failure);

bool domain_is_chosen(const Domain *domain, const GpuView *gpu);

/* The GPU of a member as its tray last said; NULL if it is there no more. */
const GpuView* domain_gpu(const Domain *domain, const Member *member);

/* The members from members[i] on that are of one tray: their number. */
size_t domain_same_tray(const Domain *domain, size_t i);

/* "GPUs 0,1,2,3" or "GPU 0". 0 and *ret (to be freed) · -ENOMEM. */
int members_format(const Member *members, size_t n, char **ret);

/* The partition with this number or name. 0 and *ret · -ENOENT or another negative, and *failure says that
 * there is none, or more than one. */
int domain_find_partition(const Domain *domain, const char *text, Partition *ret, Failure *failure);

/* The partition of a GPU, by its tray. */
void partition_of_gpu(const GpuView *gpu, Partition *ret);

/* Up to 63 letters, digits, '.', '_' and '-', the first no '-': nothing that a shell or an option parser
 * makes something of. */
bool partition_name_is_plain(const char *name);

/* "7 tray2", or "7" without a name; "none that is known". */
void partition_format(const Partition *partition, char *ret, size_t size);

/* The lowest number of a partition that no GPU is in, nor in a clique of that number, which would be the
 * partition's. */
uint32_t domain_free_id(const Domain *domain);

/* Whether every tray has answered; *failure names the first that has not. */
bool domain_is_complete(const Domain *domain, Failure *failure);
