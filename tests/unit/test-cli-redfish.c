/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "cli/redfish-body.h"

static void formats_as(const char *body, const char *expected) {
        CLEANUP(free_ptr) char *text = NULL;

        assert_int_equal(redfish_body_format(body, strlen(body), OUTPUT_JSON_SHORT, &text), 0);
        assert_string_equal(text, expected);
}

static void refuses(const char *body, size_t size) {
        char *text = NULL;

        assert_int_equal(redfish_body_format(body, size, OUTPUT_JSON_SHORT, &text), -EINVAL);
        assert_null(text);
}

static void test_an_answer_keeps_its_order_and_its_slashes(void **state) {
        formats_as("{\"CliqueID\": 1, \"@odata.id\": \"/redfish/v1\"}\n",
                        "{\"CliqueID\":1,\"@odata.id\":\"/redfish/v1\"}");
        formats_as("[null,true,1.50,-3,\"\"]", "[null,true,1.50,-3,\"\"]");
        formats_as("7", "7");
        formats_as("null", "null");
}

static void test_pretty_is_in_lines(void **state) {
        CLEANUP(free_ptr) char *text = NULL;

        assert_int_equal(redfish_body_format("{\"a\":[1]}", 9, OUTPUT_JSON_PRETTY, &text), 0);
        assert_non_null(strchr(text, '\n'));
}

static void test_no_character_reaches_a_terminal_that_would_move_it(void **state) {
        formats_as("[\"\\u001b[2J\"]", "[\"\\u001b[2J\"]");
        formats_as("[\"\xc2\x9b"
                   "2J\x7f\"]",
                        "[\"\\u009b2J\\u007f\"]");
        formats_as("[\"\xe2\x82\xac\xf0\x9f\x98\x80\"]", "[\"\\u20ac\\ud83d\\ude00\"]");
}

static void test_what_is_not_json_is_refused(void **state) {
        static const char *const bodies[] = { "", " ", "<html></html>", "{", "{\"a\":1", "{\"a\":1}x",
                "{\"a\":1}{}", "[1,]", "[\"\x80\"]", "[\"\xc3(\"]", "[\"\xc0\x9b\"]", "[\"\xed\xa0\x80\"]",
                "[\"\xf8\x88\x80\x80\"]", "\"a", "tru" };

        for (size_t i = 0; i < ELEMENTSOF(bodies); i++)
                refuses(bodies[i], strlen(bodies[i]));
        refuses("{}\0{}", 5);
}

static void test_depth_is_bounded(void **state) {
        char body[4096];

        memset(body, '[', sizeof body);
        refuses(body, sizeof body);
}

static void says(const char *body, const char *expected) {
        CLEANUP(free_ptr) char *message = NULL;

        assert_int_equal(redfish_body_error(body, strlen(body), &message), 0);
        assert_string_equal(message, expected);
}

static void test_an_error_says_why_in_one_line(void **state) {
        static const char *const silent[] = { "", "[]", "{}", "{\"error\":1}", "{\"error\":{}}",
                "{\"error\":{\"message\":1}}", "{\"error\":{\"@Message.ExtendedInfo\":[]}}",
                "{\"error\":{\"@Message.ExtendedInfo\":[7]}}" };

        says("{\"error\":{\"code\":\"x\",\"message\":\"no\\nsuch\\u001b thing\"}}", "no?such? thing");
        says("{\"error\":{\"message\":\"see below\",\"@Message.ExtendedInfo\":[{\"Message\":\"it is "
             "off\"}]}}",
                        "it is off");
        for (size_t i = 0; i < ELEMENTSOF(silent); i++) {
                char *message = NULL;

                assert_int_equal(redfish_body_error(silent[i], strlen(silent[i]), &message), -ENOENT);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_answer_keeps_its_order_and_its_slashes),
                cmocka_unit_test(test_pretty_is_in_lines),
                cmocka_unit_test(test_no_character_reaches_a_terminal_that_would_move_it),
                cmocka_unit_test(test_what_is_not_json_is_refused),
                cmocka_unit_test(test_depth_is_bounded),
                cmocka_unit_test(test_an_error_says_why_in_one_line),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
