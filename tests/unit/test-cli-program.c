/* SPDX-License-Identifier: MIT */
/* Other programs that gpuagentctl runs: what they print, how they end, and those that do not. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "agent/base/parse.h"
#include "cli/program.h"

/* Far more than anything here takes. */
#define LONG_USEC (120 * USEC_PER_SEC)

/* As program_run_as_we_are() for a script. */
static int run_script(const char *script, usec_t timeout_usec, char **ret_output) {
        const char *argv[] = { "sh", "-c", script, NULL };

        return program_run_as_we_are(
                        (char *const *) argv, usec_add(now_monotonic_usec(), timeout_usec), ret_output);
}

static void test_what_it_prints_and_how_it_ends_is_told(void **state) {
        CLEANUP(free_ptr) char *good = NULL, *bad = NULL, *killed = NULL;

        assert_int_equal(run_script("echo out; echo err >&2", LONG_USEC, &good), 0);
        assert_string_equal(good, "out\nerr\n");
        assert_int_equal(run_script("echo no; exit 3", LONG_USEC, &bad), 1);
        assert_string_equal(bad, "no\n");
        assert_int_equal(run_script("kill -KILL $$", LONG_USEC, &killed), 1);
        assert_string_equal(killed, "");
}

static void test_what_it_leaves_behind_is_not_waited_for(void **state) {
        CLEANUP(free_ptr) char *quiet = NULL, *loud = NULL;
        uint32_t left;

        assert_int_equal(run_script("sleep 300 & printf $!; exit 0", LONG_USEC, &quiet), 0);
        assert_int_equal(parse_u32(quiet, INT32_MAX, &left), 0);
        (void) kill((pid_t) left, SIGKILL);

        assert_int_equal(run_script("yes & exit 1", LONG_USEC, &loud), 1);
}

static void test_what_does_not_end_is_killed(void **state) {
        char *output = NULL;

        assert_int_equal(run_script("sleep 300", 100 * USEC_PER_MSEC, &output), -ETIMEDOUT);
        assert_int_equal(run_script("yes", 100 * USEC_PER_MSEC, &output), -ETIMEDOUT);
        assert_null(output);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_it_prints_and_how_it_ends_is_told),
                cmocka_unit_test(test_what_it_leaves_behind_is_not_waited_for),
                cmocka_unit_test(test_what_does_not_end_is_killed),
        };

        return cmocka_run_group_tests_name("cli-program", tests, NULL, NULL);
}
