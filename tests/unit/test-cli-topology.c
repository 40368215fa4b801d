/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <errno.h>

#include "agent/base/text.h"
#include "cli/gres.h"
#include "cli/node-list.h"
#include "cli/slurm-features.h"
#include "cli/topology.h"

#define CLUSTER "7f3c2a10-5b4e-4d6a-9c1e-2b8f0e6d4a91"
#define DAY     ((uint64_t) 24 * 3600 * USEC_PER_SEC)
#define NOW     ((uint64_t) 1795998573 * USEC_PER_SEC)

static void assert_list(const char *words, const char *expected) {
        CLEANUP(strv_free_ptr) char **names = NULL, **again = NULL;
        CLEANUP(free_ptr) char *list = NULL;

        assert_int_equal(list_parse(words, &names), 0);
        assert_int_equal(node_list_format(names, &list), 0);
        assert_string_equal(list, expected);
        assert_int_equal(node_list_parse(list, &again), 0);
        assert_int_equal(strv_length(again), strv_length(names));
        STRV_FOREACH (name, names)
                assert_true(strv_contains(again, *name));
}

static void test_a_list_of_nodes_reads_as_slurm_writes_it(void **state) {
        assert_list("n1", "n1");
        assert_list("n2,n1", "n[1-2]");
        assert_list("n1,n3,n2,n5", "n[1-3,5]");
        assert_list("n9,n10,n11", "n[9-11]");
        assert_list("n008,n009,n010", "n[008-010]");
        assert_list("a1,b1,a2,login", "a[1-2],b1,login");
        assert_list("r1-n1,r1-n2,r2-n1", "r1-n[1-2],r2-n1");
        assert_list("1,2", "1,2");
        assert_list("n12345678901,n12345678902", "n12345678901,n12345678902");
}

static void test_a_list_with_a_mistake_is_refused(void **state) {
        static const char *const bad[] = { "", ",", "n[", "n[]", "n[1", "n[1-]", "n[2-1]", "n[1,]", "n[1-2",
                "n[1]x[2]", "n1,", "n 1", "n[1-9999999999]", "n[a-b]", "n[10-9]", "n[1-2]x" };

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                char **names = NULL;

                assert_true(node_list_parse(bad[i], &names) < 0);
                assert_null(names);
        }
        assert_int_equal(node_list_parse("n[1-999999999]", &(char **){ NULL }), -E2BIG);
}

/* GPUs that are all in a clique; 0 for one that does not say. */
static Tray tray_with(GpuView *gpus, const uint32_t cliques[static 4]) {
        for (size_t i = 0; i < 4; i++)
                gpus[i] = (GpuView){ .state = "clean",
                        .fabric_state = cliques[i] > 0 ? "completed" : "in-progress",
                        .clique_id = cliques[i] > 0 ? cliques[i] : UNKNOWN_U32,
                        .cluster_uuid = cliques[i] > 0 ? CLUSTER : "" };
        return (Tray){ .driver_state = "ok", .gpus = gpus, .n_gpus = 4 };
}

static void add(Topology *topology, const char *name, const uint32_t cliques[static 4]) {
        GpuView gpus[4];
        Tray tray = tray_with(gpus, cliques);

        assert_int_equal(topology_add(topology, name, &tray), 0);
}

static char* format(const Topology *topology, const ClientConfig *config) {
        char *text = NULL;

        assert_int_equal(topology_format(topology, config, &text), 0);
        return text;
}

static void test_what_is_written_is_read_again_in_every_form(void **state) {
        for (int form = TOPOLOGY_BLOCK_SIZES; form <= TOPOLOGY_FEATURES; form++) {
                CLEANUP(topology_done) Topology topology = {}, none = {}, again = {};
                CLEANUP(free_ptr) char *text = NULL;
                ClientConfig config = { .topology = { .format = form } };

                add(&topology, "n1", (uint32_t[]){ 1, 1, 1, 1 });
                add(&topology, "n2", (uint32_t[]){ 1, 1, 1, 1 });
                add(&topology, "n3", (uint32_t[]){ 7, 7, 7, 7 });
                add(&topology, "n4", (uint32_t[]){ 7, 7, 1, 1 });
                topology_resolve(&topology, &none, NOW);
                text = format(&topology, &config);
                assert_int_equal(topology_parse(text, &again), 0);
                assert_int_equal(again.n_nodes, 3);
                assert_int_equal(topology_find(&again, "n2")->block, 1);
                assert_int_equal(topology_find(&again, "n3")->block, 2);
                assert_int_equal(topology_find(&again, "n3")->clique.id, 7);
                assert_string_equal(topology_find(&again, "n3")->clique.cluster, CLUSTER);
                assert_null(topology_find(&again, "n4"));
        }
}

static void test_a_silent_tray_keeps_its_block_for_a_day(void **state) {
        CLEANUP(topology_done) Topology first = {}, none = {};
        CLEANUP(free_ptr) char *text = NULL;
        ClientConfig config = {};

        add(&first, "n1", (uint32_t[]){ 1, 1, 1, 1 });
        add(&first, "n2", (uint32_t[]){ 7, 7, 7, 7 });
        topology_resolve(&first, &none, NOW);
        text = format(&first, &config);

        for (size_t hours = 0; hours <= 26; hours += 2) {
                CLEANUP(topology_done) Topology next = {}, old = {};
                const TopologyNode *silent;

                assert_int_equal(topology_parse(text, &old), 0);
                add(&next, "n1", (uint32_t[]){ 1, 1, 1, 1 });
                assert_int_equal(topology_add(&next, "n2", NULL), 0);
                topology_resolve(&next, &old, NOW + DAY / 24 * hours);
                silent = topology_find(&next, "n2");
                assert_int_equal(silent->block, hours < 24 ? 2 : 0);
                assert_int_equal(silent->state, hours < 24 ? TOPOLOGY_SILENT : TOPOLOGY_LEFT_OUT);
                free(text);
                text = format(&next, &config);
        }
}

static void test_a_clock_that_was_set_back_does_not_prolong_a_silence(void **state) {
        CLEANUP(topology_done) Topology first = {}, none = {}, old = {}, next = {};
        CLEANUP(free_ptr) char *text = NULL;
        ClientConfig config = {};

        add(&first, "n1", (uint32_t[]){ 1, 1, 1, 1 });
        topology_resolve(&first, &none, NOW);
        text = format(&first, &config);
        assert_int_equal(topology_parse(text, &old), 0);
        old.nodes[0].silent_since_usec = NOW + 365 * DAY;

        assert_int_equal(topology_add(&next, "n1", NULL), 0);
        topology_resolve(&next, &old, NOW);
        assert_int_equal(next.nodes[0].state, TOPOLOGY_SILENT);
        assert_true(next.nodes[0].silent_since_usec == NOW);
}

static void test_gpus_that_say_nothing_do_not_outvote_the_others(void **state) {
        CLEANUP(topology_done) Topology old = {}, none = {}, same = {}, other = {}, fresh = {};

        add(&old, "n1", (uint32_t[]){ 1, 1, 1, 1 });
        topology_resolve(&old, &none, NOW);
        add(&same, "n1", (uint32_t[]){ 1, 0, 1, 1 });
        topology_resolve(&same, &old, NOW);
        assert_int_equal(topology_find(&same, "n1")->block, 1);
        add(&other, "n1", (uint32_t[]){ 7, 0, 7, 7 });
        topology_resolve(&other, &old, NOW);
        assert_int_equal(topology_find(&other, "n1")->state, TOPOLOGY_LEFT_OUT);
        add(&fresh, "n1", (uint32_t[]){ 1, 0, 1, 1 });
        topology_resolve(&fresh, &none, NOW);
        assert_int_equal(topology_find(&fresh, "n1")->state, TOPOLOGY_LEFT_OUT);
}

static void test_a_clique_of_another_cluster_is_another_block(void **state) {
        CLEANUP(topology_done) Topology topology = {}, none = {};
        GpuView gpus[4];
        Tray tray = tray_with(gpus, (uint32_t[]){ 1, 1, 1, 1 });

        add(&topology, "n1", (uint32_t[]){ 1, 1, 1, 1 });
        for (size_t i = 0; i < 4; i++)
                gpus[i].cluster_uuid = "00000000-0000-0000-0000-000000000001";
        assert_int_equal(topology_add(&topology, "n2", &tray), 0);
        topology_resolve(&topology, &none, NOW);
        assert_int_equal(topology_next_block(&topology, 1), 2);
        assert_int_equal(topology_next_block(&topology, 2), 0);
}

static void test_a_tray_cannot_write_into_the_file(void **state) {
        CLEANUP(topology_done) Topology topology = {}, none = {};
        GpuView gpus[4];
        Tray tray = tray_with(gpus, (uint32_t[]){ 1, 1, 1, 1 });

        for (size_t i = 0; i < 4; i++)
                gpus[i].cluster_uuid = "7f3c2a10\nBlockName=all Nodes=ALL\n000000";
        assert_int_equal(topology_add(&topology, "n1", &tray), 0);
        topology_resolve(&topology, &none, NOW);
        assert_int_equal(topology.nodes[0].state, TOPOLOGY_LEFT_OUT);
}

static void test_files_of_others_and_spoilt_ones_are_not_read(void **state) {
        static const char *const spoilt[] = {
                "# written by gpuagentctl topology\n# block001=" CLUSTER
                ".1\nBlockName=block001 Nodes=n[1-\n",
                "# written by gpuagentctl topology\n# block001=" CLUSTER ".1\nBlockName=block001 Nodes=\n",
                "# written by gpuagentctl topology\n# block001=" CLUSTER ".1\nNodes=n1\nNodes=n1\n",
                "# written by gpuagentctl topology\n# block1=" CLUSTER ".1\nNodes=n[1-99999999]\n",
        };
        static const char *const foreign[] = { "", "BlockName=b Nodes=n1\n",
                "# block001=" CLUSTER
                ".1\nBlockName=block001 Nodes=n1\n# written by gpuagentctl topology\n" };
        Topology topology = {};

        for (size_t i = 0; i < ELEMENTSOF(spoilt); i++)
                assert_int_equal(topology_parse(spoilt[i], &topology), -EINVAL);
        for (size_t i = 0; i < ELEMENTSOF(foreign); i++)
                assert_int_equal(topology_parse(foreign[i], &topology), -EMEDIUMTYPE);
        assert_int_equal(topology.n_nodes, 0);
}

static void test_slurm_does_not_see_comments(void **state) {
        CLEANUP(free_ptr) char *text = NULL;

        assert_int_equal(topology_strip("# a\nb\n  # c\nd # e\n", &text), 0);
        assert_string_equal(text, "b\nd # e\n");
}

static void assert_features(const char *features, uint32_t block, const char *expected) {
        CLEANUP(free_ptr) char *text = NULL;

        assert_int_equal(features_replace(features, block, &text), 0);
        assert_string_equal(text, expected);
}

static void test_only_features_of_ours_are_replaced(void **state) {
        assert_features("(null)", 0, "");
        assert_features("(null)", 3, "block003");
        assert_features("a,block001,b", 2, "a,b,block002");
        assert_features("block001", 0, "");
        assert_features("block1,blocks,block001x,block0012", 12, "block1,blocks,block001x,block012");
}

static void assert_type(const char *name, const char *expected) {
        char type[64];

        gres_type_format(name, type, sizeof type);
        assert_string_equal(type, expected);
}

static void test_a_type_is_the_name_of_the_gpu(void **state) {
        assert_type("NVIDIA GB200", "gb200");
        assert_type("NVIDIA H100 80GB HBM3", "h100_80gb_hbm3");
        assert_type("Tesla V100-SXM2-16GB", "tesla_v100-sxm2-16gb");
        assert_type("", "");
}

static void test_links_go_to_gpus_or_switches(void **state) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(free_ptr) char *text = NULL;
        GpuView gpus[] = {
                { .state = "clean",
                                .name = "NVIDIA X",
                                .bus_id = "A",
                                .index = 0,
                                .minor = 2,
                                .n_links_known = 3,
                                .links = { { 0, true, "B" }, { 1, false, "B" }, { 2, true, "S" } } },
                { .state = "clean",
                                .name = "NVIDIA X",
                                .bus_id = "B",
                                .index = 1,
                                .minor = 1,
                                .n_links_known = 4,
                                .links = { { 0, true, "A" }, { 1, true, "A" }, { 2, true, "S" },
                                                { 3, true, "T" } } },
                { .state = "clean",
                                .name = "NVIDIA X",
                                .bus_id = "C",
                                .index = 2,
                                .minor = 0,
                                .n_links_known = 1,
                                .links = { { 0, true, "" } } },
        };
        Tray tray = { .gpus = gpus, .n_gpus = ELEMENTSOF(gpus), .driver_state = "ok" };

        assert_int_equal(gres_format(&tray, &text, &failure), 0);
        assert_string_equal(text,
                        "Name=gpu Type=x File=/dev/nvidia2 Links=-1,3,0\n"
                        "Name=gpu Type=x File=/dev/nvidia1 Links=3,-1,0\n"
                        "Name=gpu Type=x File=/dev/nvidia0\n");
        gpus[1].state = "lost";
        assert_true(gres_format(&tray, &text, &failure) < 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_list_of_nodes_reads_as_slurm_writes_it),
                cmocka_unit_test(test_a_list_with_a_mistake_is_refused),
                cmocka_unit_test(test_what_is_written_is_read_again_in_every_form),
                cmocka_unit_test(test_a_silent_tray_keeps_its_block_for_a_day),
                cmocka_unit_test(test_a_clock_that_was_set_back_does_not_prolong_a_silence),
                cmocka_unit_test(test_gpus_that_say_nothing_do_not_outvote_the_others),
                cmocka_unit_test(test_a_clique_of_another_cluster_is_another_block),
                cmocka_unit_test(test_a_tray_cannot_write_into_the_file),
                cmocka_unit_test(test_files_of_others_and_spoilt_ones_are_not_read),
                cmocka_unit_test(test_slurm_does_not_see_comments),
                cmocka_unit_test(test_only_features_of_ours_are_replaced),
                cmocka_unit_test(test_a_type_is_the_name_of_the_gpu),
                cmocka_unit_test(test_links_go_to_gpus_or_switches),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
