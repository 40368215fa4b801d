/* SPDX-License-Identifier: MIT */
#include "cli/change.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/text.h"
#include "cli/program.h"

/* A fabric controller may take its time, and nobody else waits for us. */
#define ASSIGN_TIMEOUT_USEC (120 * USEC_PER_SEC)

#define BLANKS " \t"

static const char* tray_name(const Domain *domain, const Member *member) {
        return domain->trays.trays[member->tray].name;
}

/* The last line of what a program has printed. */
static const char* last_line(char *output) {
        char *line = text_strip(output), *end = strrchr(line, '\n');

        return end ? text_strip(end) : line;
}

/* The words of client.fabric-assign, TRAY, the UUIDs, ID and NAME. 0 and *ret (a strv) · -EINVAL ·
 * -ENOMEM. */
static int assign_words(
                const Domain *domain, const Member *members, size_t n, const Partition *to, char ***ret) {
        CLEANUP(strv_free_ptr) char **words = NULL;
        CLEANUP(free_ptr) char *command = strdup(domain->config->fabric_assign);
        char id[16], *rest = command;
        int r = command ? 0 : -ENOMEM;

        for (char *word; r >= 0 && (word = strtok_r(rest, BLANKS, &rest));)
                r = strv_append(&words, word);
        if (r >= 0 && !words)
                r = -EINVAL;
        if (r >= 0)
                r = strv_append(&words, tray_name(domain, members));
        for (size_t i = 0; r >= 0 && i < n; i++)
                r = strv_append(&words, members[i].uuid);
        (void) snprintf(id, sizeof id, "%u", to->id);
        if (r >= 0)
                r = strv_append(&words, id);
        if (r >= 0) /* it may be what a tray calls it, and is not what the controller goes by */
                r = strv_append(&words, partition_name_is_plain(to->name) ? to->name : "");
        if (r < 0)
                return r;

        *ret = take_ptr(&words);
        return 0;
}

/* Has the fabric move GPUs of one tray. 0 · -ETIMEDOUT (it may have) or another negative, and *failure. */
static int assign(const Domain *domain, const Member *members, size_t n, const Partition *to,
                Failure *failure) {
        CLEANUP(strv_free_ptr) char **words = NULL;
        CLEANUP(free_ptr) char *output = NULL;
        const char *why;
        int r;

        r = assign_words(domain, members, n, to, &words);
        if (r >= 0)
                r = program_run_as_we_are(words, now_monotonic_usec() + ASSIGN_TIMEOUT_USEC, &output);
        if (r == 0)
                return 0;
        why = r == -ETIMEDOUT ? "it does not end" : r < 0 ? strerror(-r) : last_line(output);
        (void) failure_set(failure, CLI_FAILED, "%s: the fabric refuses (client.fabric-assign): %.256s",
                        tray_name(domain, members), why[0] ? why : "it does not say why");
        return r < 0 ? r : -EIO;
}

/* For each member the partition that it has to be in: `from`, or NULL for where it was. Of two operators the
 * second is refused by that. */
static int append_from(sd_bus_message *message, const Member *members, size_t n, const Partition *from) {
        CLEANUP(free_ptr) uint32_t *ids = calloc(n, sizeof *ids);
        int r;

        if (!ids)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                ids[i] = from ? from->id : members[i].before.id;
        r = sd_bus_message_open_container(message, 'a', "{sv}");
        if (r >= 0)
                r = sd_bus_message_open_container(message, 'e', "sv");
        if (r >= 0)
                r = sd_bus_message_append(message, "s", "from");
        if (r >= 0)
                r = sd_bus_message_open_container(message, 'v', "au");
        if (r >= 0)
                r = sd_bus_message_append_array(message, 'u', ids, n * sizeof *ids);
        for (int i = 0; i < 3 && r >= 0; i++)
                r = sd_bus_message_close_container(message);
        return r;
}

static int start_set(const Domain *domain, const Member *members, size_t n, const Partition *from,
                const Partition *to, Call *call, Failure *failure) {
        const HostTray *tray = &domain->trays.trays[members->tray];
        CLEANUP(message_unref_ptr) sd_bus_message *message = NULL;
        int r;

        r = client_message_new(tray->client, MANAGER_PATH, MANAGER_INTERFACE, "SetPartition", &message);
        if (r >= 0)
                r = sd_bus_message_open_container(message, 'a', "s");
        for (size_t i = 0; r >= 0 && i < n; i++)
                r = sd_bus_message_append(message, "s", members[i].uuid);
        if (r >= 0)
                r = sd_bus_message_close_container(message);
        if (r >= 0)
                r = sd_bus_message_append(message, "us", to->id, to->name);
        if (r >= 0)
                r = append_from(message, members, n, from);
        if (r < 0)
                return failure_errno(failure, r, "cannot tell %s its partition", tray->name);
        return client_start(tray->client, message, 0, call, failure);
}

/* Tells one tray that its GPUs are not to move after all. 0 · negative, and *failure. */
static int set_back(const Domain *domain, const Member *members, size_t n, const Partition *to,
                Failure *failure) {
        CLEANUP(call_done) Call call = {};
        int r;

        r = start_set(domain, members, n, to, &members->before, &call, failure);
        if (r >= 0)
                r = client_finish(domain->trays.trays[members->tray].client, &call, NULL, failure);
        return r;
}

/* Puts GPUs of one tray back where they were; `told`: and tells their tray. What cannot be is said. *hangs:
 * the fabric has not answered in time, and is not asked any more. */
static void undo(const Domain *domain, const Member *members, size_t n, const Partition *to, bool told,
                bool *hangs) {
        for (size_t i = 0, same; i < n; i += same) {
                const Partition *before = &members[i].before;
                CLEANUP(failure_done) Failure failure = {};
                CLEANUP(free_ptr) char *list = NULL;
                int r;

                for (same = 1; i + same < n && members[i + same].before.id == before->id; same++)
                        ;
                if (before->id == UNKNOWN_U32)
                        r = failure_set(&failure, CLI_FAILED, "its partition is not known");
                else if (*hangs)
                        r = failure_set(&failure, CLI_FAILED, "the fabric does not answer");
                else
                        r = assign(domain, members + i, same, before, &failure);
                *hangs |= r == -ETIMEDOUT;
                if (r >= 0 && told)
                        r = set_back(domain, members + i, same, to, &failure);
                if (r < 0 && members_format(members + i, same, &list) >= 0)
                        print_complaint("%s: %s cannot be put back: %s; when that is mended, the same "
                                        "command finishes the change",
                                        tray_name(domain, &members[i]), list,
                                        failure.message ?: "out of memory");
        }
}

/* What somebody else has moved meanwhile, of n members of one tray, is put back where he has it, so that
 * fabric and tray agree. A look would only tell the tray what we did to the fabric. */
static void heed_others(Domain *domain, Member *members, size_t n, const Partition *to) {
        domain_reread(domain, members->tray);
        for (size_t i = 0; i < n; i++) {
                const GpuView *gpu = domain_gpu(domain, &members[i]);

                if (gpu && gpu->partition != to->id && gpu->partition != UNKNOWN_U32)
                        partition_of_gpu(gpu, &members[i].before);
        }
}

/* Refuses members of one tray that somebody else has moved since they were chosen, before the fabric is
 * touched: between this and the tray's own refusal there is little time. */
static int check_unmoved(
                Domain *domain, const Member *members, size_t n, const Partition *to, Failure *failure) {
        const HostTray *tray = &domain->trays.trays[members->tray];

        domain_reread(domain, members->tray);
        if (!host_tray_is_there(tray))
                return failure_set(failure, tray->failure.exit_code, "%s: %s", tray->name,
                                tray->failure.message ?: "out of memory");
        for (size_t i = 0; i < n; i++) {
                const GpuView *gpu = domain_gpu(domain, &members[i]);
                Partition now;
                char where[96];

                if (!gpu)
                        return failure_set(failure, CLI_NO_GPU, "%s: GPU %u is there no more", tray->name,
                                        members[i].index);
                if (gpu->partition == members[i].before.id || gpu->partition == to->id)
                        continue;
                partition_of_gpu(gpu, &now);
                partition_format(&now, where, sizeof where);
                return failure_set(failure, CLI_FAILED, "%s: GPU %u is in partition %s meanwhile",
                                tray->name, gpu->index, where);
        }
        return 0;
}

/* The fabric, one tray after the other. *ret_moved: how many members it has moved, or may have. */
static int change_fabric(Domain *domain, const Partition *to, size_t *ret_moved, Failure *failure) {
        int r = 0;

        *ret_moved = 0;
        for (size_t i = 0, n; r >= 0 && i < domain->n_members; i += n) {
                n = domain_same_tray(domain, i);
                r = check_unmoved(domain, &domain->members[i], n, to, failure);
                if (r >= 0)
                        r = assign(domain, &domain->members[i], n, to, failure);
                if (r >= 0 || r == -ETIMEDOUT)
                        *ret_moved = i + n;
        }
        return r;
}

/* What the trays expect, all at once. told[i]: that of members[i] and those behind it knows. */
static int change_trays(const Domain *domain, const Partition *to, bool *told, Failure *failure) {
        CLEANUP(free_ptr) Call *calls = calloc(domain->n_members + 1, sizeof *calls);
        int result = 0;

        if (!calls)
                return failure_errno(failure, -ENOMEM, "cannot tell the trays");
        for (size_t i = 0, n; result >= 0 && i < domain->n_members; i += n) {
                n = domain_same_tray(domain, i);
                result = start_set(domain, &domain->members[i], n, NULL, to, &calls[i], failure);
        }
        for (size_t i = 0; i < domain->n_members; i++) {
                CLEANUP(failure_done) Failure own = {};
                const HostTray *tray = &domain->trays.trays[domain->members[i].tray];

                if (!calls[i].slot)
                        continue;
                told[i] = client_finish(tray->client, &calls[i], NULL, &own) >= 0;
                if (!told[i] && result >= 0)
                        result = failure_set(failure, own.exit_code, "%s: %s", tray->name,
                                        own.message ?: "out of memory");
                call_done(&calls[i]);
        }
        return result;
}

static int change_all(Domain *domain, const Partition *to, Failure *failure) {
        CLEANUP(free_ptr) bool *told = calloc(domain->n_members + 1, sizeof *told);
        bool hangs = false;
        size_t moved;
        int r;

        if (!told)
                return failure_errno(failure, -ENOMEM, "cannot move the GPUs");
        r = change_fabric(domain, to, &moved, failure);
        if (r >= 0)
                r = change_trays(domain, to, told, failure);
        if (r >= 0)
                return 0;

        for (size_t i = 0, n; i < moved; i += n) {
                n = domain_same_tray(domain, i);
                heed_others(domain, &domain->members[i], n, to);
                undo(domain, &domain->members[i], n, to, told[i], &hangs);
        }
        domain_refresh(domain); /* a tray that has seen what is undone looks again */
        return r;
}

int domain_change(Domain *domain, const Partition *to, Failure *failure) {
        sigset_t stopping, before;
        int r;

        if (!domain->config->fabric_assign[0])
                return failure_set(failure, CLI_FAILED,
                                "client.fabric-assign is not set: nothing says how the fabric is changed "
                                "from here; see gpuagentctl.yaml(5)");

        /* A person who has second thoughts gets all of it, and not a half. */
        (void) sigemptyset(&stopping);
        (void) sigaddset(&stopping, SIGINT);
        (void) sigaddset(&stopping, SIGTERM);
        (void) sigaddset(&stopping, SIGHUP);
        (void) sigprocmask(SIG_BLOCK, &stopping, &before);
        r = change_all(domain, to, failure);
        (void) sigprocmask(SIG_SETMASK, &before, NULL);
        return r;
}
