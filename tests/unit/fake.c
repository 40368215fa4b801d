/* SPDX-License-Identifier: MIT */
#include "tests/unit/fixture.h"

#include "agent/base/text.h"

void fake_uuid(size_t i, char ret[static GPU_UUID_SIZE]) {
        (void) snprintf(ret, GPU_UUID_SIZE, "GPU-5ef0a1b2-0000-4000-8000-%012zx", i);
}

static FakeGpu* fake_by_uuid(Fake *fake, const char *uuid) {
        size_t i = strtoul(uuid + strlen("GPU-5ef0a1b2-0000-4000-8000-"), NULL, 16);

        assert_true(i < fake->n);
        return &fake->gpus[i];
}

void fake_gpu_init(FakeGpu *gpu, size_t i) {
        GpuSample *sample = &gpu->sample;

        gpu_sample_init(sample);
        fake_uuid(i, sample->uuid);
        (void) snprintf(sample->bus_id, sizeof sample->bus_id, "%08zX:%02zX:00.0", i / 256, i % 256);
        (void) snprintf(sample->name, sizeof sample->name, "NVIDIA GB200");
        sample->index = sample->minor = (uint32_t) i;
        sample->fabric_state = FABRIC_COMPLETED;
        sample->clique_id = gpu->clique_after = 1;
        (void) snprintf(sample->cluster_uuid, sizeof sample->cluster_uuid,
                        "a1b2c3d4-0000-4000-8000-000000000001");
        sample->fabric_health = FABRIC_HEALTH_HEALTHY;
        sample->n_links = sample->n_links_active = 18;
        sample->recovery_action = gpu->action_after = RECOVERY_NONE;
        sample->n_processes = 0;
        gpu->listed = true;
        gpu->verdict = RESET_DONE;
        gpu->detail = "GPU reset";
}

void fake_hold(Fake *fake, size_t i, const char *command, pid_t pid, bool by_nvml) {
        FakeGpu *gpu = &fake->gpus[i];
        GpuHolder *holder = &gpu->holders[gpu->n_holders++];

        gpu->left_over[gpu->n_holders - 1] = gpu->monitored[gpu->n_holders - 1] = false;
        *holder = (GpuHolder){ .pid = pid, .start_time = 1, .uid = 1000, .used_bytes = UNKNOWN_U64 };
        fake_uuid(i, holder->uuid);
        (void) snprintf(holder->user, sizeof holder->user, "joe");
        (void) snprintf(holder->command, sizeof holder->command, "%s", command);
        (void) snprintf(holder->where, sizeof holder->where, "unit session-3.scope");
        gpu->sample.n_processes += by_nvml;
}

void fake_hold_leftover(Fake *fake, size_t i, const char *command, pid_t pid) {
        fake_hold(fake, i, command, pid, true);
        fake->gpus[i].left_over[fake->gpus[i].n_holders - 1] = true;
}

void fake_hold_monitor(Fake *fake, size_t i, const char *command, pid_t pid) {
        fake_hold(fake, i, command, pid, false);
        fake->gpus[i].monitored[fake->gpus[i].n_holders - 1] = true;
}

/* The holders that are marked are gone. */
static void fake_end_holders(FakeGpu *gpu, const bool *marked) {
        size_t kept = 0;

        for (size_t i = 0; i < gpu->n_holders; i++) {
                if (marked[i]) {
                        gpu->sample.n_processes -= gpu->sample.n_processes > 0 &&
                                        gpu->sample.n_processes != UNKNOWN_U32;
                        continue;
                }
                gpu->holders[kept] = gpu->holders[i];
                gpu->left_over[kept] = gpu->left_over[i];
                gpu->monitored[kept] = gpu->monitored[i];
                kept++;
        }
        gpu->n_holders = kept;
}

void fake_let_go(Fake *fake, size_t i) {
        fake->gpus[i].n_holders = 0;
        fake->gpus[i].sample.n_processes = 0;
}

int fake_start(const VendorRequest *request, void *userdata) {
        Fixture *fixture = userdata;
        Fake *fake = &fixture->fake;

        assert_false(fake->out); /* one at a time */
        assert_true(request->timeout_usec > 0);
        if (fixture->fake.on_start)
                fixture->fake.on_start(fixture, request);
        fake->started[request->operation]++;
        if (fake->start_error[request->operation] < 0)
                return fake->start_error[request->operation];

        fake->out = true;
        fake->operation = request->operation;
        fake->timeout_usec = request->timeout_usec;
        fake->uuids = strv_free(fake->uuids);
        fake->tenants = strv_free(fake->tenants);
        for (size_t i = 0; request->tenants && request->tenants[i]; i++)
                assert_int_equal(strv_append(&fake->tenants, request->tenants[i]), 0);
        for (size_t i = 0; request->uuids && request->uuids[i]; i++)
                assert_int_equal(strv_append(&fake->uuids, request->uuids[i]), 0);
        fake->asked[request->operation] = (unsigned) strv_length(fake->uuids);
        if (request->operation == VENDOR_LEFTOVERS || request->operation == VENDOR_CHECKS)
                assert_int_equal(strv_length(fake->tenants), strv_length(fake->uuids));
        if (request->operation == VENDOR_TENANTS)
                assert_true(strv_length(fake->tenants) > 0);
        else if (request->operation != VENDOR_PROBE && request->operation != VENDOR_QUIESCE &&
                        request->operation != VENDOR_RESUME)
                assert_true(fake->asked[request->operation] > 0);
        return 0;
}

/* Ahead in time by one probe. */
static void fake_gpu_settle(FakeGpu *gpu) {
        if (gpu->settle_left > 0 && --gpu->settle_left == 0) {
                gpu->sample.fabric_state = FABRIC_COMPLETED;
                gpu->sample.clique_id = gpu->clique_after;
        }
        if (gpu->action_left > 0 && --gpu->action_left == 0)
                gpu->sample.recovery_action = gpu->action_after;
}

/* As the driver service has it: when one of those asked for is not there, nothing is said of the others. */
static size_t fake_probe(Fake *fake, GpuSample *samples) {
        size_t n = 0;

        STRV_FOREACH (uuid, fake->uuids)
                if (!fake_by_uuid(fake, *uuid)->listed)
                        return 0;

        for (size_t i = 0; i < fake->n; i++) {
                FakeGpu *gpu = &fake->gpus[i];

                if (!gpu->listed || (fake->uuids && !strv_contains(fake->uuids, gpu->sample.uuid)))
                        continue;
                samples[n++] = gpu->sample;
                fake_gpu_settle(gpu);
        }
        return n;
}

static void fake_gpu_reset(FakeGpu *gpu, GpuReset *ret) {
        *ret = (GpuReset){ .verdict = gpu->verdict };
        memcpy(ret->uuid, gpu->sample.uuid, sizeof ret->uuid);
        (void) snprintf(ret->detail, sizeof ret->detail, "%s", gpu->detail);
        if (gpu->verdict == RESET_DONE && gpu->n_holders > 0)
                ret->verdict = RESET_IN_USE;
        if (ret->verdict != RESET_DONE)
                return;

        gpu->resets++;
        gpu->settle_left = gpu->settle_after;
        gpu->action_left = gpu->action_lag;
        if (gpu->action_lag == 0)
                gpu->sample.recovery_action = gpu->action_after;
        if (gpu->settle_after > 0)
                gpu->sample.fabric_state = FABRIC_IN_PROGRESS;
        else
                gpu->sample.clique_id = gpu->clique_after;
}

static size_t fake_find_holders(Fake *fake, GpuHolder *holders) {
        size_t n = 0;

        STRV_FOREACH (uuid, fake->uuids) {
                const FakeGpu *gpu = fake_by_uuid(fake, *uuid);

                for (size_t i = 0; i < gpu->n_holders; i++)
                        holders[n++] = gpu->holders[i];
        }
        return n;
}

/* Those of the GPUs whose tenant was told. */
static void fake_end_leftovers(Fake *fake) {
        for (size_t i = 0; i < strv_length(fake->uuids); i++)
                if (fake->tenants[i][0]) {
                        FakeGpu *gpu = fake_by_uuid(fake, fake->uuids[i]);

                        fake_end_holders(gpu, gpu->left_over);
                }
}

static void fake_quiesce(Fake *fake) {
        fake->quiesced = true;
        for (size_t i = 0; i < fake->n && !fake->quiesce_failure; i++)
                fake_end_holders(&fake->gpus[i], fake->gpus[i].monitored);
}

static size_t fake_check(Fake *fake, GpuReset *checks) {
        size_t n = 0;

        STRV_FOREACH (uuid, fake->uuids) {
                const FakeGpu *gpu = fake_by_uuid(fake, *uuid);

                checks[n] = (GpuReset){ .verdict = gpu->check_failure ? RESET_FAILED : RESET_DONE };
                memcpy(checks[n].uuid, gpu->sample.uuid, sizeof checks[n].uuid);
                (void) snprintf(checks[n].detail, sizeof checks[n].detail, "%s", gpu->check_failure ?: "");
                n++;
        }
        return n;
}

static size_t fake_look_for_tenants(Fake *fake, TenantSign *signs) {
        size_t n = 0;

        STRV_FOREACH (tenant, fake->tenants) {
                assert_true(n < LEASE_TENANTS_MAX);
                signs[n] = (TenantSign){ .presence = TENANT_UNKNOWN };
                (void) snprintf(signs[n].tenant, sizeof signs[n].tenant, "%s", *tenant);
                if (fake->alive && streq(*tenant, fake->alive))
                        signs[n].presence = TENANT_ALIVE;
                else if (fake->gone && streq(*tenant, fake->gone))
                        signs[n].presence = TENANT_NO_SIGN;
                n++;
        }
        return n;
}

/* What a reply borrows. */
typedef struct FakeAnswer {
        GpuSample *samples;
        GpuReset *resets;
        GpuHolder *holders;
        TenantSign tenants[LEASE_TENANTS_MAX];
} FakeAnswer;

static void fake_reply(Fake *fake, VendorReply *reply, FakeAnswer *answer) {
        switch (fake->operation) {
        case VENDOR_PROBE:
                reply->driver_version = "580.95.05";
                reply->complete = !fake->uuids;
                reply->n_samples = fake_probe(fake, answer->samples);
                break;
        case VENDOR_RESET:
                STRV_FOREACH (uuid, fake->uuids) {
                        FakeGpu *gpu = fake_by_uuid(fake, *uuid);

                        fake_gpu_reset(gpu, &answer->resets[reply->n_resets++]);
                        if (!gpu->looks)
                                continue;
                        answer->samples[reply->n_samples++] = gpu->sample;
                        fake_gpu_settle(gpu);
                }
                break;
        case VENDOR_LEFTOVERS:
                fake_end_leftovers(fake);
                reply->n_holders = fake_find_holders(fake, answer->holders);
                break;
        case VENDOR_HOLDERS: reply->n_holders = fake_find_holders(fake, answer->holders); break;
        case VENDOR_QUIESCE:
                fake_quiesce(fake);
                reply->failure = fake->quiesce_failure ?: "";
                break;
        case VENDOR_RESUME:
                fake->quiesced = fake->quiesced && fake->resume_failure;
                reply->failure = fake->resume_failure ?: "";
                break;
        case VENDOR_CHECKS: reply->n_resets = fake_check(fake, answer->resets); break;
        case VENDOR_TENANTS: reply->n_tenants = fake_look_for_tenants(fake, answer->tenants); break;
        case _VENDOR_OPERATION_MAX: break;
        }
        reply->samples = answer->samples;
        reply->resets = answer->resets;
        reply->holders = answer->holders;
        reply->tenants = answer->tenants;
}

static void fake_answer_done(FakeAnswer *answer) {
        free(answer->samples);
        free(answer->resets);
        free(answer->holders);
}

void fixture_answer(Fixture *fixture) {
        Fake *fake = &fixture->fake;
        CLEANUP(fake_answer_done)
        FakeAnswer answer = {
                .samples = calloc(fake->n + 1, sizeof *answer.samples),
                .resets = calloc(fake->n + 1, sizeof *answer.resets),
                .holders = calloc(fake->n * FAKE_HOLDERS_MAX + 1, sizeof *answer.holders),
        };
        VendorReply reply = { .operation = fake->operation,
                .driver_state = DRIVER_OK,
                .driver_error = "",
                .driver_version = "",
                .failure = "" };

        assert_true(fake->out);
        assert_true(answer.samples && answer.resets && answer.holders);
        reply.driver_state = fake->driver_state[fake->operation];
        if (reply.driver_state == DRIVER_OK)
                fake_reply(fake, &reply, &answer);
        else
                reply.driver_error = fake->driver_error;
        fake->out = false;
        manager_vendor_done(fixture->manager, &reply, fixture->now);
}
