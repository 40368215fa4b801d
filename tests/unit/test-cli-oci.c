/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <errno.h>
#include <unistd.h>

#include "agent/base/text.h"
#include "cli/oci-bundle.h"
#include "cli/oci-gpus.h"

#define UID      "0a1b2c3d-1111-4222-8333-444455556666"
#define UUID     "GPU-81477906-d580-de42-e868-ff62e9ef4317"
#define HOOKS    "\"hooks\":{\"prestart\":[{\"path\":\"/usr/bin/nvidia-container-runtime-hook\"}]},"
#define ENV(...) "\"process\":{\"env\":[\"A=b\"," __VA_ARGS__ "]},"
#define NODE(n)  "{\"path\":\"/dev/x\",\"type\":\"c\",\"major\":195,\"minor\":" n "}"

static const OciRules plain_rules;

/* The GPUs of a configuration, with commas between; the members of its object end with one each. */
static char* gpus_of(const char *members, const char *namespace, const OciRules *rules) {
        CLEANUP(oci_container_done) OciContainer container = {};
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(strv_free_ptr) char **gpus = NULL;
        CLEANUP(free_ptr) char *text = NULL;
        char *joined = strdup("");

        assert_true(asprintf(&text, "{%s\"root\":{}}", members) > 0);
        oci_see_pod(&container, UID, namespace);
        assert_int_equal(oci_config_parse(text, strlen(text), &container, &failure), 0);
        assert_true(oci_gpus(&container, rules, &gpus) >= 0);
        STRV_FOREACH (gpu, gpus) {
                CLEANUP(free_ptr) char *shorter = joined;

                assert_true(asprintf(&joined, "%s%s%s", shorter, shorter[0] ? "," : "", *gpu) > 0);
        }
        return joined;
}

static void has(const char *members, const char *expected) {
        CLEANUP(free_ptr) char *seen = gpus_of(members, "jobs", &plain_rules);

        assert_string_equal(seen, expected);
}

static void test_device_nodes_are_gpus_by_their_minor(void **state) {
        has("\"linux\":{\"devices\":[" NODE("3") "," NODE("0") "]},", "/dev/nvidia3,/dev/nvidia0");
        has("\"linux\":{\"devices\":[" NODE("254") "," NODE("255") "," NODE("-1") "]},", "");
        has("\"linux\":{\"devices\":[{\"path\":\"/dev/nvidia1\",\"type\":\"c\",\"major\":1,\"minor\":3},"
            "{\"path\":\"/dev/nvidia-uvm\",\"type\":\"c\",\"major\":510,\"minor\":0},"
            "{\"path\":\"/dev/nvidiactl\"},{\"path\":7},[],null]},",
                        "/dev/nvidia1");
        has("\"mounts\":[{\"destination\":\"/dev/x\",\"source\":\"/dev/nvidia2\"}],", "/dev/nvidia2");
        has("\"mounts\":[{\"destination\":\"/dev/nvidia2\",\"source\":\"/var/lib/kubelet/volume\"}],", "");
}

static void test_what_may_be_opened_is_a_gpu_without_a_node(void **state) {
#define RULE(text) \
        "\"linux\":{\"resources\":{\"devices\":[{\"allow\":false,\"access\":\"rwm\"},{" text "}]}},"
        has(RULE("\"allow\":true,\"type\":\"c\",\"major\":195,\"minor\":2,\"access\":\"rw\""),
                        "/dev/nvidia2");
        has(RULE("\"allow\":true,\"type\":\"c\",\"major\":195,\"access\":\"rwm\""), "all");
        has(RULE("\"allow\":true,\"type\":\"c\",\"access\":\"r\""), "all");
        has(RULE("\"allow\":true,\"type\":\"c\",\"access\":\"m\""), "");
        has(RULE("\"allow\":true,\"type\":\"c\",\"major\":195,\"minor\":255,\"access\":\"rw\""), "");
        has(RULE("\"allow\":true,\"type\":\"c\",\"major\":136,\"access\":\"rwm\""), "");
        has(RULE("\"allow\":true,\"type\":\"b\",\"access\":\"rwm\""), "");
        has(RULE("\"allow\":false,\"type\":\"c\",\"major\":195,\"access\":\"rwm\""), "");
#undef RULE
}

static void test_the_variable_counts_only_where_it_is_acted_on(void **state) {
        static const OciRules runtime = { .nvidia_runtime = true };
        CLEANUP(free_ptr) char *seen = NULL;

        has(ENV("\"NVIDIA_VISIBLE_DEVICES=all\""), "");
        has(HOOKS ENV("\"NVIDIA_VISIBLE_DEVICES=all\""), "all");
        has(HOOKS ENV("\"NVIDIA_VISIBLE_DEVICES=0, 2," UUID "\""), "0,2," UUID);
        has(HOOKS ENV("\"NVIDIA_VISIBLE_DEVICES=void\""), "");
        has(HOOKS ENV("\"NVIDIA_VISIBLE_DEVICES=none\""), "");
        has(HOOKS ENV("\"NVIDIA_VISIBLE_DEVICES=\""), "");
        has(HOOKS ENV("\"NVIDIA_VISIBLE_DEVICES=1\",\"NVIDIA_VISIBLE_DEVICES=2\""), "2");
        has(HOOKS ENV("\"CUDA_VERSION=8.0.61\""), "all");
        has(HOOKS ENV("\"CUDA_VERSION=12.4\",\"NVIDIA_REQUIRE_CUDA=cuda>=12.4\""), "");
        seen = gpus_of(ENV("\"NVIDIA_VISIBLE_DEVICES=1\""), "jobs", &runtime);
        assert_string_equal(seen, "1");
}

static void test_mounts_name_gpus_beside_the_variable(void **state) {
        has("\"mounts\":[{\"destination\":\"/var/run/nvidia-container-devices/" UUID
            "\",\"source\":\"/dev/null\"},{\"destination\":\"/var/run/nvidia-container-devices/cdi/"
            "nvidia.com/"
            "gpu/1\",\"source\":\"/dev/null\"}]," HOOKS ENV(
                            "\"NVIDIA_VISIBLE_DEVICES=/var/run/nvidia-container-devices\""),
                        UUID ",1");
        has("\"mounts\":[{\"destination\":\"/var/run/nvidia-container-devices/0\",\"source\":\"/dev/null\"}"
            "]," HOOKS ENV("\"NVIDIA_VISIBLE_DEVICES=all\""),
                        "0,all");
        has("\"mounts\":[{\"destination\":\"/var/run/nvidia-container-devices/all\",\"source\":\"/tmp\"}],",
                        "");
}

static void test_annotations_of_cdi_name_gpus_and_no_others_do(void **state) {
        has("\"annotations\":{\"cdi.k8s.io/x\":\"nvidia.com/gpu=0,k8s.device-plugin.nvidia.com/gpu=" UUID
            ",example.com/gpu=5,evilnvidia.com/gpu=6,nvidia.com/net=7\","
            "\"example.com/gpu\":\"nvidia.com/gpu=8\",\"NVIDIA_VISIBLE_DEVICES\":\"9\"},",
                        "0," UUID);
        has("\"annotations\":{\"cdi.k8s.io/x\":\"nvidia.com/gpu=1\",\"io.kubernetes.cri-o.Annotations\":"
            "\"{\\\"cdi.k8s.io/y\\\":\\\"nvidia.com/gpu=0\\\"}\"},",
                        "0");
        has("\"annotations\":{\"cdi.k8s.io/x\":\"nvidia.com/gpu=1\",\"io.kubernetes.cri-o.Annotations\":"
            "\"null\"},",
                        "");
}

static void test_who_sees_all_devices_has_none_by_that(void **state) {
        static const char privileged[] = "\"linux\":{\"devices\":[" NODE("0") "," NODE(
                        "1") "],\"resources\":{"
                             "\"devices\":[{\"allow\":false,\"access\":\"rwm\"},{\"allow\":true,\"access\":"
                             "\"rwm\"}]}},";
        CLEANUP(free_ptr) char *all = NULL, *one = NULL;

        has(privileged, "");
        assert_true(asprintf(&all, "%s" HOOKS ENV("\"NVIDIA_VISIBLE_DEVICES=all\""), privileged) > 0);
        has(all, "");
        assert_true(asprintf(&one, "%s" HOOKS ENV("\"NVIDIA_VISIBLE_DEVICES=" UUID "\""), privileged) > 0);
        has(one, UUID);
        has("\"linux\":{\"devices\":[" NODE(
                            "0") "],\"resources\":{\"devices\":[{\"allow\":false},"
                                 "{\"allow\":true,\"type\":\"c\",\"major\":195,\"minor\":0}]}},",
                        "/dev/nvidia0");
}

static void test_an_observer_is_no_tenant_by_the_variable(void **state) {
        char monitoring[] = "monitoring";
        char *namespaces[] = { monitoring, NULL };
        const OciRules rules = { .observers = namespaces };
        CLEANUP(free_ptr)
        char *observer = gpus_of(HOOKS ENV("\"NVIDIA_VISIBLE_DEVICES=all\""), "monitoring", &rules);
        CLEANUP(free_ptr)
        char *tenant = gpus_of(HOOKS ENV("\"NVIDIA_VISIBLE_DEVICES=all\""), "jobs", &rules);
        CLEANUP(free_ptr)
        char *given = gpus_of("\"linux\":{\"devices\":[" NODE("1") "]},", "monitoring", &rules);

        assert_string_equal(observer, "");
        assert_string_equal(tenant, "all");
        assert_string_equal(given, "/dev/nvidia1");
}

/* CRI-O puts all annotations of the pod's author beside its own. */
static void test_no_pod_makes_itself_an_observer(void **state) {
        static const char labels[] =
                        "\"io.kubernetes.cri-o.Labels\":\"{\\\"io.kubernetes.pod.uid\\\":\\\"" UID
                        "\\\",\\\"io.kubernetes.pod.namespace\\\":\\\"%s\\\"}\"";
        static const char *const authors[] = { ",\"io.kubernetes.cri.sandbox-namespace\":\"monitoring\"",
                ",\"io.kubernetes.cri.sandbox-namespace\":\"monitoring\",\"io.kubernetes.cri.sandbox-uid\":"
                "\"" UID "\"",
                "" };
        char monitoring[] = "monitoring", *namespaces[] = { monitoring, NULL };

        for (size_t i = 0; i < ELEMENTSOF(authors); i++) {
                CLEANUP(oci_container_done) OciContainer container = {};
                CLEANUP(failure_done) Failure failure = {};
                CLEANUP(free_ptr) char *crio = NULL, *text = NULL;
                bool honest = authors[i][0] == '\0';

                assert_true(asprintf(&crio, labels, honest ? "monitoring" : "jobs") > 0);
                assert_true(asprintf(&text,
                                            "{\"annotations\":{%s%s},\"linux\":{\"cgroupsPath\":\"/kubepods/"
                                            "pod" UID "/c\"}}",
                                            crio, authors[i]) > 0);
                assert_int_equal(oci_config_parse(text, strlen(text), &container, &failure), 0);
                assert_true(oci_is_pods(&container));
                assert_int_equal(oci_observes(&container, namespaces), honest);
        }
}

static void test_too_many_gpus_are_refused(void **state) {
        CLEANUP(oci_container_done) OciContainer container = {};
        CLEANUP(strv_free_ptr) char **gpus = NULL;
        static char list[32768] = "NVIDIA_VISIBLE_DEVICES=0";
        size_t n = strlen(list);

        for (unsigned i = 1; n < sizeof list - 16; i++)
                n += (size_t) snprintf(list + n, sizeof list - n, ",%u", i);
        oci_see_hook(&container, "nvidia-container-toolkit");
        assert_int_equal(oci_see_variable(&container, list), 0);
        assert_int_equal(oci_gpus(&container, &plain_rules, &gpus), -E2BIG);
}

static void tenant_is(const char *text, const char *cgroup, const char *expected) {
        CLEANUP(oci_container_done) OciContainer container = {};
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(free_ptr) char *bundle = NULL;
        char tenant[TENANT_MAX + 1] = "";

        assert_int_equal(oci_state_parse(text, strlen(text), &container, &bundle, &failure), 0);
        oci_see_cgroup(&container, cgroup);
        (void) oci_tenant(&container, tenant);
        assert_string_equal(tenant, expected);
}

static void test_the_tenant_is_a_pod_that_can_be_seen_or_the_container(void **state) {
        static const char containerd[] = "{\"id\":\"abc\",\"bundle\":\"/b\",\"annotations\":{"
                                         "\"io.kubernetes.cri.sandbox-uid\":\"" UID
                                         "\",\"io.kubernetes.cri.sandbox-namespace\":\"x\"}}";
        static const char crio[] = "{\"id\":\"abc\",\"bundle\":\"/b\",\"annotations\":{"
                                   "\"io.kubernetes.cri-o.Labels\":\"{\\\"io.kubernetes.pod.uid\\\":\\\"" UID
                                   "\\\"}\"}}";
        static const char static_pod[] =
                        "{\"id\":\"abc\",\"bundle\":\"/"
                        "b\",\"annotations\":{\"io.kubernetes.cri-o.Labels\":\""
                        "{\\\"io.kubernetes.pod.uid\\\":\\\"387dbf3058d1b66efe3b8f261a3083c0\\\"}\"}}";

        tenant_is(containerd, "/kubepods/burstable/pod" UID "/abc", "pod/" UID);
        tenant_is(crio, "kubepods-besteffort-pod0a1b2c3d_1111_4222_8333_444455556666.slice:crio:abc",
                        "pod/" UID);
        tenant_is(static_pod, "kubepods-pod387dbf3058d1b66efe3b8f261a3083c0.slice:crio:abc",
                        "pod/387dbf3058d1b66efe3b8f261a3083c0");
        tenant_is(containerd, "/k8s.io/abc", "container/abc");
        tenant_is(containerd, "/kubepods/podff1b2c3d-1111-4222-8333-444455556666/abc", "container/abc");
        tenant_is("{\"id\":\"abc\",\"bundle\":\"/b\"}", "/kubepods/pod" UID, "container/abc");
        tenant_is("{\"id\":\"a/b\",\"bundle\":\"/b\"}", "", "");
}

static void test_a_state_that_is_none_is_refused(void **state) {
        static const char *const wrong[] = { "", "{", "[]", "7", "null", "{\"id\":\"a\"}",
                "{\"bundle\":\"/b\"}", "{\"id\":\"\",\"bundle\":\"/b\"}", "{\"id\":\"a\",\"bundle\":\"b\"}",
                "{\"id\":7,\"bundle\":\"/b\"}", "{\"id\":\"a\",\"bundle\":\"/b\"} x",
                "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[" };

        for (size_t i = 0; i < ELEMENTSOF(wrong); i++) {
                CLEANUP(oci_container_done) OciContainer container = {};
                CLEANUP(failure_done) Failure failure = {};
                CLEANUP(free_ptr) char *bundle = NULL;

                assert_true(oci_state_parse(wrong[i], strlen(wrong[i]), &container, &bundle, &failure) < 0);
                assert_non_null(failure.message);
                assert_null(bundle);
        }
}

static void test_a_state_that_does_not_end_is_not_waited_for(void **state) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(free_ptr) char *text = NULL;
        int fds[2];
        size_t size;

        assert_int_equal(pipe(fds), 0);
        assert_true(oci_state_read(fds[0], now_monotonic_usec() + 10 * USEC_PER_MSEC, &text, &size,
                                    &failure) < 0);
        assert_string_equal(failure.message, "the container's state on stdin does not end");
        (void) close(fds[0]);
        (void) close(fds[1]);
}

static void test_gpus_are_found_in_the_tray(void **state) {
        GpuView views[] = { { .uuid = UUID, .state = "clean", .index = 0, .minor = 3 },
                { .uuid = "GPU-91488ef0-5668-4b3a-b971-f8fb582a0fb2",
                                .state = "clean",
                                .index = 1,
                                .minor = 0 },
                { .uuid = "GPU-11488ef0-5668-4b3a-b971-f8fb582a0fb2",
                                .state = "lost",
                                .index = 2,
                                .minor = 1 } };
        const Tray tray = { .gpus = views, .n_gpus = ELEMENTSOF(views) };
        char node[] = "/dev/nvidia3", uuid[] = UUID, all[] = "all", mig[] = "MIG-1", part[] = "0:1",
             nine[] = "9";
        char *same[] = { node, uuid, NULL }, *every[] = { all, NULL }, *parts[] = { mig, part, NULL },
             *unknown[] = { nine, NULL };
        static const OciContainer container = { .namespace = "monitoring" };
        char monitoring[] = "monitoring", *namespaces[] = { monitoring, NULL };
        const Config refuse = { .handover.mig = MIG_REFUSE }, skip = { .handover.mig = MIG_SKIP };
        const Config observed = { .oci.observers = namespaces };
        CLEANUP(gpu_set_done) GpuSet one = {}, two = {}, none = {};
        CLEANUP(failure_done) Failure failure = {};

        assert_int_equal(oci_gpus_find(&container, same, &tray, &refuse, &one, &failure), 1);
        assert_string_equal(one.names, "0");
        assert_int_equal(oci_gpus_find(&container, every, &tray, &refuse, &two, &failure), 1);
        assert_string_equal(two.names, "0,1");
        assert_int_equal(oci_gpus_find(&container, parts, &tray, &skip, &none, &failure), 0);
        assert_true(oci_gpus_find(&container, parts, &tray, &refuse, &none, &failure) < 0);
        assert_true(oci_gpus_find(&container, unknown, &tray, &refuse, &none, &failure) < 0);
        assert_int_equal(failure.exit_code, CLI_NO_GPU);
        assert_int_equal(oci_gpus_find(&container, every, &tray, &observed, &none, &failure), 0);
        assert_null(none.ids);
        assert_int_equal(oci_gpus_find(&container, same, &tray, &observed, &none, &failure), 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_device_nodes_are_gpus_by_their_minor),
                cmocka_unit_test(test_what_may_be_opened_is_a_gpu_without_a_node),
                cmocka_unit_test(test_the_variable_counts_only_where_it_is_acted_on),
                cmocka_unit_test(test_mounts_name_gpus_beside_the_variable),
                cmocka_unit_test(test_annotations_of_cdi_name_gpus_and_no_others_do),
                cmocka_unit_test(test_who_sees_all_devices_has_none_by_that),
                cmocka_unit_test(test_an_observer_is_no_tenant_by_the_variable),
                cmocka_unit_test(test_no_pod_makes_itself_an_observer),
                cmocka_unit_test(test_too_many_gpus_are_refused),
                cmocka_unit_test(test_the_tenant_is_a_pod_that_can_be_seen_or_the_container),
                cmocka_unit_test(test_a_state_that_is_none_is_refused),
                cmocka_unit_test(test_a_state_that_does_not_end_is_not_waited_for),
                cmocka_unit_test(test_gpus_are_found_in_the_tray),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
