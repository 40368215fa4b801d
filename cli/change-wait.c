/* SPDX-License-Identifier: MIT */
#include "cli/change-wait.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/text.h"

/* Between two looks. An epilog's end is noticed by the next one. */
#define ROUND_USEC (2 * USEC_PER_SEC)

typedef struct Wait {
        Domain *domain;
        const Partition *to;
        Call *resets;     /* of each tray, the one that is out */
        bool *given_up;   /* of each tray: what is wrong with it was said */
        char **last_said; /* of each member: what it waits for; NULL for nothing yet */
        bool *done;       /* of each member */
        usec_t deadline_usec;
        CliExit exit_code;
} Wait;

static void wait_done(Wait *wait) {
        for (size_t i = 0; wait->resets && i < wait->domain->trays.n_trays; i++)
                call_done(&wait->resets[i]);
        for (size_t i = 0; wait->last_said && i < wait->domain->n_members; i++)
                free(wait->last_said[i]);
        free(wait->resets);
        free(wait->given_up);
        free(wait->last_said);
        free(wait->done);
}

static bool has_its_clique(const GpuView *gpu) {
        return !gpu->reset_pending &&
                        (gpu->expected_clique_id == UNKNOWN_U32 ||
                                        gpu->expected_clique_id == gpu->clique_id ||
                                        (gpu->expected_clique_id == 0 && gpu->clique_id == UNKNOWN_U32));
}

/* A tenant or a process has it, or its reset is under way already. */
static bool is_taken(const GpuView *gpu) {
        return gpu->tenant[0] || streq(gpu->state, "in-use") || streq(gpu->state, "resetting");
}

static void give_up(Wait *wait, size_t tray, CliExit exit_code, const char *why) {
        if (!wait->given_up[tray])
                print_complaint("%s: %s", wait->domain->trays.trays[tray].name, why);
        wait->given_up[tray] = true;
        if (wait->exit_code == CLI_DONE)
                wait->exit_code = exit_code;
}

/* Who has the GPU of this member, "leased to slurm/26.0"; NULL: nobody, but perhaps its own reset. */
static const char* waits_for(const Wait *wait, size_t i) {
        const GpuView *gpu = domain_gpu(wait->domain, &wait->domain->members[i]);

        if (!gpu || wait->done[i] || !is_taken(gpu) || streq(gpu->state, "resetting"))
                return NULL;
        return gpu->state_reason[0] ? gpu->state_reason : gpu->state;
}

/* Says once for all members of a tray that wait for the same what it is. */
static void say_waiting(Wait *wait, size_t first, size_t n) {
        const Domain *domain = wait->domain;

        for (size_t i = first; i < first + n; i++) {
                CLEANUP(free_ptr) Member *same = calloc(n, sizeof *same);
                CLEANUP(free_ptr) char *list = NULL;
                const char *why = waits_for(wait, i);
                size_t n_same = 0;

                if (!same || !why || (wait->last_said[i] && streq(wait->last_said[i], why)))
                        continue;
                for (size_t j = i; j < first + n; j++) {
                        const char *other = waits_for(wait, j);

                        if (!other || !streq(other, why))
                                continue;
                        same[n_same++] = domain->members[j];
                        free(wait->last_said[j]);
                        wait->last_said[j] = strdup(why);
                }
                if (!domain->options->quiet && members_format(same, n_same, &list) >= 0)
                        print_line(stdout, "%s: waits for %s: %s", domain->trays.trays[same->tray].name,
                                        list, why);
        }
        (void) fflush(stdout);
}

/* Resets those of a tray's members that nobody has. */
static int start_reset(Wait *wait, size_t first, size_t n) {
        const Domain *domain = wait->domain;
        size_t tray = domain->members[first].tray;
        Client *client = domain->trays.trays[tray].client;
        CLEANUP(message_unref_ptr) sd_bus_message *message = NULL;
        CLEANUP(strv_free_ptr) char **uuids = NULL;
        CLEANUP(failure_done) Failure failure = {};
        Options request = { .wait = true };
        int r = 0;

        for (size_t i = first; i < first + n && r >= 0; i++) {
                const GpuView *gpu = domain_gpu(domain, &domain->members[i]);

                if (gpu && !wait->done[i] && !is_taken(gpu))
                        r = strv_append(&uuids, domain->members[i].uuid);
        }
        if (r >= 0 && !uuids)
                return 0;
        if (r >= 0)
                r = client_message_new(client, MANAGER_PATH, MANAGER_INTERFACE, "Reset", &message);
        if (r >= 0)
                r = message_append_request(message, uuids, &request);
        if (r >= 0)
                r = client_start(client, message, request_timeout(&request), &wait->resets[tray], &failure);
        if (r < 0)
                give_up(wait, tray, CLI_FAILED, failure.message ?: strerror(-r));
        return r;
}

/* The reset that a tray has answered. One that somebody was faster than is asked for again. */
static void take_reset(Wait *wait, size_t tray) {
        Call *call = &wait->resets[tray];
        CLEANUP(failure_done) Failure failure = {};

        if (!call->reply)
                return;
        if (client_finish(wait->domain->trays.trays[tray].client, call, NULL, &failure) < 0 &&
                        !streq(failure.error, "Busy") && !streq(failure.error, "Leased"))
                give_up(wait, tray, failure.exit_code, failure.message ?: "out of memory");
        call_done(call);
}

static void judge_member(Wait *wait, size_t i) {
        const Member *member = &wait->domain->members[i];
        const GpuView *gpu = domain_gpu(wait->domain, member);
        char text[64];

        if (!gpu) {
                (void) snprintf(text, sizeof text, "GPU %u is there no more", member->index);
                give_up(wait, member->tray, CLI_NO_GPU, text);
        } else if (gpu->partition != wait->to->id) {
                (void) snprintf(text, sizeof text, "GPU %u was moved meanwhile", member->index);
                give_up(wait, member->tray, CLI_FAILED, text);
        } else if (!is_taken(gpu) && streq(gpu->state, "clean") && has_its_clique(gpu))
                wait->done[i] = true;
}

/* One look at one tray's members. True: they are where they should be, or never will be. */
static bool judge_tray(Wait *wait, size_t first, size_t n) {
        Domain *domain = wait->domain;
        size_t tray = domain->members[first].tray;
        bool all = true;

        if (!host_tray_is_there(&domain->trays.trays[tray]))
                give_up(wait, tray, CLI_NO_AGENT, domain->trays.trays[tray].failure.message ?: "is gone");
        if (!wait->given_up[tray])
                take_reset(wait, tray);
        for (size_t i = first; i < first + n && !wait->given_up[tray]; i++) {
                judge_member(wait, i);
                all &= wait->done[i];
        }
        if (wait->given_up[tray] || all)
                return true;

        say_waiting(wait, first, n);
        if (!wait->resets[tray].slot)
                return start_reset(wait, first, n) < 0;
        return false;
}

static bool judge(Wait *wait) {
        bool all = true;

        for (size_t i = 0, n; i < wait->domain->n_members; i += n) {
                n = domain_same_tray(wait->domain, i);
                all &= judge_tray(wait, i, n);
        }
        return all;
}

static void say_time_is_up(const Domain *domain, const Wait *wait) {
        for (size_t i = 0; i < domain->n_members; i++) {
                const Member *member = &domain->members[i];
                const GpuView *gpu = domain_gpu(domain, member);

                if (!wait->done[i] && gpu && !wait->given_up[member->tray])
                        print_complaint("%s: GPU %u is not in its new clique in time: it is %s%s%s",
                                        domain->trays.trays[member->tray].name, member->index, gpu->state,
                                        gpu->state_reason[0] ? ": " : "", gpu->state_reason);
        }
}

static void say_cliques(const Domain *domain, const Wait *wait) {
        for (size_t i = 0, n; i < domain->n_members; i += n) {
                const GpuView *gpu = domain_gpu(domain, &domain->members[i]);
                CLEANUP(free_ptr) char *list = NULL;

                for (n = 1; gpu && i + n < domain->n_members; n++) {
                        const GpuView *other = domain_gpu(domain, &domain->members[i + n]);

                        if (domain->members[i + n].tray != domain->members[i].tray || !other ||
                                        other->clique_id != gpu->clique_id)
                                break;
                }
                if (!gpu || !wait->done[i] || members_format(&domain->members[i], n, &list) < 0)
                        continue;
                if (gpu->clique_id == UNKNOWN_U32 || gpu->clique_id == 0)
                        print_line(stdout, "%s: %s reset, in no clique",
                                        domain->trays.trays[domain->members[i].tray].name, list);
                else
                        print_line(stdout, "%s: %s reset, in clique %u",
                                        domain->trays.trays[domain->members[i].tray].name, list,
                                        gpu->clique_id);
        }
}

/* Lets what comes in be handled until the next look, or until a reset has an answer. */
static void rest(Wait *wait, usec_t until_usec) {
        for (usec_t now = now_monotonic_usec(); now < until_usec; now = now_monotonic_usec()) {
                if (sd_event_run(wait->domain->trays.event, until_usec - now) < 0)
                        return;
                for (size_t i = 0; i < wait->domain->trays.n_trays; i++)
                        if (wait->resets[i].reply)
                                return;
        }
}

int change_wait(Domain *domain, const Partition *to) {
        CLEANUP(wait_done) Wait wait = { .domain = domain, .to = to, .deadline_usec = USEC_INFINITY };
        size_t n_trays = domain->trays.n_trays, n = domain->n_members;

        wait.resets = calloc(n_trays + 1, sizeof *wait.resets);
        wait.given_up = calloc(n_trays + 1, sizeof *wait.given_up);
        wait.last_said = calloc(n + 1, sizeof *wait.last_said);
        wait.done = calloc(n + 1, sizeof *wait.done);
        if (!wait.resets || !wait.given_up || !wait.last_said || !wait.done)
                return fail_with(CLI_FAILED, "out of memory");
        if (domain->options->timeout_usec > 0)
                wait.deadline_usec = usec_add(now_monotonic_usec(), domain->options->timeout_usec);

        while (!judge(&wait)) {
                usec_t now = now_monotonic_usec(), next = now + ROUND_USEC;

                if (now >= wait.deadline_usec) {
                        say_time_is_up(domain, &wait);
                        wait.exit_code = CLI_FAILED;
                        break;
                }
                rest(&wait, next < wait.deadline_usec ? next : wait.deadline_usec);
                domain_refresh(domain);
        }
        if (!domain->options->quiet)
                say_cliques(domain, &wait);
        return wait.exit_code;
}
