/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/io.h"
#include "agent/base/text.h"
#include "agent/config/client-config.h"

static ClientConfig* parse(const char *text) {
        ClientConfig *config = NULL;
        char *message = NULL;
        int r;

        r = client_config_parse("x.yaml", text, strlen(text), &config, &message);
        if (message)
                print_error("%s\n", message);
        assert_null(message);
        assert_int_equal(r, 0);
        return config;
}

static void refuses(const char *text, const char *expected) {
        ClientConfig *config = NULL;
        CLEANUP(free_ptr) char *message = NULL;

        assert_int_equal(client_config_parse("x.yaml", text, strlen(text), &config, &message), -EINVAL);
        assert_null(config);
        assert_non_null(message);
        assert_string_equal(message, expected);
}

static void test_an_empty_file_gives_the_defaults(void **state) {
        static const char *const texts[] = { "", "client:\n", "client:\n  topology:\n  bmc:\n" };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                CLEANUP(client_config_free_ptr) ClientConfig *config = parse(texts[i]);

                assert_int_equal(strv_length(config->trays), 0);
                assert_string_equal(config->fabric_assign, "");
                assert_int_equal(config->topology.format, TOPOLOGY_BLOCK_SIZES);
                assert_int_equal(config->topology.block_sizes.n, 0);
                assert_int_equal(config->n_bmcs, 0);
        }
}

static void test_every_key_is_read(void **state) {
        CLEANUP(client_config_free_ptr)
        ClientConfig *config = parse("client:\n"
                                     "  trays: [sched-worker1, admin@sched-worker2]\n"
                                     "  fabric-assign: /bin/assign --now\n"
                                     "  topology: {format: yaml, block-sizes: [4, 8]}\n"
                                     "  bmc:\n"
                                     "    sched-worker1:\n"
                                     "      url: https://10.0.0.1\n"
                                     "      user: reader\n"
                                     "      password-file: /etc/secret\n"
                                     "    tray2.example: {url: 'http://[fd00::2]:8080'}\n"
                                     "    TRAY:\n");
        const ClientBmc *bmc;

        assert_int_equal(strv_length(config->trays), 2);
        assert_string_equal(host_name(config->trays[0]), "sched-worker1");
        assert_string_equal(host_name(config->trays[1]), "sched-worker2");
        assert_string_equal(config->fabric_assign, "/bin/assign --now");
        assert_int_equal(config->topology.format, TOPOLOGY_YAML);
        assert_int_equal(config->topology.block_sizes.n, 2);
        assert_int_equal(config->topology.block_sizes.values[1], 8);

        bmc = client_config_bmc(config, "sched-worker1");
        assert_non_null(bmc);
        assert_string_equal(bmc->url, "https://10.0.0.1");
        assert_string_equal(bmc->user, "reader");
        assert_string_equal(bmc->password_file, "/etc/secret");
        bmc = client_config_bmc(config, "tray2.example");
        assert_non_null(bmc);
        assert_string_equal(bmc->user, "");
        bmc = client_config_bmc(config, "TRAY");
        assert_non_null(bmc);
        assert_string_equal(bmc->url, "");
        assert_null(client_config_bmc(config, "tray2"));
}

static void test_what_is_wrong_is_refused_with_its_line(void **state) {
        refuses("trays: [a]\n", "x.yaml:1: trays is not a section; gpuagentctl.yaml(5) has them all");
        refuses("client.topology: {}\n",
                        "x.yaml:1: client.topology is not a section; gpuagentctl.yaml(5) has them all");
        refuses("client:\n  hosts: [a]\n",
                        "x.yaml:2: client.hosts is not a key; gpuagentctl.yaml(5) has them all");
        refuses("client: {topology: {form: yaml}}\n",
                        "x.yaml:1: client.topology.form is not a key; gpuagentctl.yaml(5) has them all");
        refuses("client: {topology: {format: json}}\n",
                        "x.yaml:1: client.topology.format must be block-sizes or block-levels or yaml or "
                        "features");
        refuses("client: {topology: yaml}\n",
                        "x.yaml:1: client.topology is a section: its keys follow, indented");
        refuses("client: {topology: {block-sizes: [4, x]}}\n",
                        "x.yaml:1: client.topology.block-sizes must have numbers from 1 to 65535, without "
                        "quotes");
        refuses("client: {trays: a}\n", "x.yaml:1: client.trays must be a list, as in [a, b]");
        refuses("client:\n  trays:\n  - a\n  - a\n",
                        "x.yaml:4: client.trays names a twice; keep one of them");
        refuses("client:\n  trays: &x [a]\n",
                        "x.yaml:2: anchors (&name) are not allowed; write the value out");
        refuses("client:\n  trays: *x\n", "x.yaml:2: aliases (*name) are not allowed; write the value out");
        refuses("client:\n  topology: {}\n  topology: {}\n",
                        "x.yaml:3: client.topology starts in line 2 already; put its keys there");
        refuses("- client\n", "x.yaml:1: sections are expected here, as in \"client:\"");
}

static void test_a_bmc_is_as_strict(void **state) {
        refuses("client:\n  bmc:\n    a: {url: ftp://x}\n",
                        "x.yaml:3: client.bmc.a.url must start with https:// or http://");
        refuses("client:\n  bmc:\n    a: {password: x}\n",
                        "x.yaml:3: client.bmc.a.password is not a key; gpuagentctl.yaml(5) has them all");
        refuses("client:\n  bmc:\n    a: {password-file: x}\n",
                        "x.yaml:3: client.bmc.a.password-file must be an absolute path");
        refuses("client:\n  bmc:\n    a: {user: x}\n    a: {user: y}\n",
                        "x.yaml:4: client.bmc.a is there twice; keep one of them");
        refuses("client:\n  bmc:\n    a:\n      user: x\n      user: y\n",
                        "x.yaml:5: client.bmc.a.user is set in line 4 already; keep one of them");
        refuses("client:\n  bmc: {}\n  bmc: {}\n",
                        "x.yaml:3: client.bmc starts in line 2 already; put its keys there");
        refuses("client: {bmc: {../x: {user: y}}}\n", "x.yaml:1: client.bmc.../x is no name of a tray");
        refuses("client: {bmc: {a: {b: {c: {d: e}}}}}\n",
                        "x.yaml:1: client.bmc.a.b is not a key; gpuagentctl.yaml(5) has them all");
        refuses("client: {bmc: [a]}\n", "x.yaml:1: client.bmc is a section: its keys follow, indented");
        refuses("client: {bmc: {a: b}}\n", "x.yaml:1: client.bmc.a is a section: its keys follow, indented");
        refuses("client: {bmc: {a: *b}}\n",
                        "x.yaml:1: aliases (*name) are not allowed; write the value out");
}

static void test_what_ssh_would_take_for_an_option_is_no_tray(void **state) {
        static const char *const names[] = { "-oProxyCommand=x", "a b", "''", "a@b@c", "'@a'", "a@", "a@-b",
                "-a@b", "a/b", ".a", "'a:22'", "\"a\\x01\"" };

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                char text[128];

                (void) snprintf(text, sizeof text, "client: {trays: [%s]}\n", names[i]);
                refuses(text,
                                "x.yaml:1: client.trays must name trays as ssh does, such as tray1 or "
                                "admin@tray1");
        }
}

static void test_a_named_file_is_read_alone_and_must_exist(void **state) {
        char path[] = "/tmp/test-client-config-XXXXXX";
        static const char text[] = "client: {bmc: {a: {url: http://a}}}\n";
        CLEANUP(client_config_free_ptr) ClientConfig *config = NULL;
        CLEANUP(free_ptr) char *message = NULL, *missing = NULL;
        ClientConfig *none = NULL;
        int fd;

        fd = mkstemp(path);
        assert_true(fd >= 0);
        (void) close(fd);
        assert_int_equal(file_write_atomic(path, text, strlen(text), 0644), 0);
        assert_int_equal(client_config_load(path, &config, &message), 0);
        assert_string_equal(client_config_bmc(config, "a")->url, "http://a");

        assert_int_equal(unlink(path), 0);
        assert_int_equal(client_config_load(path, &none, &missing), -ENOENT);
        assert_null(none);
        assert_non_null(strstr(missing, "No such file"));
}

static void test_the_manual_has_every_key_with_its_default(void **state) {
        CLEANUP(free_ptr) char *manual = NULL;
        const ConfigKeyInfo *info;
        size_t n = 0;

        assert_int_equal(file_read(AT_FDCWD, MANUAL, 1 << 20, &manual, NULL), 0);
        for (; (info = client_config_key_info(n)); n++) {
                char key[128], fallback[128];
                const char *entry, *end;

                (void) snprintf(key, sizeof key, "\n*%s.%s* = ", info->section, info->name);
                (void) snprintf(fallback, sizeof fallback, "(default: *%s*)\n", info->fallback);
                entry = strstr(manual, key);
                if (!entry)
                        fail_msg("%s.%s is not in the manual", info->section, info->name);
                end = strstr(entry, fallback);
                if (!end || memchr(entry + 1, '\n', (size_t) (end - entry - 1)))
                        fail_msg("the manual has another default for %s.%s", info->section, info->name);
        }
        assert_true(n >= 7);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_empty_file_gives_the_defaults),
                cmocka_unit_test(test_every_key_is_read),
                cmocka_unit_test(test_what_is_wrong_is_refused_with_its_line),
                cmocka_unit_test(test_a_bmc_is_as_strict),
                cmocka_unit_test(test_what_ssh_would_take_for_an_option_is_no_tray),
                cmocka_unit_test(test_a_named_file_is_read_alone_and_must_exist),
                cmocka_unit_test(test_the_manual_has_every_key_with_its_default),
        };

        return cmocka_run_group_tests_name("client-config", tests, NULL, NULL);
}
