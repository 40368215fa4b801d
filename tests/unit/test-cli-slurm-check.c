/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/slurm-lint.h"

/* Of a site that has read the manual. */
#define GOOD                                                                                 \
        "PrologFlags=Alloc,Contain\nBatchStartTimeout=600\nProctrackType=proctrack/cgroup\n" \
        "HealthCheckProgram=/usr/lib/gpuagent/slurm/health\n"

typedef struct Checked {
        unsigned errors, warnings;
        char *text;
} Checked;

static void checked_done(Checked *checked) {
        free(checked->text);
}

/* A folder with our two scripts in it, which %s in the texts is. */
static char folder[64];

static int make_folder(void **state) {
        static const char *const names[] = { "prolog", "epilog" };

        (void) snprintf(folder, sizeof folder, "/tmp/slurm-check-XXXXXX");
        assert_non_null(mkdtemp(folder));
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                char path[128];
                FILE *file;

                (void) snprintf(path, sizeof path, "%s/%s", folder, names[i]);
                file = fopen(path, "w");
                assert_non_null(file);
                (void) fprintf(file, "#!/bin/sh\nexec gpuagentctl slurm-%s\n", names[i]);
                assert_int_equal(fclose(file), 0);
                assert_int_equal(chmod(path, 0755), 0);
        }
        return 0;
}

static int remove_folder(void **state) {
        static const char *const names[] = { "prolog", "epilog", "90-other", "more.conf", "slurm.conf" };

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                char path[128];

                (void) snprintf(path, sizeof path, "%s/%s", folder, names[i]);
                (void) unlink(path);
        }
        assert_int_equal(rmdir(folder), 0);
        return 0;
}

static Checked check_with(const char *slurm_text, const char *gres_text, const char *config_text) {
        CLEANUP(slurm_conf_done) SlurmConf slurm = {}, gres = {};
        CLEANUP(config_free_ptr) Config *config = NULL;
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(free_ptr) char *message = NULL;
        Checked checked = {};
        SlurmLint lint = {
                .path = "slurm.conf", .slurm = &slurm, .gres = &gres, .scripts = folder, .runs_jobs = true
        };
        size_t size;

        assert_int_equal(config_parse("test", config_text, strlen(config_text), &config, &message), 0);
        assert_int_equal(slurm_conf_parse(&slurm, "slurm.conf", slurm_text, &failure), 0);
        assert_int_equal(slurm_conf_parse(&gres, "gres.conf", gres_text, &failure), 0);
        lint.config = config;
        lint.output = open_memstream(&checked.text, &size);
        assert_non_null(lint.output);
        slurm_lint(&lint);
        assert_int_equal(fclose(lint.output), 0);
        checked.errors = lint.errors;
        checked.warnings = lint.warnings;
        return checked;
}

/* The scripts are set, and so is `more`. */
static Checked check(const char *more) {
        char text[2048];

        (void) snprintf(text, sizeof text, "Prolog=%s/prolog\nEpilog=%s/epilog\n%s", folder, folder, more);
        return check_with(text, "", "");
}

static void finds(const Checked *checked, const char *text) {
        if (!strstr(checked->text, text))
                fail_msg("no \"%s\" in: %s", text, checked->text);
}

static void test_a_good_configuration_has_nothing_to_tell(void **state) {
        CLEANUP(checked_done) Checked checked = check(GOOD);

        assert_string_equal(checked.text, "");
        assert_int_equal(checked.errors + checked.warnings, 0);
}

static void test_without_its_scripts_there_is_no_gate(void **state) {
        CLEANUP(checked_done) Checked checked = check_with(GOOD "ReturnToService=2\n", "", "");

        assert_int_equal(checked.errors, 3);
        finds(&checked, "slurm.conf: error: Prolog=");
        finds(&checked, "slurm.conf: error: Epilog=");
        finds(&checked, "slurm.conf:5: error: ReturnToService=2 without a prolog");
}

static void test_a_script_that_is_not_there_fails_every_job(void **state) {
        CLEANUP(checked_done) Checked checked = check(GOOD "Prolog=/nowhere/prolog\n");
        CLEANUP(checked_done) Checked globbed = check(GOOD "Epilog=/nowhere/*.sh\n");

        assert_int_equal(checked.errors, 1);
        finds(&checked, "slurm.conf:7: error: /nowhere/prolog cannot be run");
        assert_int_equal(globbed.errors, 1);
        finds(&globbed, "error: Epilog=/nowhere/*.sh matches no file");
}

static void test_a_script_of_the_site_that_runs_ours_will_do(void **state) {
        char path[128], text[1024];
        FILE *file;

        (void) snprintf(path, sizeof path, "%s/90-other", folder);
        file = fopen(path, "w");
        assert_non_null(file);
        (void) fprintf(file, "#!/bin/sh\n/usr/bin/gpuagentctl slurm-epilog || exit 1\n");
        assert_int_equal(fclose(file), 0);
        assert_int_equal(chmod(path, 0755), 0);
        (void) snprintf(text, sizeof text, "Prolog=%s/prolog\nEpilog=%s/90-*\n" GOOD, folder, folder);
        {
                CLEANUP(checked_done) Checked checked = check_with(text, "", "");

                assert_string_equal(checked.text, "");
        }
}

static void test_flags_that_open_the_gate_or_lose_leases_are_found(void **state) {
        static const char rest[] = "BatchStartTimeout=600\nProctrackType=proctrack/cgroup\n"
                                   "HealthCheckProgram=/x\n";
        char text[512];

        (void) snprintf(text, sizeof text, "%sPrologFlags=Serial\n", rest);
        {
                CLEANUP(checked_done) Checked checked = check(text);

                assert_int_equal(checked.errors, 1);
                assert_int_equal(checked.warnings, 1);
                finds(&checked, "slurm.conf:6: error: PrologFlags has no Alloc");
        }
        (void) snprintf(text, sizeof text, "%sprologflags=alloc,contain,runinjob\n", rest);
        {
                CLEANUP(checked_done) Checked checked = check(text);

                assert_int_equal(checked.errors, 0);
                assert_int_equal(checked.warnings, 1);
                finds(&checked, "RunInJob");
        }
}

static void test_short_timeouts_are_found(void **state) {
        CLEANUP(checked_done)
        Checked checked = check(GOOD "PrologEpilogTimeout=60\nEpilogTimeout=65535\n"
                                     "PrologTimeout=300\nBatchStartTimeout=10\n");

        assert_int_equal(checked.errors, 0);
        assert_int_equal(checked.warnings, 2);
        finds(&checked, "slurm.conf:7: warning: PrologEpilogTimeout=60 is less");
        finds(&checked, "slurm.conf:10: warning: BatchStartTimeout=10 is less");
}

static void test_what_keeps_the_driver_open_is_found(void **state) {
        char text[1024];

        (void) snprintf(text, sizeof text, "Prolog=%s/prolog\nEpilog=%s/epilog\n" GOOD, folder, folder);
        {
                CLEANUP(checked_done)
                Checked checked = check_with(text, "# what is there\nAutoDetect=NVML\n", "");

                assert_int_equal(checked.errors, 0);
                finds(&checked, "gres.conf:2: warning: AutoDetect=nvml");
        }
        {
                CLEANUP(checked_done)
                Checked checked = check(GOOD "AcctGatherEnergyType=acct_gather_energy/gpu\n");

                assert_int_equal(checked.errors, 1);
        }
}

static void test_shared_gpus_want_to_be_counted(void **state) {
        CLEANUP(checked_done) Checked refused = check(GOOD "GresTypes=gpu,shard\n");
        char text[1024];

        assert_int_equal(refused.warnings, 1);
        finds(&refused, "handover.shared");
        (void) snprintf(text, sizeof text,
                        "Prolog=%s/prolog\nEpilog=%s/epilog\n" GOOD "GresTypes=gpu,shard\n", folder, folder);
        {
                CLEANUP(checked_done) Checked counted = check_with(text, "", "handover: {shared: count}\n");

                assert_string_equal(counted.text, "");
        }
}

static void test_a_site_that_only_observes_is_told(void **state) {
        char text[1024];

        (void) snprintf(text, sizeof text, "Prolog=%s/prolog\nEpilog=%s/epilog\n" GOOD, folder, folder);
        {
                CLEANUP(checked_done)
                Checked checked = check_with(text, "", "mode: observe\nhandover: {reset: false}\n");

                assert_int_equal(checked.errors, 0);
                assert_int_equal(checked.warnings, 2);
        }
}

/* Comments, quotes, lines that go on, and words without a value. */
static void test_a_text_is_read_as_slurm_reads_it(void **state) {
        CLEANUP(slurm_conf_done) SlurmConf conf = {};
        CLEANUP(failure_done) Failure failure = {};

        assert_int_equal(slurm_conf_parse(&conf, "f",
                                         "A=1 # Prolog=/no\n#B=2\n  C=\"two words\" "
                                         "D=4\\\nE=5\n\\\nF=6\nA=7\nword\nG=\nH=8\\",
                                         &failure),
                        0);
        assert_string_equal(slurm_conf_get(&conf, "a")->value, "7");
        assert_null(slurm_conf_get(&conf, "b"));
        assert_null(slurm_conf_get(&conf, "prolog"));
        assert_string_equal(slurm_conf_get(&conf, "c")->value, "two words");
        assert_int_equal(slurm_conf_get(&conf, "c")->line, 3);
        assert_string_equal(slurm_conf_get(&conf, "e")->value, "5");
        assert_string_equal(slurm_conf_get(&conf, "f")->value, "6");
        assert_int_equal(slurm_conf_get(&conf, "a")->line, 7);
        assert_string_equal(slurm_conf_get(&conf, "g")->value, "");
        assert_string_equal(slurm_conf_get(&conf, "h")->value, "8\\");
}

static void write_file(const char *name, const char *text, char *ret_path, size_t size) {
        FILE *file;

        (void) snprintf(ret_path, size, "%s/%s", folder, name);
        file = fopen(ret_path, "w");
        assert_non_null(file);
        (void) fputs(text, file);
        assert_int_equal(fclose(file), 0);
}

static void test_included_files_are_read_and_named(void **state) {
        CLEANUP(slurm_conf_done) SlurmConf conf = {}, loop = {}, missing = {};
        CLEANUP(failure_done) Failure failure = {};
        char path[128], more[128];

        write_file("more.conf", "PrologFlags=Contain\n", more, sizeof more);
        write_file("slurm.conf", "A=1\nInclude more.conf\n", path, sizeof path);
        assert_int_equal(slurm_conf_read(&conf, path, &failure), 0);
        assert_string_equal(slurm_conf_get(&conf, "PrologFlags")->file, more);

        write_file("more.conf", "include slurm.conf\n", more, sizeof more);
        assert_true(slurm_conf_read(&loop, path, &failure) < 0);
        assert_non_null(strstr(failure.message, "include each other"));
        write_file("slurm.conf", "Include nowhere.conf\n", path, sizeof path);
        assert_true(slurm_conf_read(&missing, path, &failure) < 0);
        assert_non_null(strstr(failure.message, "nowhere.conf"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_good_configuration_has_nothing_to_tell),
                cmocka_unit_test(test_without_its_scripts_there_is_no_gate),
                cmocka_unit_test(test_a_script_that_is_not_there_fails_every_job),
                cmocka_unit_test(test_a_script_of_the_site_that_runs_ours_will_do),
                cmocka_unit_test(test_flags_that_open_the_gate_or_lose_leases_are_found),
                cmocka_unit_test(test_short_timeouts_are_found),
                cmocka_unit_test(test_what_keeps_the_driver_open_is_found),
                cmocka_unit_test(test_shared_gpus_want_to_be_counted),
                cmocka_unit_test(test_a_site_that_only_observes_is_told),
                cmocka_unit_test(test_a_text_is_read_as_slurm_reads_it),
                cmocka_unit_test(test_included_files_are_read_and_named),
        };

        return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
