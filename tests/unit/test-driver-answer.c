/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/io.h"
#include "agent/driver/task.h"

#define UUID_0 "GPU-81477906-d580-de42-e868-ff62e9ef4317"
#define UUID_1 "GPU-8147ef90-7f0c-fc1e-c070-d80c4a3d939f"

/* What an answer is on the pipe. */
static size_t written(const Answer *answer, char *buffer, size_t size) {
        CLEANUP(fd_close) int reader = -1, writer = -1;
        int fds[2];
        ssize_t n;

        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        reader = fds[0], writer = fds[1];
        assert_int_equal(answer_write(answer, writer), 0);
        n = read(reader, buffer, size);
        assert_true(n > 0);
        return (size_t) n;
}

static void fill(Answer *answer, GpuReset resets[static 2]) {
        resets[0] = (GpuReset){ .uuid = UUID_0, .verdict = RESET_DONE, .detail = "All done." };
        resets[1] = (GpuReset){ .uuid = UUID_1, .verdict = RESET_FAILED };
        *answer = (Answer){
                .kind = TASK_RESET, .n = 2, .n_asked = 1, .resets = resets, .warning = "careful"
        };
}

static void test_an_answer_comes_over_the_pipe_as_it_was(void **state) {
        CLEANUP(answer_done) Answer read = {};
        GpuReset resets[2];
        char buffer[4096];
        Answer answer;
        size_t n;

        fill(&answer, resets);
        n = written(&answer, buffer, sizeof buffer);
        assert_int_equal(answer_parse(TASK_RESET, buffer, n, &read), 0);
        assert_int_equal(read.n, 2);
        assert_int_equal(read.n_asked, 1);
        assert_string_equal(read.warning, "careful");
        assert_memory_equal(read.resets, resets, sizeof resets);
}

static void fill_look(Answer *answer, GpuReset resets[static 2], GpuSample *look) {
        fill(answer, resets);
        gpu_sample_init(look);
        (void) strcpy(look->uuid, UUID_0);
        answer->looks = look;
        answer->n_looks = 1;
}

static void test_looks_come_over_the_pipe_behind_their_resets(void **state) {
        CLEANUP(answer_done) Answer read = {};
        GpuReset resets[2];
        char buffer[8192];
        GpuSample look;
        Answer answer;
        size_t n;

        fill_look(&answer, resets, &look);
        n = written(&answer, buffer, sizeof buffer);
        assert_int_equal(answer_parse(TASK_RESET, buffer, n, &read), 0);
        assert_int_equal(read.n_looks, 1);
        assert_memory_equal(read.looks, &look, sizeof look);
        assert_memory_equal(read.resets, resets, sizeof resets);
        for (size_t size = 0; size < n; size++) {
                Answer cut;

                assert_int_equal(answer_parse(TASK_RESET, buffer, size, &cut), -EBADMSG);
        }
}

static void test_a_look_with_a_wrong_uuid_is_refused(void **state) {
        GpuReset resets[2];
        char buffer[8192];
        Answer answer, read;
        GpuSample look;
        size_t n;

        fill_look(&answer, resets, &look);
        (void) strcpy(look.uuid, "GPU-1");
        n = written(&answer, buffer, sizeof buffer);
        assert_int_equal(answer_parse(TASK_RESET, buffer, n, &read), -EBADMSG);
}

static void test_more_looks_than_resets_are_refused(void **state) {
        GpuReset resets[2];
        char buffer[8192];
        Answer answer, read;
        GpuSample look;
        size_t n;

        fill_look(&answer, resets, &look);
        answer.n = answer.n_asked = 0;
        n = written(&answer, buffer, sizeof buffer);
        assert_int_equal(answer_parse(TASK_RESET, buffer, n, &read), -EBADMSG);
}

static void test_an_error_comes_over_the_pipe(void **state) {
        CLEANUP(answer_done) Answer read = {};
        Answer answer = { .kind = TASK_PROBE };
        char buffer[4096];
        size_t n;

        answer_fail(&answer, ANSWER_MISSING, "no\n%s.\n", "driver");
        n = written(&answer, buffer, sizeof buffer);
        assert_int_equal(answer_parse(TASK_PROBE, buffer, n, &read), 0);
        assert_int_equal(read.error, ANSWER_MISSING);
        assert_string_equal(read.message, "no\\x0adriver");
}

static void test_warnings_add_up_as_far_as_they_fit(void **state) {
        Answer answer = { .kind = TASK_PROBE };

        answer_warn(&answer, "one\n1.");
        answer_warn(&answer, "%d", 2);
        assert_string_equal(answer.warning, "one\\x0a1; 2");
        for (int i = 0; i < 1000; i++)
                answer_warn(&answer, "more");
        assert_true(strlen(answer.warning) < sizeof answer.warning);
        assert_true(strlen(answer.warning) > sizeof answer.warning - 10);
}

static void test_every_cut_answer_is_refused(void **state) {
        GpuReset resets[2];
        char buffer[4096];
        Answer answer, read;
        size_t n;

        fill(&answer, resets);
        n = written(&answer, buffer, sizeof buffer);
        for (size_t size = 0; size < n; size++)
                assert_int_equal(answer_parse(TASK_RESET, buffer, size, &read), -EBADMSG);
        assert_int_equal(answer_parse(TASK_RESET, buffer, n + 1, &read), -EBADMSG);
        assert_int_equal(answer_parse(TASK_PROBE, buffer, n, &read), -EBADMSG);
}

static void test_no_damaged_byte_does_harm(void **state) {
        GpuReset resets[2];
        char buffer[4096];
        Answer answer;
        size_t n;

        fill(&answer, resets);
        n = written(&answer, buffer, sizeof buffer);
        for (size_t i = 0; i < n; i++) {
                CLEANUP(answer_done) Answer read = {};
                char good = buffer[i];
                int r;

                buffer[i] = '\xff';
                r = answer_parse(TASK_RESET, buffer, n, &read);
                buffer[i] = good;
                assert_true(r == 0 || r == -EBADMSG);
                for (size_t k = 0; r == 0 && k < read.n; k++) {
                        assert_true(read.resets[k].verdict < _RESET_VERDICT_MAX);
                        for (const char *c = read.resets[k].detail; *c; c++)
                                assert_true(*c >= ' ' && *c <= '~');
                }
        }
}

static void test_an_error_with_items_is_refused(void **state) {
        GpuReset resets[2];
        char buffer[4096];
        Answer answer, read;
        size_t n;

        fill(&answer, resets);
        answer.error = ANSWER_FAILED;
        n = written(&answer, buffer, sizeof buffer);
        assert_int_equal(answer_parse(TASK_RESET, buffer, n, &read), -EBADMSG);
}

static void test_strings_that_do_not_end_are_ended(void **state) {
        CLEANUP(answer_done) Answer read = {};
        GpuReset resets[2];
        char buffer[4096];
        Answer answer;
        size_t n;

        fill(&answer, resets);
        memset(resets[0].detail, 'x', sizeof resets[0].detail);
        memset(answer.warning, '\x1b', sizeof answer.warning);
        n = written(&answer, buffer, sizeof buffer);
        assert_int_equal(answer_parse(TASK_RESET, buffer, n, &read), 0);
        assert_int_equal(strlen(read.resets[0].detail), sizeof resets[0].detail - 1);
        assert_int_equal(strspn(read.warning, "?"), sizeof answer.warning - 1);
}

static void sample_make(GpuSample *sample, const char *uuid, const char *bus_id) {
        gpu_sample_init(sample);
        (void) strcpy(sample->uuid, uuid);
        (void) strcpy(sample->bus_id, bus_id);
}

static void test_the_table_learns_from_probes(void **state) {
        CLEANUP(table_done) GpuTable table = {};
        GpuSample samples[2];

        assert_null(table_find(&table, UUID_0));
        sample_make(&samples[0], UUID_1, "00000000:2A:00.0");
        sample_make(&samples[1], UUID_0, "00000000:18:00.0");
        assert_int_equal(table_replace(&table, samples, 2), 0);
        assert_string_equal(table_find(&table, UUID_0)->bus_id, "00000000:18:00.0");

        samples[1].mig = true;
        table_update(&table, &samples[1], 1);
        assert_true(table_find(&table, UUID_0)->mig);

        /* A GPU that does not answer keeps what was known about it. */
        samples[1].mig = false;
        (void) strcpy(samples[1].error, "GPU is lost");
        table_update(&table, &samples[1], 1);
        assert_true(table_find(&table, UUID_0)->mig);

        assert_int_equal(table_replace(&table, samples, 1), 0);
        assert_null(table_find(&table, UUID_0));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_answer_comes_over_the_pipe_as_it_was),
                cmocka_unit_test(test_looks_come_over_the_pipe_behind_their_resets),
                cmocka_unit_test(test_a_look_with_a_wrong_uuid_is_refused),
                cmocka_unit_test(test_more_looks_than_resets_are_refused),
                cmocka_unit_test(test_an_error_comes_over_the_pipe),
                cmocka_unit_test(test_warnings_add_up_as_far_as_they_fit),
                cmocka_unit_test(test_every_cut_answer_is_refused),
                cmocka_unit_test(test_no_damaged_byte_does_harm),
                cmocka_unit_test(test_an_error_with_items_is_refused),
                cmocka_unit_test(test_strings_that_do_not_end_are_ended),
                cmocka_unit_test(test_the_table_learns_from_probes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
