/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/driver/protocol.h"

#define UUID_0 "GPU-81477906-d580-de42-e868-ff62e9ef4317"
#define UUID_1 "GPU-8147ef90-7f0c-fc1e-c070-d80c4a3d939f"

/* A message needs a connection that was started; nothing is sent over it. */
typedef struct Fixture {
        sd_bus *bus;
        sd_bus_message *msg;
        int other_end;
} Fixture;

static int fixture_setup(void **state) {
        static Fixture f;
        int fds[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
                return -errno;
        f = (Fixture){ .other_end = fds[1] };
        if (sd_bus_new(&f.bus) < 0 || sd_bus_set_fd(f.bus, fds[0], fds[0]) < 0 || sd_bus_start(f.bus) < 0)
                return -EIO;
        if (sd_bus_message_new_signal(f.bus, &f.msg, "/x", "x.y", "Z") < 0)
                return -EIO;
        *state = &f;
        return 0;
}

static int fixture_teardown(void **state) {
        Fixture *f = *state;

        sd_bus_message_unref(f->msg);
        sd_bus_close_unref(f->bus);
        (void) close(f->other_end);
        return 0;
}

static sd_bus_message* sealed(Fixture *f) {
        assert_return_code(sd_bus_message_seal(f->msg, 1, 0), 0);
        assert_return_code(sd_bus_message_rewind(f->msg, true), 0);
        return f->msg;
}

static void sample_fill(GpuSample *sample) {
        gpu_sample_init(sample);
        strcpy(sample->uuid, UUID_0);
        strcpy(sample->bus_id, "00000000:18:00.0");
        strcpy(sample->name, "NVIDIA GB200");
        strcpy(sample->error, "GPU is lost");
        sample->index = 1;
        sample->minor = 3;
        sample->lost = true;
        sample->clique_id = 32766;
        strcpy(sample->cluster_uuid, "7f3c2a10-5b4e-4d6a-9c1e-2b8f0e6d4a91");
        sample->fabric_state = FABRIC_COMPLETED;
        sample->recovery_action = RECOVERY_NODE_REBOOT;
        sample->mig = true;
        sample->checks = true;
        sample->temperature = -3;
        sample->memory_total = UINT64_C(186) << 30;
        sample->n_links = 2;
        sample->n_links_active = 1;
        sample->links[0] = (GpuLink){ .link = 0, .active = true, .remote = "00000008:06:00.0" };
        sample->links[1] = (GpuLink){ .link = 1 };
}

static void test_a_probe_comes_back_as_it_was_written(void **state) {
        Fixture *f = *state;
        CLEANUP(free_ptr) GpuSample *read = NULL;
        char version[DRIVER_VERSION_SIZE];
        GpuSample samples[2];
        size_t n = 0;

        sample_fill(&samples[0]);
        gpu_sample_init(&samples[1]);
        strcpy(samples[1].uuid, UUID_1);
        assert_return_code(protocol_append_probe(f->msg, "580.95.05", samples, 2), 0);
        assert_int_equal(protocol_read_probe(sealed(f), version, &read, &n), 0);

        assert_string_equal(sd_bus_message_get_signature(f->msg, true), "saa{sv}");
        assert_string_equal(version, "580.95.05");
        assert_int_equal(n, 2);
        assert_memory_equal(read, samples, sizeof samples);
}

static void test_no_gpus_are_a_valid_answer(void **state) {
        Fixture *f = *state;
        char version[DRIVER_VERSION_SIZE];
        GpuSample *read = (GpuSample *) f;
        size_t n = 1;

        assert_return_code(protocol_append_probe(f->msg, "", NULL, 0), 0);
        assert_int_equal(protocol_read_probe(sealed(f), version, &read, &n), 0);
        assert_int_equal(n, 0);
        assert_null(read);
}

static void test_holders_come_back_as_they_were_written(void **state) {
        Fixture *f = *state;
        CLEANUP(free_ptr) GpuHolder *read = NULL;
        GpuHolder holders[40] = {};
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTSOF(holders); i++)
                holders[i] = (GpuHolder){ .uuid = UUID_0,
                        .pid = 1860 + (pid_t) i,
                        .start_time = 99,
                        .uid = 1000,
                        .user = "joe",
                        .command = "\\xff",
                        .where = "job 27",
                        .used_bytes = 20 };
        assert_return_code(protocol_append_holders(f->msg, holders, ELEMENTSOF(holders)), 0);
        assert_int_equal(protocol_read_holders(sealed(f), &read, &n), 0);
        assert_string_equal(sd_bus_message_get_signature(f->msg, true), "a(sutussst)");
        assert_int_equal(n, ELEMENTSOF(holders));
        assert_memory_equal(read, holders, sizeof holders);
}

static void test_resets_come_back_as_they_were_written(void **state) {
        Fixture *f = *state;
        CLEANUP(free_ptr) GpuReset *read = NULL;
        GpuReset resets[2] = {
                { .uuid = UUID_0, .verdict = RESET_DONE, .detail = "All done." },
                { .uuid = UUID_1, .verdict = RESET_IN_USE },
        };
        size_t n = 0;

        assert_return_code(protocol_append_resets(f->msg, resets, 2), 0);
        assert_int_equal(protocol_read_resets(sealed(f), &read, &n), 0);
        assert_int_equal(n, 2);
        assert_memory_equal(read, resets, sizeof resets);
}

static void test_a_look_comes_back_behind_its_reset(void **state) {
        Fixture *f = *state;
        CLEANUP(free_ptr) GpuSample *read = NULL;
        CLEANUP(free_ptr) GpuReset *resets = NULL;
        GpuReset reset = { .uuid = UUID_0, .verdict = RESET_DONE };
        GpuSample sample;
        size_t n = 0;

        sample_fill(&sample);
        assert_return_code(protocol_append_resets(f->msg, &reset, 1), 0);
        assert_return_code(protocol_append_samples(f->msg, &sample, 1), 0);
        assert_int_equal(protocol_read_resets(sealed(f), &resets, &n), 0);
        assert_int_equal(protocol_read_samples(f->msg, &read, &n), 0);
        assert_string_equal(sd_bus_message_get_signature(f->msg, true), "a(sus)aa{sv}");
        assert_int_equal(n, 1);
        assert_memory_equal(read, &sample, sizeof sample);
}

static void test_a_reset_without_its_looks_is_refused(void **state) {
        Fixture *f = *state;
        CLEANUP(free_ptr) GpuReset *resets = NULL;
        GpuReset reset = { .uuid = UUID_0, .verdict = RESET_DONE };
        GpuSample *read = NULL;
        size_t n = 0;

        assert_return_code(protocol_append_resets(f->msg, &reset, 1), 0);
        assert_int_equal(protocol_read_resets(sealed(f), &resets, &n), 0);
        assert_int_equal(protocol_read_samples(f->msg, &read, &n), -EBADMSG);
        assert_null(read);
}

static void test_too_many_looks_are_refused(void **state) {
        Fixture *f = *state;
        GpuSample *read = NULL;
        size_t n;

        assert_return_code(sd_bus_message_open_container(f->msg, 'a', "a{sv}"), 0);
        for (uint32_t i = 0; i <= PROTOCOL_GPUS_MAX; i++)
                assert_return_code(sd_bus_message_append(f->msg, "a{sv}", 1, "uuid", "s", UUID_0), 0);
        assert_return_code(sd_bus_message_close_container(f->msg), 0);
        assert_int_equal(protocol_read_samples(sealed(f), &read, &n), -EBADMSG);
        assert_null(read);
}

static void test_tenants_come_back_as_they_were_written(void **state) {
        Fixture *f = *state;
        CLEANUP(free_ptr) TenantSign *read = NULL;
        TenantSign signs[2] = {
                { .tenant = "slurm/26.0", .presence = TENANT_ALIVE },
                { .tenant = "pod/4d5b1d2e-8f0a-4b7c-9a51-0b1f2f6f3c11", .presence = TENANT_NO_SIGN },
        };
        size_t n = 0;

        assert_return_code(protocol_append_tenants(f->msg, signs, 2), 0);
        assert_int_equal(protocol_read_tenants(sealed(f), &read, &n), 0);
        assert_string_equal(sd_bus_message_get_signature(f->msg, true), "a(su)");
        assert_int_equal(n, 2);
        assert_memory_equal(read, signs, sizeof signs);
}

static int read_tenant(Fixture *f, const char *tenant, uint32_t presence) {
        CLEANUP(free_ptr) TenantSign *read = NULL;
        size_t n;

        assert_return_code(sd_bus_message_append(f->msg, "a(su)", 1, tenant, presence), 0);
        return protocol_read_tenants(sealed(f), &read, &n);
}

static void test_a_presence_out_of_range_is_refused(void **state) {
        assert_int_equal(read_tenant(*state, "slurm/1.0", _TENANT_PRESENCE_MAX), -EBADMSG);
}

static void test_a_wrong_tenant_is_refused(void **state) {
        assert_int_equal(read_tenant(*state, "../../etc", TENANT_ALIVE), -EBADMSG);
}

static void test_a_tenant_without_a_name_is_refused(void **state) {
        assert_int_equal(read_tenant(*state, "", TENANT_ALIVE), -EBADMSG);
}

static void test_pairs_come_back_as_they_were_written(void **state) {
        Fixture *f = *state;
        CLEANUP(free_ptr) GpuTenant *read = NULL;
        char *uuids[] = { (char *) UUID_1, (char *) UUID_0, NULL };
        char *tenants[] = { (char *) "slurm/26.0", (char *) "", NULL };
        uint64_t timeout_usec = 0;
        size_t n = 0;

        assert_return_code(protocol_append_request_pairs(f->msg, uuids, tenants, 7), 0);
        assert_int_equal(protocol_read_pairs(sealed(f), &read, &n), 0);
        assert_int_equal(sd_bus_message_read_basic(f->msg, 't', &timeout_usec), 1);
        assert_string_equal(sd_bus_message_get_signature(f->msg, true), "a(ss)t");
        assert_int_equal(timeout_usec, 7);
        assert_int_equal(n, 2);
        assert_string_equal(read[0].uuid, UUID_1);
        assert_string_equal(read[0].tenant, "slurm/26.0");
        assert_string_equal(read[1].uuid, UUID_0);
        assert_string_equal(read[1].tenant, "");
}

static void test_uuids_without_their_tenants_are_no_pairs(void **state) {
        Fixture *f = *state;
        char *uuids[] = { (char *) UUID_0, NULL };

        assert_int_equal(protocol_append_request_pairs(f->msg, uuids, NULL, 7), -EINVAL);
}

static int read_pairs(Fixture *f, const char *uuid_1, const char *tenant_1, const char *uuid_2) {
        CLEANUP(free_ptr) GpuTenant *read = NULL;
        size_t n;

        assert_return_code(sd_bus_message_append(f->msg, "a(ss)", 2, uuid_1, tenant_1, uuid_2, ""), 0);
        return protocol_read_pairs(sealed(f), &read, &n);
}

static void test_a_pair_that_is_there_twice_is_refused(void **state) {
        assert_int_equal(read_pairs(*state, UUID_0, "slurm/26.0", UUID_0), -EBADMSG);
}

static void test_a_pair_with_a_wrong_uuid_is_refused(void **state) {
        assert_int_equal(read_pairs(*state, UUID_0, "", "GPU-1"), -EBADMSG);
}

static void test_a_pair_with_a_wrong_tenant_is_refused(void **state) {
        assert_int_equal(read_pairs(*state, UUID_0, "slurm/26.0; reboot", UUID_1), -EBADMSG);
}

static void test_a_failure_comes_back_as_it_was_written(void **state) {
        Fixture *f = *state;
        char failure[FAILURE_SIZE];

        assert_return_code(protocol_append_failure(f->msg, "a.service does not stop"), 0);
        assert_int_equal(protocol_read_failure(sealed(f), failure), 0);
        assert_string_equal(failure, "a.service does not stop");
}

static void test_a_failure_of_several_lines_is_refused(void **state) {
        Fixture *f = *state;
        char failure[FAILURE_SIZE];

        assert_return_code(protocol_append_failure(f->msg, "a\nb"), 0);
        assert_int_equal(protocol_read_failure(sealed(f), failure), -EBADMSG);
}

static void test_a_failure_that_does_not_fit_is_refused(void **state) {
        Fixture *f = *state;
        char failure[FAILURE_SIZE], longer[FAILURE_SIZE + 1];

        memset(longer, 'x', sizeof longer);
        longer[sizeof longer - 1] = '\0';
        assert_return_code(protocol_append_failure(f->msg, longer), 0);
        assert_int_equal(protocol_read_failure(sealed(f), failure), -EBADMSG);
}

static void test_a_request_is_a_list_and_a_time(void **state) {
        Fixture *f = *state;
        char *uuids[] = { (char *) UUID_0, NULL };

        assert_return_code(protocol_append_request(f->msg, uuids, 5), 0);
        (void) sealed(f);
        assert_string_equal(sd_bus_message_get_signature(f->msg, true), "ast");
}

/* Appends one GPU of the dictionary entries in `types` and `...` and reads it. What the reader says. */
static int read_one(Fixture *f, GpuSample *ret, const char *entries, ...) {
        CLEANUP(free_ptr) GpuSample *read = NULL;
        char version[DRIVER_VERSION_SIZE];
        va_list arguments;
        size_t n;
        int r;

        va_start(arguments, entries);
        assert_return_code(sd_bus_message_append(f->msg, "s", "1"), 0);
        assert_return_code(sd_bus_message_open_container(f->msg, 'a', "a{sv}"), 0);
        assert_return_code(sd_bus_message_appendv(f->msg, entries, arguments), 0);
        assert_return_code(sd_bus_message_close_container(f->msg), 0);
        va_end(arguments);

        r = protocol_read_probe(sealed(f), version, &read, &n);
        if (r >= 0) {
                assert_int_equal(n, 1);
                *ret = read[0];
        }
        return r;
}

static void test_unknown_keys_are_passed_over(void **state) {
        GpuSample sample;

        assert_int_equal(read_one(*state, &sample, "a{sv}", 3, "uuid", "s", UUID_0, "colour", "a(ss)", 1,
                                         "x", "y", "minor", "u", 7U),
                        0);
        assert_int_equal(sample.minor, 7);
        assert_int_equal(sample.index, UNKNOWN_U32);
}

static void test_a_wrong_type_is_refused(void **state) {
        GpuSample sample;

        assert_int_equal(read_one(*state, &sample, "a{sv}", 2, "uuid", "s", UUID_0, "minor", "s", "7"),
                        -EBADMSG);
}

static void test_a_gpu_without_uuid_is_refused(void **state) {
        GpuSample sample;

        assert_int_equal(read_one(*state, &sample, "a{sv}", 1, "minor", "u", 7U), -EBADMSG);
}

static void test_a_wrong_uuid_is_refused(void **state) {
        GpuSample sample;

        assert_int_equal(read_one(*state, &sample, "a{sv}", 1, "uuid", "s", "GPU-../../etc"), -EBADMSG);
}

static void test_a_wrong_bus_id_is_refused(void **state) {
        GpuSample sample;

        assert_int_equal(read_one(*state, &sample, "a{sv}", 2, "uuid", "s", UUID_0, "bus_id", "s", "18"),
                        -EBADMSG);
}

static void test_a_key_given_twice_is_refused(void **state) {
        GpuSample sample;

        assert_int_equal(read_one(*state, &sample, "a{sv}", 2, "uuid", "s", UUID_0, "uuid", "s", UUID_1),
                        -EBADMSG);
}

static void test_a_string_that_does_not_fit_is_refused(void **state) {
        char longer[200];
        GpuSample sample;

        memset(longer, 'x', sizeof longer);
        longer[sizeof longer - 1] = '\0';
        assert_int_equal(read_one(*state, &sample, "a{sv}", 2, "uuid", "s", UUID_0, "name", "s", longer),
                        -EBADMSG);
}

static void test_control_characters_are_refused(void **state) {
        GpuSample sample;

        assert_int_equal(read_one(*state, &sample, "a{sv}", 2, "uuid", "s", UUID_0, "name", "s", "\033[2J"),
                        -EBADMSG);
}

static void test_too_many_links_are_refused(void **state) {
        Fixture *f = *state;
        CLEANUP(free_ptr) GpuSample *read = NULL;
        char version[DRIVER_VERSION_SIZE];
        size_t n;

        assert_return_code(sd_bus_message_append(f->msg, "s", "1"), 0);
        assert_return_code(sd_bus_message_open_container(f->msg, 'a', "a{sv}"), 0);
        assert_return_code(sd_bus_message_open_container(f->msg, 'a', "{sv}"), 0);
        assert_return_code(sd_bus_message_open_container(f->msg, 'e', "sv"), 0);
        assert_return_code(sd_bus_message_append(f->msg, "s", "links"), 0);
        assert_return_code(sd_bus_message_open_container(f->msg, 'v', "a(ubs)"), 0);
        assert_return_code(sd_bus_message_open_container(f->msg, 'a', "(ubs)"), 0);
        for (uint32_t i = 0; i < GPU_LINKS_MAX + 30; i++)
                assert_return_code(sd_bus_message_append(f->msg, "(ubs)", i, 1, ""), 0);
        for (int i = 0; i < 5; i++)
                assert_return_code(sd_bus_message_close_container(f->msg), 0);

        assert_int_equal(protocol_read_probe(sealed(f), version, &read, &n), -EBADMSG);
}

static void test_too_many_gpus_are_refused(void **state) {
        Fixture *f = *state;
        GpuReset *read = NULL;
        size_t n;

        assert_return_code(sd_bus_message_open_container(f->msg, 'a', "(sus)"), 0);
        for (uint32_t i = 0; i <= PROTOCOL_GPUS_MAX; i++)
                assert_return_code(sd_bus_message_append(f->msg, "(sus)", UUID_0, 0, ""), 0);
        assert_return_code(sd_bus_message_close_container(f->msg), 0);
        assert_int_equal(protocol_read_resets(sealed(f), &read, &n), -EBADMSG);
        assert_null(read);
}

static void test_a_verdict_out_of_range_is_refused(void **state) {
        Fixture *f = *state;
        GpuReset *read = NULL;
        size_t n;

        assert_return_code(sd_bus_message_append(
                                           f->msg, "a(sus)", 1, UUID_0, (uint32_t) _RESET_VERDICT_MAX, ""),
                        0);
        assert_int_equal(protocol_read_resets(sealed(f), &read, &n), -EBADMSG);
        assert_null(read);
}

static void test_another_signature_is_refused(void **state) {
        Fixture *f = *state;
        GpuHolder *read = NULL;
        size_t n;

        assert_return_code(sd_bus_message_append(f->msg, "a(sus)", 1, UUID_0, 0, ""), 0);
        assert_int_equal(protocol_read_holders(sealed(f), &read, &n), -EBADMSG);
        assert_null(read);
}

static void test_plain_structs_are_made_readable(void **state) {
        GpuSample sample;
        unsigned char odd = 0x55;

        sample_fill(&sample);
        memset(sample.name, 'x', sizeof sample.name);
        strcpy(sample.serial, "1\n2");
        memcpy(&sample.mig, &odd, sizeof odd);
        memcpy(&sample.links[1].active, &odd, sizeof odd);
        memset(sample.links[1].remote, 0xff, sizeof sample.links[1].remote);
        sample.n_links_active = 99;

        assert_int_equal(protocol_clean_samples(&sample, 1), 0);
        assert_int_equal(strlen(sample.name), sizeof sample.name - 1);
        assert_string_equal(sample.serial, "1?2");
        assert_true(sample.mig);
        assert_int_equal(strlen(sample.links[1].remote), sizeof sample.links[1].remote - 1);
        assert_int_equal(sample.links[1].remote[0], '?');
        assert_int_equal(sample.n_links_active, 2);
}

static void test_plain_structs_out_of_range_are_refused(void **state) {
        GpuReset reset = { .uuid = UUID_0, .verdict = 17 };
        GpuHolder holder = { .uuid = "GPU-1" };
        GpuSample sample;

        sample_fill(&sample);
        sample.n_links = GPU_LINKS_MAX + 1;
        assert_int_equal(protocol_clean_samples(&sample, 1), -EBADMSG);
        assert_int_equal(protocol_clean_resets(&reset, 1), -EBADMSG);
        assert_int_equal(protocol_clean_holders(&holder, 1), -EBADMSG);
}

#define WITH_MESSAGE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                WITH_MESSAGE(test_a_probe_comes_back_as_it_was_written),
                WITH_MESSAGE(test_no_gpus_are_a_valid_answer),
                WITH_MESSAGE(test_holders_come_back_as_they_were_written),
                WITH_MESSAGE(test_resets_come_back_as_they_were_written),
                WITH_MESSAGE(test_a_look_comes_back_behind_its_reset),
                WITH_MESSAGE(test_a_reset_without_its_looks_is_refused),
                WITH_MESSAGE(test_too_many_looks_are_refused),
                WITH_MESSAGE(test_tenants_come_back_as_they_were_written),
                WITH_MESSAGE(test_a_presence_out_of_range_is_refused),
                WITH_MESSAGE(test_a_wrong_tenant_is_refused),
                WITH_MESSAGE(test_a_tenant_without_a_name_is_refused),
                WITH_MESSAGE(test_pairs_come_back_as_they_were_written),
                WITH_MESSAGE(test_uuids_without_their_tenants_are_no_pairs),
                WITH_MESSAGE(test_a_pair_that_is_there_twice_is_refused),
                WITH_MESSAGE(test_a_pair_with_a_wrong_uuid_is_refused),
                WITH_MESSAGE(test_a_pair_with_a_wrong_tenant_is_refused),
                WITH_MESSAGE(test_a_failure_comes_back_as_it_was_written),
                WITH_MESSAGE(test_a_failure_of_several_lines_is_refused),
                WITH_MESSAGE(test_a_failure_that_does_not_fit_is_refused),
                WITH_MESSAGE(test_a_request_is_a_list_and_a_time),
                WITH_MESSAGE(test_unknown_keys_are_passed_over),
                WITH_MESSAGE(test_a_wrong_type_is_refused),
                WITH_MESSAGE(test_a_gpu_without_uuid_is_refused),
                WITH_MESSAGE(test_a_wrong_uuid_is_refused),
                WITH_MESSAGE(test_a_wrong_bus_id_is_refused),
                WITH_MESSAGE(test_a_key_given_twice_is_refused),
                WITH_MESSAGE(test_a_string_that_does_not_fit_is_refused),
                WITH_MESSAGE(test_control_characters_are_refused),
                WITH_MESSAGE(test_too_many_links_are_refused),
                WITH_MESSAGE(test_too_many_gpus_are_refused),
                WITH_MESSAGE(test_a_verdict_out_of_range_is_refused),
                WITH_MESSAGE(test_another_signature_is_refused),
                cmocka_unit_test(test_plain_structs_are_made_readable),
                cmocka_unit_test(test_plain_structs_out_of_range_are_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
