/* SPDX-License-Identifier: MIT */
/* GPUs are found by what people and programs call them. */
#include "tests/unit/fixture.h"

#include <errno.h>

static Gpu* add(Inventory *inventory, size_t i, uint32_t index, const char *bus_id, bool present) {
        char uuid[GPU_UUID_SIZE];
        Gpu *gpu;

        fake_uuid(i, uuid);
        assert_int_equal(gpu_new(uuid, &gpu), 0);
        gpu->sample.index = index;
        gpu->present = present;
        assert_int_equal(bus_id_parse(bus_id, gpu->sample.bus_id), 0);
        assert_int_equal(inventory_add(inventory, gpu), 0);
        inventory_sort(inventory);
        return gpu;
}

static void found(const Inventory *inventory, const char *id, const Gpu *expected) {
        Gpu *gpu;

        assert_int_equal(inventory_find(inventory, id, &gpu), 0);
        assert_ptr_equal(gpu, expected);
}

static void test_an_empty_inventory_finds_nothing(void **state) {
        Inventory inventory = {};
        Gpu *gpu;

        inventory_sort(&inventory);
        assert_int_equal(inventory_find(&inventory, "0", &gpu), -ENOENT);
        assert_int_equal(inventory_find(&inventory, "0000:18:00.0", &gpu), -ENOENT);
        assert_null(inventory_by_uuid(&inventory, "GPU-5ef0a1b2-0000-4000-8000-000000000000"));
        inventory_done(&inventory);
}

static void test_each_kind_of_id_finds_its_gpu(void **state) {
        Inventory inventory = {};
        const Gpu *third = add(&inventory, 2, 0, "0000:03:00.0", true);
        const Gpu *first = add(&inventory, 0, 2, "0000:01:00.0", true);
        const Gpu *second = add(&inventory, 1, 1, "0009:02:00.0", true);

        found(&inventory, "0", third);
        found(&inventory, "1", second);
        found(&inventory, "2", first);
        found(&inventory, "GPU-5ef0a1b2-0000-4000-8000-000000000000", first);
        found(&inventory, "GPU-5EF0A1B2-0000-4000-8000-000000000001", second);
        found(&inventory, "00000009:02:00.0", second);
        found(&inventory, "0009:02:00.0", second);
        found(&inventory, "00000000:03:00.0", third);
        assert_ptr_equal(inventory.by_uuid[0], first);
        assert_ptr_equal(inventory.by_index[0], third);
        inventory_done(&inventory);
}

static void test_what_is_no_id_or_no_gpu_leaves_the_answer_alone(void **state) {
        static const struct {
                const char *id;
                int error;
        } cases[] = {
                { "", -EINVAL },
                { "x", -EINVAL },
                { "01", -EINVAL },
                { "-0", -EINVAL },
                { "GPU-1", -EINVAL },
                { "4294967295", -EINVAL },
                { "0 ", -EINVAL },
                { "18:00", -EINVAL },
                { "7", -ENOENT },
                { "0001:01:00.0", -ENOENT },
                { "01:00.1", -ENOENT },
                { "GPU-00000000-0000-0000-0000-000000000000", -ENOENT },
        };
        Inventory inventory = {};
        Gpu *gpu = add(&inventory, 0, 0, "0000:01:00.0", true), *was = gpu;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                assert_int_equal(inventory_find(&inventory, cases[i].id, &gpu), cases[i].error);
                assert_ptr_equal(gpu, was);
        }
        inventory_done(&inventory);
}

static void test_a_gpu_without_an_index_is_not_found_by_one_and_comes_last(void **state) {
        Inventory inventory = {};
        const Gpu *without = add(&inventory, 0, UNKNOWN_U32, "0000:01:00.0", true);
        const Gpu *with = add(&inventory, 1, 3, "0000:02:00.0", true);
        Gpu *gpu;

        assert_ptr_equal(inventory.by_index[0], with);
        assert_ptr_equal(inventory.by_index[1], without);
        assert_int_equal(inventory_find(&inventory, "4294967295", &gpu), -EINVAL);
        found(&inventory, "0000:01:00.0", without);
        inventory_done(&inventory);
}

static void test_a_lost_gpu_keeps_its_names_until_another_takes_them(void **state) {
        Inventory inventory = {};
        const Gpu *lost = add(&inventory, 0, 0, "0000:01:00.0", false), *other;

        found(&inventory, "0", lost);
        found(&inventory, "0000:01:00.0", lost);
        other = add(&inventory, 1, 0, "0000:01:00.0", true);
        found(&inventory, "0", other);
        found(&inventory, "0000:01:00.0", other);
        found(&inventory, "GPU-5ef0a1b2-0000-4000-8000-000000000000", lost);
        inventory_done(&inventory);
}

static void test_a_slot_is_that_of_the_gpu_in_it_whatever_the_index_of_a_lost_one(void **state) {
        Inventory inventory = {};
        const Gpu *other;

        (void) add(&inventory, 0, 0, "0000:01:00.0", false);
        other = add(&inventory, 1, 5, "0000:01:00.0", true);
        found(&inventory, "0000:01:00.0", other);
        inventory_done(&inventory);
}

static void test_many_gpus_added_in_any_order_are_all_found(void **state) {
        Inventory inventory = {};
        Gpu *gpus[256];

        for (size_t i = 0; i < ELEMENTSOF(gpus); i++) {
                size_t number = (i * 89) % ELEMENTSOF(gpus);
                char bus_id[GPU_BUS_ID_SIZE];

                (void) snprintf(bus_id, sizeof bus_id, "0000:%02zx:00.0", number);
                gpus[number] = add(&inventory, number, (uint32_t) (255 - number), bus_id, true);
        }
        for (size_t i = 0; i < ELEMENTSOF(gpus); i++) {
                char id[GPU_UUID_SIZE];

                (void) snprintf(id, sizeof id, "%zu", 255 - i);
                found(&inventory, id, gpus[i]);
                fake_uuid(i, id);
                found(&inventory, id, gpus[i]);
                assert_ptr_equal(inventory.by_uuid[i], gpus[i]);
                assert_ptr_equal(inventory.by_index[255 - i], gpus[i]);
        }
        inventory_done(&inventory);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_empty_inventory_finds_nothing),
                cmocka_unit_test(test_each_kind_of_id_finds_its_gpu),
                cmocka_unit_test(test_what_is_no_id_or_no_gpu_leaves_the_answer_alone),
                cmocka_unit_test(test_a_gpu_without_an_index_is_not_found_by_one_and_comes_last),
                cmocka_unit_test(test_a_lost_gpu_keeps_its_names_until_another_takes_them),
                cmocka_unit_test(test_a_slot_is_that_of_the_gpu_in_it_whatever_the_index_of_a_lost_one),
                cmocka_unit_test(test_many_gpus_added_in_any_order_are_all_found),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
