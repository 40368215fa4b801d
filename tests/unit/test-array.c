/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <stdint.h>

#include "agent/base/array.h"
#include "agent/base/cleanup.h"

static void test_an_array_grows_and_keeps_what_it_has(void **state) {
        CLEANUP(free_ptr) uint32_t *numbers = NULL;

        for (uint32_t i = 0; i < 1000; i++) {
                assert_int_equal(array_reserve(&numbers, i, 1), 0);
                numbers[i] = i;
        }
        for (uint32_t i = 0; i < 1000; i++)
                assert_int_equal(numbers[i], i);
}

static void test_an_array_that_was_made_to_measure_grows_too(void **state) {
        CLEANUP(free_ptr) uint64_t *numbers = calloc(3, sizeof *numbers);

        assert_non_null(numbers);
        assert_int_equal(array_reserve(&numbers, 3, 1), 0);
        numbers[3] = 4;
        assert_int_equal(array_reserve(&numbers, 3, 0), 0);
        assert_int_equal(numbers[0], 0);
}

static void test_more_than_can_be_counted_is_no_room(void **state) {
        CLEANUP(free_ptr) uint64_t *numbers = calloc(1, sizeof *numbers);
        uint64_t *before = numbers;

        assert_int_equal(array_reserve(&numbers, SIZE_MAX, 1), -ENOMEM);
        assert_int_equal(array_reserve(&numbers, SIZE_MAX / 2 + 1, 1), -ENOMEM);
        assert_ptr_equal(numbers, before);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_array_grows_and_keeps_what_it_has),
                cmocka_unit_test(test_an_array_that_was_made_to_measure_grows_too),
                cmocka_unit_test(test_more_than_can_be_counted_is_no_room),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
