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
        if (r >= 0)
                r = strv_append(&words, to->name);
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
        why = r == -ETIMEDOUT ? "does not end" : r < 0 ? strerror(-r) : last_line(output);
        (void) failure_set(failure, CLI_FAILED, "%s: the fabric refuses (client.fabric-assign): %s",
                        tray_name(domain, members), why[0] ? why : "it does not say why");
        return r < 0 ? r : -EIO;
}

/* Those of members[0..n) that were in the same partition as members[0]; they come to the front. */
static size_t same_origin(Member *members, size_t n) {
        size_t same = 1;

        for (size_t i = 1; i < n; i++)
                if (members[i].before.id == members[0].before.id) {
                        Member moved = members[i];

                        members[i] = members[same];
                        members[same++] = moved;
                }
        return same;
}

static int start_set(const Domain *domain, const Member *members, size_t n, const Partition *to, Call *call,
                Failure *failure) {
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
                r = sd_bus_message_append(message, "usa{sv}", to->id, to->name, 0);
        if (r < 0)
                return failure_errno(failure, r, "cannot tell %s its partition", tray->name);
        return client_start(tray->client, message, 0, call, failure);
}

/* Tells one tray what to expect. 0 · negative, and *failure. */
static int set(const Domain *domain, const Member *members, size_t n, const Partition *to,
                Failure *failure) {
        CLEANUP(call_done) Call call = {};
        int r;

        r = start_set(domain, members, n, to, &call, failure);
        if (r >= 0)
                r = client_finish(domain->trays.trays[members->tray].client, &call, NULL, failure);
        return r;
}

/* Puts GPUs of one tray back where they were; `told`: and tells their tray. What cannot be is said. */
static void undo(const Domain *domain, Member *members, size_t n, bool told) {
        for (size_t i = 0, same; i < n; i += same) {
                CLEANUP(failure_done) Failure failure = {};
                CLEANUP(free_ptr) char *list = NULL;
                int r;

                same = same_origin(members + i, n - i);
                if (members[i].before.id == UNKNOWN_U32)
                        r = failure_set(&failure, CLI_FAILED, "its partition is not known");
                else
                        r = assign(domain, members + i, same, &members[i].before, &failure);
                if (r >= 0 && told)
                        r = set(domain, members + i, same, &members[i].before, &failure);
                if (r < 0 && members_format(members + i, same, &list) >= 0)
                        print_complaint("%s: %s cannot be put back: %s", tray_name(domain, &members[i]),
                                        list, failure.message ?: "out of memory");
        }
}

/* The fabric, one tray after the other. On failure those before are undone. */
static int change_fabric(Domain *domain, const Partition *to, Failure *failure) {
        for (size_t i = 0, n; i < domain->n_members; i += n) {
                int r;

                n = domain_same_tray(domain, i);
                r = assign(domain, &domain->members[i], n, to, failure);
                if (r >= 0)
                        continue;
                for (size_t j = 0, end = r == -ETIMEDOUT ? i + n : i; j < end; j += n) {
                        n = domain_same_tray(domain, j);
                        undo(domain, &domain->members[j], n, false);
                }
                return r;
        }
        return 0;
}

/* What the trays expect, all at once. On failure it is undone, and the fabric with it. */
static int change_trays(Domain *domain, const Partition *to, Failure *failure) {
        CLEANUP(free_ptr) Call *calls = calloc(domain->n_members + 1, sizeof *calls);
        CLEANUP(free_ptr) bool *told = calloc(domain->n_members + 1, sizeof *told);
        int result = 0;

        if (!calls || !told)
                result = failure_errno(failure, -ENOMEM, "cannot tell the trays");
        for (size_t i = 0, n; result >= 0 && i < domain->n_members; i += n) {
                n = domain_same_tray(domain, i);
                result = start_set(domain, &domain->members[i], n, to, &calls[i], failure);
        }
        for (size_t i = 0; calls && i < domain->n_members; i++) {
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
        for (size_t i = 0, n; result < 0 && i < domain->n_members; i += n) {
                n = domain_same_tray(domain, i);
                undo(domain, &domain->members[i], n, told && told[i]);
        }
        return result;
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
        r = change_fabric(domain, to, failure);
        if (r >= 0)
                r = change_trays(domain, to, failure);
        if (r < 0)
                domain_refresh(domain); /* a tray that has seen what is undone looks again */
        (void) sigprocmask(SIG_SETMASK, &before, NULL);
        return r;
}
