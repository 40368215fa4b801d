/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "agent/driver/owner.h"

#define POD             "a1b2c3d4-0000-1111-2222-333344445555"
#define POD_UNDERSCORES "a1b2c3d4_0000_1111_2222_333344445555"
#define STATIC_POD      "387dbf3058d1b66efe3b8f261a3083c0"

static void test_a_cgroup_tells_whose_process_it_is(void **state) {
        static const struct {
                const char *cgroup;
                const char *owner;
        } cases[] = {
                { "0::/system.slice/slurmstepd.scope/job_27/step_0/user/task_0\n", "job 27" },
                { "0::/system.slice/n1_slurmstepd.scope/job_27/step_batch/slurm\n", "job 27" },
                { "4:memory:/slurm_n1/uid_1000/job_5/step_0/task_0\n1:name=systemd:/system.slice/"
                  "slurmd.service\n",
                                "job 5" },
                { "1:name=systemd:/system.slice/slurmd.service\n4:memory:/slurm/uid_1000/job_5/step_0\n",
                                "job 5" },
                { "0::/system.slice/slurmstepd.scope/s0123456789abc/step_0/user\n", "job s0123456789abc" },
                { "0::/kubepods/burstable/pod" POD "/0123abc\n", "pod " POD },
                { "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_UNDERSCORES
                  ".slice/"
                  "cri-containerd-0123.scope\n",
                                "pod " POD },
                { "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" POD_UNDERSCORES
                  ".slice/crio-1.scope\n",
                                "pod " POD },
                { "0::/kubepods.slice/kubepods-pod" STATIC_POD ".slice/crio-1.scope\n", "pod " STATIC_POD },
                { "0::/kubepods/podfdbf3058d1b66efe3b8f261a3083c0/0\n", "" },
                { "0::/user.slice/user-1000.slice/session-3.scope\n", "unit session-3.scope" },
                { "0::/system.slice/nvidia-persistenced.service\n", "unit nvidia-persistenced.service" },
                { "0::/system.slice/system-getty.slice/getty@tty1.service\n", "unit getty@tty1.service" },
                { "0::/user.slice/user-1000.slice/user@1000.service/app.slice/jupyter.service\n",
                                "user unit jupyter.service" },
                { "0::/user.slice/user-1000.slice/user@1000.service/init.scope\n", "user unit init.scope" },
                { "0::/user.slice/user-1000.slice/user@1000.service\n", "unit user@1000.service" },
                { "3:cpu:/\n1:name=systemd:/system.slice/x.service\n0::/\n", "unit x.service" },
                { "0::/machine.slice/tray.scope/system.slice/slurmstepd.scope/job_1/step_0\n", "job 1" },
                { "0::/\n", "" },
                { "", "" },
                { "nonsense", "" },
                { ":::::\n", "" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                char owner[96];

                owner_from_cgroup(cases[i].cgroup, owner, sizeof owner);
                assert_string_equal(owner, cases[i].owner);
        }
}

static void test_a_users_own_cgroup_cannot_pass_for_a_job_or_pod(void **state) {
        char owner[96];

        owner_from_cgroup("0::/user.slice/user-1000.slice/user@1000.service/slurmstepd.scope/job_1/step_0\n",
                        owner, sizeof owner);
        assert_string_equal(owner, "user unit slurmstepd.scope");
        owner_from_cgroup("0::/user.slice/user-1000.slice/user@1000.service/kubepods/pod" POD "\n", owner,
                        sizeof owner);
        assert_string_equal(owner, "unit user@1000.service");
}

static void test_a_folder_called_job_outside_of_slurm_is_none(void **state) {
        char owner[96];

        owner_from_cgroup("0::/system.slice/build.service/job_7/step_0\n", owner, sizeof owner);
        assert_string_equal(owner, "unit build.service");
        owner_from_cgroup("0::/system.slice/slurmstepd.scope/job_x/step_0\n", owner, sizeof owner);
        assert_string_equal(owner, "unit slurmstepd.scope");
}

static void test_a_hostile_unit_name_is_escaped_and_cut(void **state) {
        char cgroup[600] = "0::/", owner[96];

        memset(cgroup + 4, '\xff', 400);
        (void) strcpy(cgroup + 404, ".scope\n");
        owner_from_cgroup(cgroup, owner, sizeof owner);
        assert_int_equal(strlen(owner), sizeof owner - 1);
        assert_memory_equal(owner, "unit \\xff\\xff", 13);
}

static void test_a_job_is_claimed_with_its_own_uid(void **state) {
        static const char claim[] = "PATH=/bin\0SLURM_JOB_ID=27\0XSLURM_JOB_UID=1\0SLURM_JOB_UID=1000";
        static const char torn[] = "SLURM_JOB_UID=1000\0SLURM_JOB_ID=27";
        char owner[96];

        owner_from_environment(claim, sizeof claim, 1000, owner, sizeof owner);
        assert_string_equal(owner, "job 27");
        owner_from_environment(claim, sizeof claim, 0, owner, sizeof owner);
        assert_string_equal(owner, "");
        owner_from_environment(torn, sizeof torn - 2, 1000, owner, sizeof owner);
        assert_string_equal(owner, "");
        owner_from_environment("", 0, 1000, owner, sizeof owner);
        assert_string_equal(owner, "");
}

static void test_a_tenants_name_tells_what_to_look_for(void **state) {
        static const char *const others[] = { "k8s/x", "slurm/27", "slurm/27.", "slurm/.0", "slurm/x.0",
                "slurm/27.x", "slurm/027.0", "slurm/99999999999999999999.0", "pod/1", "pod/" POD "0",
                "pod/" POD_UNDERSCORES, "pod/" STATIC_POD "0", "pod/../../etc", "", "slurm/" };
        OwnerTenant tenant;

        assert_int_equal(owner_tenant_parse("slurm/27.3", &tenant), 0);
        assert_string_equal(tenant.where, "job 27");
        assert_true(tenant.is_job);
        assert_int_equal(tenant.restarts, 3);
        assert_int_equal(owner_tenant_parse("pod/" POD, &tenant), 0);
        assert_string_equal(tenant.where, "pod " POD);
        assert_false(tenant.is_job);
        assert_int_equal(owner_tenant_parse("pod/" STATIC_POD, &tenant), 0);
        assert_string_equal(tenant.where, "pod " STATIC_POD);
        assert_int_equal(owner_tenant_parse("container/c1", &tenant), 0);
        assert_string_equal(tenant.where, "container c1");
        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                assert_int_equal(owner_tenant_parse(others[i], &tenant), -EOPNOTSUPP);
}

/* Whether a process with that cgroup, environment and uid is proven to be of slurm/27.1. */
static bool is_of_job_27(const char *cgroup, const char *environment, size_t n, uid_t uid) {
        OwnerTenant tenant;

        assert_int_equal(owner_tenant_parse("slurm/27.1", &tenant), 0);
        return owner_proves(&tenant, cgroup, environment, n, uid);
}

#define ENVIRONMENT(text) text, sizeof text
#define JOB_CGROUP(id)    "0::/system.slice/slurmstepd.scope/job_" id "/step_0/user/task_0\n"

static void test_a_jobs_cgroup_proves_whose_process_it_is(void **state) {
        assert_true(is_of_job_27(JOB_CGROUP("27"), "", 0, 1000));
        assert_true(is_of_job_27(JOB_CGROUP("27"), "", 0, 0));
        assert_true(is_of_job_27("4:memory:/slurm_n1/uid_0/job_27/step_0\n", "", 0, 0));
}

static void test_an_environment_with_its_own_uid_proves_it_outside_of_cgroups(void **state) {
        assert_true(is_of_job_27("0::/\n", ENVIRONMENT("SLURM_JOB_ID=27\0SLURM_JOB_UID=1000"), 1000));
        assert_true(is_of_job_27("0::/user.slice/user-1000.slice/session-3.scope\n",
                        ENVIRONMENT("A=b\0SLURM_JOB_UID=1000\0SLURM_JOB_ID=27"), 1000));
}

static void test_nothing_else_proves_it(void **state) {
        static const char user_scope[] =
                        "0::/user.slice/user-1000.slice/user@1000.service/slurmstepd.scope/job_27\n";

        assert_false(is_of_job_27("0::/\n", "", 0, 1000));
        assert_false(is_of_job_27("", ENVIRONMENT("SLURM_JOB_ID=27"), 1000));
        assert_false(is_of_job_27("", ENVIRONMENT("SLURM_JOB_ID=27\0SLURM_JOB_UID=1001"), 1000));
        assert_false(is_of_job_27("", ENVIRONMENT("SLURM_JOB_ID=28\0SLURM_JOB_UID=1000"), 1000));
        assert_false(is_of_job_27("", ENVIRONMENT("SLURM_JOB_ID=270\0SLURM_JOB_UID=1000"), 1000));
        assert_false(is_of_job_27(user_scope, "", 0, 1000));
        assert_false(is_of_job_27("0::/system.slice/job_27\n", "", 0, 1000));
}

static void test_roots_process_is_never_proven_by_its_environment(void **state) {
        assert_false(is_of_job_27("0::/\n", ENVIRONMENT("SLURM_JOB_ID=27\0SLURM_JOB_UID=0"), 0));
}

static void test_the_cgroup_of_somebody_else_is_proof_against_it(void **state) {
        static const char environment[] = "SLURM_JOB_ID=27\0SLURM_JOB_UID=1000";

        assert_false(is_of_job_27(JOB_CGROUP("28"), environment, sizeof environment, 1000));
        assert_false(is_of_job_27("0::/system.slice/slurmstepd.scope/s0123456789abc/step_0/user\n",
                        environment, sizeof environment, 1000));
        assert_false(is_of_job_27("0::/kubepods/pod" POD "/0\n", environment, sizeof environment, 1000));
}

static void test_a_later_run_of_the_job_is_not_the_tenant(void **state) {
        assert_false(is_of_job_27(JOB_CGROUP("27"), ENVIRONMENT("SLURM_RESTART_COUNT=2"), 1000));
        assert_false(is_of_job_27(JOB_CGROUP("27"), ENVIRONMENT("SLURM_RESTART_COUNT=x"), 1000));
        assert_true(is_of_job_27(JOB_CGROUP("27"), ENVIRONMENT("SLURM_RESTART_COUNT=1"), 1000));
}

static void test_a_pods_process_is_proven_by_its_cgroup_alone(void **state) {
        OwnerTenant tenant;

        assert_int_equal(owner_tenant_parse("pod/" POD, &tenant), 0);
        assert_true(owner_proves(&tenant, "0::/kubepods/burstable/pod" POD "/0123abc\n", "", 0, 0));
        assert_false(owner_proves(&tenant,
                        "0::/kubepods/burstable/podb1b2c3d4-0000-1111-2222-333344445555/0\n", "", 0, 1000));
        assert_false(owner_proves(&tenant, JOB_CGROUP("27"), "", 0, 1000));
        assert_false(owner_proves(&tenant, "0::/\n", "", 0, 1000));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_tenants_name_tells_what_to_look_for),
                cmocka_unit_test(test_a_jobs_cgroup_proves_whose_process_it_is),
                cmocka_unit_test(test_an_environment_with_its_own_uid_proves_it_outside_of_cgroups),
                cmocka_unit_test(test_nothing_else_proves_it),
                cmocka_unit_test(test_roots_process_is_never_proven_by_its_environment),
                cmocka_unit_test(test_the_cgroup_of_somebody_else_is_proof_against_it),
                cmocka_unit_test(test_a_later_run_of_the_job_is_not_the_tenant),
                cmocka_unit_test(test_a_pods_process_is_proven_by_its_cgroup_alone),
                cmocka_unit_test(test_a_cgroup_tells_whose_process_it_is),
                cmocka_unit_test(test_a_users_own_cgroup_cannot_pass_for_a_job_or_pod),
                cmocka_unit_test(test_a_folder_called_job_outside_of_slurm_is_none),
                cmocka_unit_test(test_a_hostile_unit_name_is_escaped_and_cut),
                cmocka_unit_test(test_a_job_is_claimed_with_its_own_uid),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
