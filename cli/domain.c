/* SPDX-License-Identifier: MIT */
#include "cli/domain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/array.h"
#include "agent/base/text-stream.h"
#include "agent/base/text.h"
#include "cli/gpu-spec.h"

void domain_done(Domain *domain) {
        host_trays_done(&domain->trays);
        (void) strv_free(domain->hosts);
        (void) client_config_free(domain->config);
        free(domain->members);
        *domain = (Domain){};
}

/* The trays of the GPUs that are named. */
static int add_named(char ***hosts, char *const *specs) {
        int r = 0;

        for (; r >= 0 && specs && *specs; specs++) {
                CLEANUP(gpu_spec_done) GpuSpec spec = {};
                uint32_t number;
                size_t i;

                r = gpu_spec_parse(*specs, &spec);
                if (r == -EINVAL) {
                        r = 0; /* domain_choose() complains */
                        continue;
                }
                if (r >= 0 && parse_u32(spec.tray, UINT32_MAX, &number) < 0 &&
                                gpu_spec_find(&spec, *hosts, &i) < 0)
                        r = strv_append(hosts, spec.tray);
        }
        return r;
}

int domain_open(const Options *options, char *const *specs, Domain *ret, Failure *failure) {
        CLEANUP(domain_done) Domain domain = { .options = options };
        CLEANUP(strv_free_ptr) char **named = NULL;
        int r;

        r = add_named(&named, specs);
        if (r < 0)
                return failure_errno(failure, r, "cannot collect the trays");
        r = host_trays_named(options, named, &domain.config, &domain.hosts, failure);
        if (r < 0)
                return r;
        r = host_trays_read(options, domain.hosts, &domain.trays);
        if (r < 0)
                return failure_errno(failure, r, "cannot ask the trays");
        r = host_trays_check_owners(&domain.trays, failure);
        if (r < 0)
                return r;

        *ret = domain;
        domain = (Domain){};
        return 0;
}

/* One round of a call to each tray that is there: `start` for all of them, and then `finish`. */
static void start_refresh(HostTray *tray, Call *call) {
        CLEANUP(message_unref_ptr) sd_bus_message *message = NULL;
        int r;

        r = client_message_new(tray->client, MANAGER_PATH, MANAGER_INTERFACE, "Refresh", &message);
        if (r >= 0)
                r = sd_bus_message_append(message, "a{sv}", 0);
        if (r < 0)
                (void) failure_errno(&tray->failure, r, "cannot ask gpuagentd for a look");
        else
                (void) client_start(tray->client, message, 0, call, &tray->failure);
}

/* Who may not have the agent look gets what it knows. */
static void finish_refresh(HostTray *tray, Call *call, TrayQuestion *question) {
        CLEANUP(failure_done) Failure refused = {};

        if (call->slot && client_finish(tray->client, call, NULL, &refused) < 0 &&
                        refused.exit_code == CLI_NO_AGENT) {
                tray->failure = refused;
                refused = (Failure){};
        } else
                (void) tray_ask(tray->client, question, &tray->failure);
}

static void take_answer(HostTray *tray, TrayQuestion *question) {
        if (host_tray_is_there(tray)) {
                tray_done(&tray->tray);
                (void) tray_answer(tray->client, question, &tray->tray, &tray->failure);
        }
        tray_question_done(question);
}

void domain_refresh(Domain *domain) {
        size_t n = domain->trays.n_trays;
        CLEANUP(free_ptr) Call *calls = calloc(n + 1, sizeof *calls);
        CLEANUP(free_ptr) TrayQuestion *questions = calloc(n + 1, sizeof *questions);

        if (!calls || !questions)
                return; /* what was known is not new, and still true */
        for (size_t i = 0; i < n; i++)
                if (host_tray_is_there(&domain->trays.trays[i]))
                        start_refresh(&domain->trays.trays[i], &calls[i]);
        for (size_t i = 0; i < n; i++)
                if (host_tray_is_there(&domain->trays.trays[i]))
                        finish_refresh(&domain->trays.trays[i], &calls[i], &questions[i]);
        for (size_t i = 0; i < n; i++) {
                take_answer(&domain->trays.trays[i], &questions[i]);
                call_done(&calls[i]);
        }
}

void domain_reread(Domain *domain, size_t place) {
        HostTray *tray = &domain->trays.trays[place];
        TrayQuestion question = {};

        if (host_tray_is_there(tray))
                (void) tray_ask(tray->client, &question, &tray->failure);
        take_answer(tray, &question);
}

void partition_of_gpu(const GpuView *gpu, Partition *ret) {
        *ret = (Partition){ .id = gpu->partition };
        (void) snprintf(ret->name, sizeof ret->name, "%s", gpu->partition_name);
}

static int choose_gpu(Domain *domain, size_t tray, const GpuView *gpu, Failure *failure) {
        char uuid[GPU_UUID_SIZE];
        Member *place;
        size_t i = 0;
        int r;

        /* It becomes an argument of the fabric's controller. */
        if (gpu_uuid_parse(gpu->uuid, uuid) < 0)
                return failure_set(failure, CLI_FAILED, "%s says that it has '%s', which is no GPU",
                                domain->trays.trays[tray].name, gpu->uuid);
        while (i < domain->n_members &&
                        (domain->members[i].tray < tray ||
                                        (domain->members[i].tray == tray &&
                                                        domain->members[i].index < gpu->index)))
                i++;
        if (i < domain->n_members && streq(domain->members[i].uuid, gpu->uuid))
                return 0; /* named twice */

        r = array_reserve(&domain->members, domain->n_members, 1);
        if (r < 0)
                return failure_errno(failure, r, "cannot collect the GPUs");
        place = &domain->members[i];
        memmove(place + 1, place, (domain->n_members++ - i) * sizeof *place);
        *place = (Member){ .tray = tray, .index = gpu->index };
        (void) snprintf(place->uuid, sizeof place->uuid, "%s", gpu->uuid);
        partition_of_gpu(gpu, &place->before);
        return 0;
}

static const GpuView* find_index(const Tray *tray, uint32_t index) {
        for (size_t i = 0; i < tray->n_gpus; i++)
                if (tray->gpus[i].index == index)
                        return &tray->gpus[i];
        return NULL;
}

static int choose_of_tray(Domain *domain, size_t place, const GpuSpec *spec, Failure *failure) {
        const HostTray *tray = &domain->trays.trays[place];
        int r = 0;

        if (!host_tray_is_there(tray))
                return failure_set(failure, tray->failure.exit_code, "%s: %s", tray->name,
                                tray->failure.message ?: "out of memory");
        if (tray->tray.n_gpus == 0)
                return failure_set(failure, CLI_NO_GPU, "%s has no GPUs", tray->name);
        for (size_t i = 0; spec->n_indexes == 0 && i < tray->tray.n_gpus && r >= 0; i++)
                r = choose_gpu(domain, place, &tray->tray.gpus[i], failure);
        for (size_t i = 0; i < spec->n_indexes && r >= 0; i++) {
                const GpuView *gpu = find_index(&tray->tray, spec->indexes[i]);

                if (!gpu)
                        return failure_set(failure, CLI_NO_GPU, "%s has no GPU %u", tray->name,
                                        spec->indexes[i]);
                r = choose_gpu(domain, place, gpu, failure);
        }
        return r;
}

int domain_choose(Domain *domain, const char *text, Failure *failure) {
        CLEANUP(gpu_spec_done) GpuSpec spec = {};
        size_t place;
        int r;

        r = gpu_spec_parse(text, &spec);
        if (r == -EINVAL)
                return failure_set(failure, CLI_USAGE,
                                "'%s' names no GPUs; give TRAY, TRAY:0-1, TRAY:0,2, or the tray's slot "
                                "as in 2:0,3",
                                text);
        if (r < 0)
                return failure_errno(failure, r, "cannot read '%s'", text);
        if (gpu_spec_find(&spec, domain->hosts, &place) < 0)
                return failure_set(failure, CLI_NO_GPU, "'%s' is no tray of %s", spec.tray,
                                domain->options->hosts                  ? "-H"
                                                : domain->config->trays ? "client.trays in gpuagentctl.yaml"
                                                                        : "this command; client.trays in "
                                                                          "gpuagentctl.yaml is empty");
        return choose_of_tray(domain, place, &spec, failure);
}

int domain_choose_partition(Domain *domain, uint32_t id, Failure *failure) {
        for (size_t i = 0; i < domain->trays.n_trays; i++) {
                const Tray *tray = &domain->trays.trays[i].tray;

                for (size_t j = 0; j < tray->n_gpus; j++) {
                        int r;

                        if (tray->gpus[j].partition != id)
                                continue;
                        r = choose_gpu(domain, i, &tray->gpus[j], failure);
                        if (r < 0)
                                return r;
                }
        }
        return 0;
}

bool domain_is_chosen(const Domain *domain, const GpuView *gpu) {
        for (size_t i = 0; i < domain->n_members; i++)
                if (streq(domain->members[i].uuid, gpu->uuid))
                        return true;
        return false;
}

const GpuView* domain_gpu(const Domain *domain, const Member *member) {
        return tray_gpu_by_uuid(&domain->trays.trays[member->tray].tray, member->uuid);
}

size_t domain_same_tray(const Domain *domain, size_t i) {
        size_t n = 0;

        while (i + n < domain->n_members && domain->members[i + n].tray == domain->members[i].tray)
                n++;
        return n;
}

int members_format(const Member *members, size_t n, char **ret) {
        CLEANUP(text_stream_done) TextStream stream = {};
        FILE *file = text_stream_open(&stream);

        if (!file)
                return -ENOMEM;
        (void) fprintf(file, "GPU%s ", n == 1 ? "" : "s");
        for (size_t i = 0; i < n; i++)
                (void) fprintf(file, "%s%u", i > 0 ? "," : "", members[i].index);
        return text_stream_take(&stream, ret);
}

bool partition_name_is_plain(const char *name) {
        static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
        size_t n = strlen(name);

        return n > 0 && n < PARTITION_NAME_SIZE && name[0] != '-' && strspn(name, plain) == n;
}

void partition_format(const Partition *partition, char *ret, size_t size) {
        if (partition->id == UNKNOWN_U32)
                (void) snprintf(ret, size, "none that is known");
        else
                (void) snprintf(ret, size, "%u%s%s", partition->id, partition->name[0] ? " " : "",
                                partition->name);
}

/* Whether the GPU is in the partition that the text names. */
static bool gpu_is_in(const GpuView *gpu, const char *text) {
        uint32_t id;

        if (gpu->partition == UNKNOWN_U32 || gpu->partition == PARTITION_NONE)
                return false;
        if (parse_u32(text, UINT32_MAX, &id) >= 0)
                return gpu->partition == id;
        return streq(gpu->partition_name, text);
}

int domain_find_partition(const Domain *domain, const char *text, Partition *ret, Failure *failure) {
        Partition found = { .id = PARTITION_NONE };
        uint32_t id;

        for (size_t i = 0; i < domain->trays.n_trays; i++) {
                const Tray *tray = &domain->trays.trays[i].tray;

                for (size_t j = 0; j < tray->n_gpus; j++) {
                        if (!gpu_is_in(&tray->gpus[j], text))
                                continue;
                        if (found.id != PARTITION_NONE && found.id != tray->gpus[j].partition)
                                return failure_set(failure, CLI_USAGE,
                                                "'%s' is the name of partition %u and of %u; "
                                                "give the number",
                                                text, found.id, tray->gpus[j].partition);
                        if (found.id == PARTITION_NONE || !found.name[0])
                                partition_of_gpu(&tray->gpus[j], &found);
                }
        }
        /* Which is there even while no GPU is in it. */
        if (found.id == PARTITION_NONE &&
                        (streq(text, "default") ||
                                        (parse_u32(text, UINT32_MAX, &id) >= 0 && id == PARTITION_DEFAULT)))
                found = (Partition){ PARTITION_DEFAULT, "default" };
        if (found.id == PARTITION_NONE) {
                (void) failure_set(failure, CLI_FAILED, "there is no partition %s%s", text,
                                domain_is_complete(domain, NULL) ? "" : " on the trays that answer");
                return -ENOENT;
        }

        *ret = found;
        return 0;
}

uint32_t domain_free_id(const Domain *domain) {
        for (uint32_t id = 1;; id++) {
                bool taken = false;

                for (size_t i = 0; i < domain->trays.n_trays; i++)
                        for (size_t j = 0; j < domain->trays.trays[i].tray.n_gpus; j++) {
                                const GpuView *gpu = &domain->trays.trays[i].tray.gpus[j];

                                taken |= gpu->partition == id || gpu->clique_id == id ||
                                                gpu->expected_clique_id == id;
                        }
                if (!taken)
                        return id;
        }
}

bool domain_is_complete(const Domain *domain, Failure *failure) {
        for (size_t i = 0; i < domain->trays.n_trays; i++) {
                const HostTray *tray = &domain->trays.trays[i];

                if (host_tray_is_there(tray))
                        continue;
                if (failure)
                        (void) failure_set(failure, tray->failure.exit_code, "%s: %s", tray->name,
                                        tray->failure.message ?: "out of memory");
                return false;
        }
        return true;
}
