/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <stdlib.h>

#include "agent/base/cleanup.h"
#include "agent/base/text-stream.h"
#include "agent/base/text.h"

static void test_escaped_text_is_printable_ascii(void **state) {
        char out[1100], in[256];

        text_escape("python3 -c \"x\"", out, sizeof out);
        assert_string_equal(out, "python3 -c \"x\"");
        text_escape("\xff\x1b[31m\n\\", out, sizeof out);
        assert_string_equal(out, "\\xff\\x1b[31m\\x0a\\\\");

        for (size_t i = 1; i < sizeof in; i++)
                in[i - 1] = (char) i;
        in[255] = '\0';
        text_escape(in, out, sizeof out);
        for (const char *p = out; *p; p++)
                assert_true(*p >= ' ' && *p <= '~');
}

static void test_escaped_text_is_cut_before_an_escape_that_does_not_fit(void **state) {
        char out[8];

        text_escape("abc\xff", out, sizeof out); /* 3 + 4 and the NUL */
        assert_string_equal(out, "abc\\xff");
        text_escape("abcd\xff", out, sizeof out);
        assert_string_equal(out, "abcd");
        text_escape("abcdef\\", out, sizeof out);
        assert_string_equal(out, "abcdef");
        text_escape("abcdefghi", out, sizeof out);
        assert_string_equal(out, "abcdefg");
        text_escape("x", out, 1);
        assert_string_equal(out, "");
}

static void test_no_text_escapes_to_an_empty_one(void **state) {
        char out[4] = "old";

        text_escape(NULL, out, sizeof out);
        assert_string_equal(out, "");
}

static void test_bytes_need_no_end_mark(void **state) {
        char out[16];

        text_escape_bytes((const char[]){ 'a', '\t', 'b' }, 3, out, sizeof out);
        assert_string_equal(out, "a\\x09b");
        text_escape_bytes("a\0b", 3, out, sizeof out);
        assert_string_equal(out, "a");
}

static void test_words_from_outside_end_without_a_full_stop(void **state) {
        static const struct {
                const char *in, *out;
        } cases[] = { { " It failed. Reboot it.\n", "It failed. Reboot it" }, { "No", "No" },
                { "Wait...", "Wait" }, { "a\nb", "a\\x0ab" }, { ". \n", "" }, { "", "" }, { NULL, "" } };
        char out[32];

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                text_escape_words(cases[i].in, out, sizeof out);
                assert_string_equal(out, cases[i].out);
        }
}

static void test_strip_takes_white_space_off_both_ends_only(void **state) {
        char text[] = " \t a b\r\n ", blank[] = " \n", empty[] = "";

        assert_string_equal(text_strip(text), "a b");
        assert_string_equal(text_strip(blank), "");
        assert_string_equal(text_strip(empty), "");
}

static void test_startswith_gives_the_rest(void **state) {
        assert_string_equal(startswith("slurm/27", "slurm/"), "27");
        assert_string_equal(startswith("slurm", "slurm"), "");
        assert_null(startswith("slur", "slurm"));
        assert_string_equal(startswith("x", ""), "x");
}

static void test_a_strv_grows_by_copies(void **state) {
        CLEANUP(strv_free_ptr) char **strv = NULL;
        char item[] = "one";

        assert_int_equal(strv_length(NULL), 0);
        assert_false(strv_contains(NULL, "one"));
        assert_int_equal(strv_append(&strv, item), 0);
        item[0] = 'x';
        assert_int_equal(strv_append(&strv, "two"), 0);

        assert_int_equal(strv_length(strv), 2);
        assert_string_equal(strv[0], "one");
        assert_null(strv[2]);
        assert_true(strv_contains(strv, "two"));
        assert_false(strv_contains(strv, "tw"));
}

static void test_a_text_is_written_like_a_file(void **state) {
        CLEANUP(text_stream_done) TextStream stream = {}, left_open = {};
        CLEANUP(free_ptr) char *text = NULL;
        FILE *file = text_stream_open(&stream);

        assert_non_null(file);
        for (unsigned i = 0; i < 10; i++)
                (void) fprintf(file, "%u,", i);
        assert_int_equal(text_stream_take(&stream, &text), 0);
        assert_string_equal(text, "0,1,2,3,4,5,6,7,8,9,");
        assert_int_equal(stream.size, 20);

        file = text_stream_open(&left_open);
        assert_non_null(file);
        (void) fputs("never flushed", file);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_escaped_text_is_printable_ascii),
                cmocka_unit_test(test_escaped_text_is_cut_before_an_escape_that_does_not_fit),
                cmocka_unit_test(test_no_text_escapes_to_an_empty_one),
                cmocka_unit_test(test_bytes_need_no_end_mark),
                cmocka_unit_test(test_words_from_outside_end_without_a_full_stop),
                cmocka_unit_test(test_strip_takes_white_space_off_both_ends_only),
                cmocka_unit_test(test_startswith_gives_the_rest),
                cmocka_unit_test(test_a_strv_grows_by_copies),
                cmocka_unit_test(test_a_text_is_written_like_a_file),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
