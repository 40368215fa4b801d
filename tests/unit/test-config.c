/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/io.h"
#include "agent/base/text.h"
#include "agent/config/config.h"

/* A folder of configuration files that is removed again. */
typedef struct Folder {
        char path[64];
} Folder;

static int folder_setup(void **state) {
        static Folder folder;

        (void) strcpy(folder.path, "/tmp/test-config-XXXXXX");
        if (!mkdtemp(folder.path))
                return -errno;
        *state = &folder;
        return 0;
}

static int folder_teardown(void **state) {
        const Folder *folder = *state;
        static const char *const names[] = { "gpuagentd.yaml", "gpuagentd.yaml.d/10-first.yaml",
                "gpuagentd.yaml.d/20-second.yaml", "gpuagentd.yaml.d/30-not-ours.conf",
                "gpuagentd.yaml.d/.hidden.yaml" };
        char path[128];

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                (void) snprintf(path, sizeof path, "%s/%s", folder->path, names[i]);
                (void) unlink(path);
        }
        (void) snprintf(path, sizeof path, "%s/gpuagentd.yaml.d", folder->path);
        (void) rmdir(path);
        return rmdir(folder->path);
}

static void write_file(const Folder *folder, const char *name, const char *text) {
        char path[128];

        (void) snprintf(path, sizeof path, "%s/gpuagentd.yaml.d", folder->path);
        (void) mkdir(path, 0755);
        (void) snprintf(path, sizeof path, "%s/%s", folder->path, name);
        assert_int_equal(file_write_atomic(path, text, strlen(text), 0644), 0);
}

static Config* load(const Folder *folder) {
        const char *const folders[] = { folder->path, NULL };
        Config *config = NULL;
        char *message = NULL;

        assert_int_equal(config_load_folders(folders, &config, &message), 0);
        assert_null(message);
        return config;
}

static Config* parse(const char *text) {
        Config *config = NULL;
        char *message = NULL;
        int r;

        r = config_parse("x.yaml", text, strlen(text), &config, &message);
        if (message)
                print_error("%s\n", message);
        assert_null(message);
        assert_int_equal(r, 0);
        return config;
}

static void refuses_bytes(const char *text, size_t size, const char *expected) {
        Config *config = NULL;
        CLEANUP(free_ptr) char *message = NULL;

        assert_int_equal(config_parse("x.yaml", text, size, &config, &message), -EINVAL);
        assert_null(config);
        assert_non_null(message);
        assert_string_equal(message, expected);
}

static void refuses(const char *text, const char *expected) {
        refuses_bytes(text, strlen(text), expected);
}

static void test_an_empty_file_gives_the_defaults(void **state) {
        static const char *const texts[] = { "", "# nothing\n", "---\n", "--- \n...\n",
                "driver:\n  # all out\nslurm:\n" };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                CLEANUP(config_free_ptr) Config *config = parse(texts[i]);

                assert_string_equal(config->driver.root, "/");
                assert_string_equal(config->driver.devices, "/dev");
                assert_string_equal(config->driver.module, "nvidia");
                assert_string_equal(config->driver.library, "libnvidia-ml.so.1");
                assert_string_equal(config->driver.smi, "nvidia-smi");
                assert_int_equal(config->driver.reset_id, RESET_ID_BUS_ID);
                assert_int_equal(config->driver.poll_interval_usec, 15 * USEC_PER_SEC);
                assert_int_equal(config->driver.probe_timeout_usec, 60 * USEC_PER_SEC);
                assert_int_equal(config->driver.reset_timeout_usec, 120 * USEC_PER_SEC);
                assert_int_equal(config->driver.fabric_timeout_usec, 60 * USEC_PER_SEC);
                assert_true(config->handover.reset);
                assert_true(config->handover.boot_reset);
                assert_int_equal(config->mode, AGENT_MODE_ENFORCE);
                assert_int_equal(config->handover.acquire_timeout_usec, 300 * USEC_PER_SEC);
                assert_int_equal(config->handover.busy_grace_usec, 15 * USEC_PER_SEC);
                assert_int_equal(config->handover.leftovers, LEFTOVERS_KILL);
                assert_int_equal(config->handover.kill_grace_usec, 5 * USEC_PER_SEC);
                assert_int_equal(config->handover.mig, MIG_REFUSE);
                assert_int_equal(config->handover.shared, SHARED_REFUSE);
                assert_int_equal(config->handover.expected_nvlinks, 0);
                assert_string_equal(config->handover.checks_directory, "/etc/gpuagent/checks.d");
                assert_int_equal(config->handover.check_timeout_usec, 30 * USEC_PER_SEC);
                assert_int_equal(strv_length(config->quiesce.units), 0);
                assert_string_equal(config->quiesce.command, "");
                assert_int_equal(config->slurm.gpu_index, GPU_INDEX_AUTO);
                assert_true(config->slurm.drain);
                assert_string_equal(config->fabric.query, "");
                assert_string_equal(config->access.group, "gpuagent-admin");
                assert_int_equal(config->access.processes, PROCESS_ACCESS_ALL);
                assert_true(config->metrics.nvlink);
        }
}

static void test_every_type_of_value_is_read(void **state) {
        static const char text[] = "driver: {root: /run/nvidia/driver, module: \"\", reset-id: uuid, "
                                   "poll-interval: 200ms}\n"
                                   "handover:\n"
                                   "  reset: no\n"
                                   "  busy-grace: 0\n"
                                   "  expected-nvlinks: 18\n"
                                   "slurm:\n"
                                   "  'gpu-index': \"minor\"\n"
                                   "fabric:\n"
                                   "  query: gpuagent-emulate fabric-query\n"
                                   "access:\n"
                                   "  group: no   # a text where a text is wanted\n"
                                   "  processes: own\n";
        CLEANUP(config_free_ptr) Config *config = parse(text);

        assert_string_equal(config->driver.root, "/run/nvidia/driver");
        assert_string_equal(config->driver.module, "");
        assert_int_equal(config->driver.reset_id, RESET_ID_UUID);
        assert_int_equal(config->driver.poll_interval_usec, 200 * USEC_PER_MSEC);
        assert_false(config->handover.reset);
        assert_int_equal(config->handover.busy_grace_usec, 0);
        assert_int_equal(config->handover.expected_nvlinks, 18);
        assert_int_equal(config->slurm.gpu_index, GPU_INDEX_MINOR);
        assert_string_equal(config->fabric.query, "gpuagent-emulate fabric-query");
        assert_string_equal(config->access.group, "no");
        assert_int_equal(config->access.processes, PROCESS_ACCESS_OWN);
}

static void test_a_key_may_stand_in_no_section(void **state) {
        CLEANUP(config_free_ptr) Config *config = parse("mode: observe\nhandover: {shared: count}\n");

        assert_int_equal(config->mode, AGENT_MODE_OBSERVE);
        assert_int_equal(config->handover.shared, SHARED_COUNT);
        refuses("mode: lax\n", "x.yaml:1: mode must be enforce or observe");
        refuses("mode: {a: b}\n", "x.yaml:1: mode must be one value, not a group of keys");
        refuses("mode: observe\nmode: observe\n",
                        "x.yaml:2: mode is set in line 1 already; keep one of them");
        refuses("driver:\n  mode: observe\n",
                        "x.yaml:2: driver.mode is not a key; gpuagentd.yaml(5) has them all");
        refuses("\"\":\n  mode: observe\n", "x.yaml:1:  is not a section; gpuagentd.yaml(5) has them all");
}

static void test_a_list_of_units_is_read(void **state) {
        CLEANUP(config_free_ptr)
        Config *one = parse("quiesce: {units: [nvidia-dcgm.service, a@b.socket]}\n");
        CLEANUP(config_free_ptr) Config *other = parse("quiesce:\n  units:\n  - 'x\\x2dy.timer'\n");

        assert_int_equal(strv_length(one->quiesce.units), 2);
        assert_string_equal(one->quiesce.units[0], "nvidia-dcgm.service");
        assert_string_equal(one->quiesce.units[1], "a@b.socket");
        assert_int_equal(strv_length(other->quiesce.units), 1);
        assert_string_equal(other->quiesce.units[0], "x\\x2dy.timer");
}

static void test_a_list_of_anything_else_is_refused(void **state) {
        static const char *const names[] = { "dcgm", "a/b.service", "../x.service", ".service", "a@.service",
                "x.scope", "x.slice", "'a b.service'", "-.mount", "\"\"", "'a\tb.service'" };
        char text[8192] = "quiesce: {units: [";

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                char bad[128];

                (void) snprintf(bad, sizeof bad, "quiesce: {units: [a.service, %s]}\n", names[i]);
                refuses(bad,
                                "x.yaml:1: quiesce.units must name units as systemd does, such as "
                                "nvidia-dcgm.service: a service, socket, timer, path or target");
        }
        refuses("quiesce: {units: a.service}\n", "x.yaml:1: quiesce.units must be a list, as in [a, b]");
        refuses("quiesce: {units: [[a.service]]}\n",
                        "x.yaml:1: quiesce.units must be a list of single values");
        refuses("quiesce: {units: [*a]}\n",
                        "x.yaml:1: aliases (*name) are not allowed; write the value out");
        refuses("quiesce: {units: [slurmd.service]}\n",
                        "x.yaml:1: quiesce.units must not name slurmd.service: a handover needs it");
        refuses("quiesce: {units: [a.path, a.path]}\n",
                        "x.yaml:1: quiesce.units names a.path twice; keep one of them");

        for (int i = 0; i < 33; i++) {
                size_t n = strlen(text);

                (void) snprintf(text + n, sizeof text - n, "a%d.service%s", i, i < 32 ? ", " : "]}\n");
        }
        refuses(text, "x.yaml:1: quiesce.units names more than 32 units");
}

static void test_a_later_list_takes_the_place_of_an_earlier_one(void **state) {
        const Folder *folder = *state;
        CLEANUP(config_free_ptr) Config *config = NULL;

        write_file(folder, "gpuagentd.yaml", "quiesce: {units: [a.service, b.service]}\n");
        write_file(folder, "gpuagentd.yaml.d/10-first.yaml", "quiesce: {units: [c.service]}\n");
        config = load(folder);
        assert_int_equal(strv_length(config->quiesce.units), 1);
        assert_string_equal(config->quiesce.units[0], "c.service");
}

static void test_a_byte_order_mark_is_passed_over(void **state) {
        CLEANUP(config_free_ptr) Config *config = parse("\xef\xbb\xbfslurm: {drain: false}\n");

        assert_false(config->slurm.drain);
}

static void test_a_wrong_name_is_refused_with_its_line(void **state) {
        refuses("# one\ndriver:\n  probe-timout: 5s\n",
                        "x.yaml:3: driver.probe-timout is not a key; gpuagentd.yaml(5) has them all");
        refuses("drivers:\n", "x.yaml:1: drivers is not a section; gpuagentd.yaml(5) has them all");
        refuses("slurm:\n  root: /\n", "x.yaml:2: slurm.root is not a key; gpuagentd.yaml(5) has them all");
        refuses("driver:\n  <<: x\n", "x.yaml:2: driver.<< is not a key; gpuagentd.yaml(5) has them all");
        refuses("driver:\n  \"\\e[31m\": x\n",
                        "x.yaml:2: driver.\\x1b[31m is not a key; gpuagentd.yaml(5) has them all");
        refuses("? [a]\n: b\n", "x.yaml:1: a name is expected here, as in \"driver:\"");
}

static void test_a_value_of_the_wrong_type_is_refused(void **state) {
        refuses("handover:\n  reset: \"true\"\n",
                        "x.yaml:2: handover.reset must be true or false, without quotes");
        refuses("handover:\n  reset: maybe\n",
                        "x.yaml:2: handover.reset must be true or false, without quotes");
        refuses("handover:\n  expected-nvlinks: -1\n",
                        "x.yaml:2: handover.expected-nvlinks must be a number from 0 to 36, without quotes");
        refuses("handover:\n  expected-nvlinks: 37\n",
                        "x.yaml:2: handover.expected-nvlinks must be a number from 0 to 36, without quotes");
        refuses("driver:\n  probe-timeout: soon\n",
                        "x.yaml:2: driver.probe-timeout must be a time such as 90s, 1.5s, 200ms or 2min");
        refuses("driver:\n  probe-timeout: 2h\n",
                        "x.yaml:2: driver.probe-timeout must be a time from 0.1s to 3600s");
        refuses("driver:\n  probe-timeout: 99999999999999999999h\n",
                        "x.yaml:2: driver.probe-timeout must be a time from 0.1s to 3600s");
        refuses("driver:\n  reset-id: pci\n", "x.yaml:2: driver.reset-id must be bus-id or uuid or index");
        refuses("driver:\n  root: run\n", "x.yaml:2: driver.root must be an absolute path");
        refuses("driver:\n  module: ../nvidia\n",
                        "x.yaml:2: driver.module must be a name of letters, digits, '_' and '-'");
        refuses("driver:\n  smi: \"\"\n", "x.yaml:2: driver.smi must not be empty");
        refuses("driver:\n  smi: \"a\\nb\"\n", "x.yaml:2: driver.smi must be one line of text");
        refuses("driver:\n  smi: \"a\\0b\"\n", "x.yaml:2: driver.smi must be one line of text");
        refuses("driver:\n  smi:\n",
                        "x.yaml:2: driver.smi has no value; leave the line out for the default "
                        "(nvidia-smi)");
        refuses("driver:\n  smi: [a, b]\n", "x.yaml:2: driver.smi must be one value, not a list");
        refuses("driver:\n  smi: {a: b}\n", "x.yaml:2: driver.smi must be one value, not a group of keys");
        refuses("driver:\n  smi: [[[[[[a]]]]]]\n", "x.yaml:2: driver.smi must be one value, not a list");
        refuses("driver: nvidia\n", "x.yaml:1: driver is a section: its keys follow, indented");
        refuses("- driver\n", "x.yaml:1: sections are expected here, as in \"driver:\"");
        refuses("driver\n", "x.yaml:1: sections are expected here, as in \"driver:\"");
}

static void test_a_duplicate_is_refused(void **state) {
        refuses("driver:\n  smi: a\n  smi: b\n",
                        "x.yaml:3: driver.smi is set in line 2 already; keep one of them");
        refuses("driver:\n  smi: a\nslurm:\ndriver:\n",
                        "x.yaml:4: driver starts in line 1 already; put its keys there");
        refuses("slurm:\n  drain: true\n  'drain': true\n",
                        "x.yaml:3: slurm.drain is set in line 2 already; keep one of them");
}

static void test_references_and_tags_are_refused(void **state) {
        refuses("driver:\n  smi: &a b\n", "x.yaml:2: anchors (&name) are not allowed; write the value out");
        refuses("driver:\n  smi: *a\n", "x.yaml:2: aliases (*name) are not allowed; write the value out");
        refuses("driver: &a\n  smi: b\n", "x.yaml:1: anchors (&name) are not allowed; write the value out");
        refuses("driver:\n  smi: !!str b\n",
                        "x.yaml:2: tags (!name) are not allowed; the key decides the type");
        refuses("&a driver:\n", "x.yaml:1: anchors (&name) are not allowed; write the value out");
        refuses("--- !x\ndriver:\n", "x.yaml:1: tags (!name) are not allowed; the key decides the type");
}

static void test_a_second_document_is_refused(void **state) {
        refuses("driver:\n---\nslurm:\n", "x.yaml:2: a second document starts here; keep one a file");
}

static void test_what_is_not_yaml_or_not_text_is_refused(void **state) {
        static const char utf16[] = "\xff\xfe"
                                    "d\0r\0\n";

        refuses("driver:\n  smi: 'a\n",
                        "x.yaml:3: this is not valid YAML: found unexpected end of stream; check the "
                        "indentation, the colons and the quotes");
        refuses("driver:\n\tsmi: a\n",
                        "x.yaml:2: this is not valid YAML: found character that cannot start any token; "
                        "check the indentation, the colons and the quotes");
        refuses("driver:\n  # \xff\n",
                        "x.yaml:2: this is not UTF-8 text without control characters; save the file as "
                        "such");
        refuses_bytes("driver:\n\0", 9,
                        "x.yaml:2: this is not UTF-8 text without control characters; save the file as "
                        "such");
        refuses_bytes(utf16, sizeof utf16 - 1,
                        "x.yaml:1: this is not UTF-8 text without control characters; save the file as "
                        "such");
}

static void test_a_later_file_wins_key_by_key(void **state) {
        const Folder *folder = *state;
        CLEANUP(config_free_ptr) Config *config = NULL;

        write_file(folder, "gpuagentd.yaml", "driver: {smi: main, library: main}\nslurm: {drain: false}\n");
        write_file(folder, "gpuagentd.yaml.d/20-second.yaml", "driver: {smi: second}\n");
        write_file(folder, "gpuagentd.yaml.d/10-first.yaml", "driver: {smi: first, library: first}\n");
        write_file(folder, "gpuagentd.yaml.d/30-not-ours.conf", "driver: {smi: conf}\n");
        write_file(folder, "gpuagentd.yaml.d/.hidden.yaml", "driver: {smi: hidden}\n");

        config = load(folder);
        assert_string_equal(config->driver.smi, "second");
        assert_string_equal(config->driver.library, "first");
        assert_false(config->slurm.drain);
        assert_string_equal(config->driver.root, "/");
}

static void test_files_that_are_not_there_are_passed_over(void **state) {
        const char *const folders[] = { "/nonexistent", NULL };
        CLEANUP(config_free_ptr) Config *config = NULL;
        char *message;

        assert_int_equal(config_load_folders(folders, &config, &message), 0);
        assert_string_equal(config->driver.smi, "nvidia-smi");
}

static void test_a_named_file_must_exist(void **state) {
        CLEANUP(free_ptr) char *message = NULL;
        Config *config = NULL;

        assert_int_equal(config_load("/nonexistent/x.yaml", &config, &message), -ENOENT);
        assert_null(config);
        assert_string_equal(message, "/nonexistent/x.yaml: No such file or directory");
}

static void test_a_file_that_others_may_write_is_refused(void **state) {
        const Folder *folder = *state;
        CLEANUP(free_ptr) char *message = NULL;
        char path[128], expected[256];
        Config *config = NULL;

        write_file(folder, "gpuagentd.yaml", "slurm: {drain: false}\n");
        (void) snprintf(path, sizeof path, "%s/gpuagentd.yaml", folder->path);
        assert_int_equal(chmod(path, 0664), 0);

        assert_int_equal(config_load(path, &config, &message), -EPERM);
        assert_null(config);
        (void) snprintf(expected, sizeof expected,
                        "%s: may be written by others than its owner: chmod go-w it", path);
        assert_string_equal(message, expected);
}

static void test_a_file_of_another_user_is_refused(void **state) {
        const Folder *folder = *state;
        CLEANUP(free_ptr) char *message = NULL;
        char path[128];
        Config *config = NULL;

        if (geteuid() != 0)
                return; /* only root can give a file away */
        write_file(folder, "gpuagentd.yaml", "");
        (void) snprintf(path, sizeof path, "%s/gpuagentd.yaml", folder->path);
        assert_int_equal(chown(path, 65534, 0), 0);

        assert_int_equal(config_load(path, &config, &message), -EPERM);
        assert_null(config);
        assert_non_null(strstr(message, "must belong to root"));
}

static void test_a_fifo_and_a_huge_file_are_refused(void **state) {
        const Folder *folder = *state;
        char path[128];
        CLEANUP(free_ptr) char *fifo_message = NULL, *huge_message = NULL;
        Config *config = NULL;

        (void) snprintf(path, sizeof path, "%s/gpuagentd.yaml", folder->path);
        assert_int_equal(mkfifo(path, 0600), 0);
        assert_int_equal(config_load(path, &config, &fifo_message), -EINVAL);
        assert_non_null(strstr(fifo_message, "is not a regular file"));

        assert_int_equal(unlink(path), 0);
        write_file(folder, "gpuagentd.yaml", "");
        assert_int_equal(truncate(path, (1 << 20) + 1), 0);
        assert_int_equal(config_load(path, &config, &huge_message), -EFBIG);
        assert_non_null(strstr(huge_message, "is larger than 1 MiB"));
        assert_null(config);
}

static void test_the_stamp_tells_that_a_file_changed(void **state) {
        const Folder *folder = *state;
        char path[128];
        uint64_t missing, first, second;

        (void) snprintf(path, sizeof path, "%s/gpuagentd.yaml", folder->path);
        missing = config_stamp(path);
        write_file(folder, "gpuagentd.yaml", "slurm: {drain: true}\n");
        first = config_stamp(path);
        write_file(folder, "gpuagentd.yaml", "slurm: {drain: null}\n");
        second = config_stamp(path);

        assert_true(missing != first);
        assert_true(first != second);
        assert_true(second == config_stamp(path));
        assert_true(config_stamp(NULL) == config_stamp(NULL));
}

static void test_every_key_takes_its_own_default(void **state) {
        const ConfigKeyInfo *info;
        size_t n = 0;

        for (; (info = config_key_info(n)); n++) {
                CLEANUP(config_free_ptr) Config *config = NULL;
                char text[256];

                (void) snprintf(text, sizeof text, "%s%s%s: %s%s\n", info->section,
                                *info->section ? ": {" : "", info->name, info->fallback,
                                *info->section ? "}" : "");
                config = parse(text);
        }
        assert_true(n > 15);
}

static void test_the_manual_has_every_key_with_its_default(void **state) {
        CLEANUP(free_ptr) char *manual = NULL;
        const ConfigKeyInfo *info;

        assert_int_equal(file_read(AT_FDCWD, MANUAL, 1 << 20, &manual, NULL), 0);
        for (size_t i = 0; (info = config_key_info(i)); i++) {
                char key[128], fallback[128];
                const char *entry, *end;

                (void) snprintf(key, sizeof key, "\n*%s%s%s* = ", info->section, *info->section ? "." : "",
                                info->name);
                (void) snprintf(fallback, sizeof fallback, "(default: *%s*)\n", info->fallback);
                entry = strstr(manual, key);
                if (!entry)
                        fail_msg("%s.%s is not in the manual", info->section, info->name);
                end = strstr(entry, fallback);
                if (!end || memchr(entry + 1, '\n', (size_t) (end - entry - 1)))
                        fail_msg("the manual has another default for %s.%s", info->section, info->name);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_empty_file_gives_the_defaults),
                cmocka_unit_test(test_every_type_of_value_is_read),
                cmocka_unit_test(test_a_key_may_stand_in_no_section),
                cmocka_unit_test(test_a_list_of_units_is_read),
                cmocka_unit_test(test_a_list_of_anything_else_is_refused),
                cmocka_unit_test_setup_teardown(test_a_later_list_takes_the_place_of_an_earlier_one,
                                folder_setup, folder_teardown),
                cmocka_unit_test(test_a_byte_order_mark_is_passed_over),
                cmocka_unit_test(test_a_wrong_name_is_refused_with_its_line),
                cmocka_unit_test(test_a_value_of_the_wrong_type_is_refused),
                cmocka_unit_test(test_a_duplicate_is_refused),
                cmocka_unit_test(test_references_and_tags_are_refused),
                cmocka_unit_test(test_a_second_document_is_refused),
                cmocka_unit_test(test_what_is_not_yaml_or_not_text_is_refused),
                cmocka_unit_test_setup_teardown(
                                test_a_later_file_wins_key_by_key, folder_setup, folder_teardown),
                cmocka_unit_test(test_files_that_are_not_there_are_passed_over),
                cmocka_unit_test(test_a_named_file_must_exist),
                cmocka_unit_test_setup_teardown(
                                test_a_file_that_others_may_write_is_refused, folder_setup, folder_teardown),
                cmocka_unit_test_setup_teardown(
                                test_a_file_of_another_user_is_refused, folder_setup, folder_teardown),
                cmocka_unit_test_setup_teardown(
                                test_a_fifo_and_a_huge_file_are_refused, folder_setup, folder_teardown),
                cmocka_unit_test_setup_teardown(
                                test_the_stamp_tells_that_a_file_changed, folder_setup, folder_teardown),
                cmocka_unit_test(test_every_key_takes_its_own_default),
                cmocka_unit_test(test_the_manual_has_every_key_with_its_default),
        };

        return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
