/* SPDX-License-Identifier: MIT */
#include "cli/oci-stage.h"

#include <signal.h>
#include <stddef.h>
#include <sys/time.h>
#include <unistd.h>

#include "agent/base/text.h"

#define POSTSTOP_USEC (900 * USEC_PER_MSEC)

static const char *const stage_table[_OCI_STAGE_MAX] = {
        [OCI_PRESTART] = "prestart",
        [OCI_POSTSTOP] = "poststop",
};

const char* oci_stage_to_string(OciStage stage) {
        return stage_table[stage];
}

OciStage oci_stage_parse(const char *name) {
        for (OciStage stage = 0; stage < _OCI_STAGE_MAX; stage++)
                if (streq(name, stage_table[stage]))
                        return stage;
        return _OCI_STAGE_INVALID;
}

static void on_alarm(int signal_number) {
        _exit(0);
}

static void mask_alarm(int how) {
        sigset_t mask;

        (void) sigemptyset(&mask);
        (void) sigaddset(&mask, SIGALRM);
        (void) sigprocmask(how, &mask, NULL);
}

void oci_stage_begin(OciStage stage) {
        const struct itimerval limit = { .it_value = { .tv_usec = POSTSTOP_USEC } };
        struct itimerval left = {};

        /* A reader of our line that is gone is an error of the line, no more. */
        (void) signal(SIGPIPE, SIG_IGN);
        if (stage != OCI_POSTSTOP)
                return;

        (void) signal(SIGALRM, on_alarm);
        (void) getitimer(ITIMER_REAL, &left);
        if (left.it_value.tv_sec == 0 && left.it_value.tv_usec == 0)
                (void) setitimer(ITIMER_REAL, &limit, NULL);
        mask_alarm(SIG_UNBLOCK);
}

void oci_stage_hold(void) {
        mask_alarm(SIG_BLOCK);
}
