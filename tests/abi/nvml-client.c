/* SPDX-License-Identifier: MIT */
/* A client of NVML: nvml-client init | stay | field GPU ID [SCOPE] | processes GPU ROOM | power GPU |
 * handles | event GPU MILLISECONDS. It prints what NVML returned, and the answer. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/base/text.h"
#include "agent/emulation/nvml-exports.h"

/* Before a call a value of this kind is what no call would answer. */
#define UNTOUCHED 424242

#define MEMBER(name, arguments) NvmlReturn(*name) arguments;

static struct {
        NVML_REQUIRED_FUNCTIONS(MEMBER)
        NVML_OPTIONAL_FUNCTIONS(MEMBER)
        NVML_CLIENT_FUNCTIONS(MEMBER)
} nvml;

#define LOAD(name, arguments) nvml.name = (NvmlReturn(*) arguments) dlsym(library, #name);

static int load(void) {
        void *library = dlopen(NVML_LIBRARY_NAME, RTLD_NOW | RTLD_LOCAL);

        if (!library) {
                (void) fprintf(stderr, "%s\n", dlerror());
                return 1;
        }
        NVML_REQUIRED_FUNCTIONS(LOAD)
        NVML_OPTIONAL_FUNCTIONS(LOAD)
        NVML_CLIENT_FUNCTIONS(LOAD)
        return 0;
}

static unsigned number(const char *s) {
        return (unsigned) strtoul(s ?: "0", NULL, 10);
}

static NvmlDevice handle(const char *s) {
        NvmlDevice device = NULL;

        (void) nvml.nvmlDeviceGetHandleByIndex_v2(number(s), &device);
        return device;
}

static void print_field(const char *gpu, const char *id, const char *scope) {
        NvmlFieldValue field = { .field_id = number(id), .scope_id = number(scope), .value.ui = UNTOUCHED };
        NvmlReturn r = nvml.nvmlDeviceGetFieldValues(handle(gpu), 1, &field);

        (void) printf("%d %d %" PRIu64 "\n", r, field.result,
                        field.value_type == NVML_VALUE_ULONG_LONG ? field.value.ull : field.value.ui);
}

/* The number first, then the list with some room more than that. */
static void print_processes(const char *gpu, const char *room) {
        NvmlProcessInfo infos[64];
        NvmlDevice device = handle(gpu);
        unsigned n = 0;
        NvmlReturn r;

        r = nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, &n, NULL);
        (void) printf("%d %u", r, n);
        n += number(room);
        r = nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, &n, infos);
        (void) printf(" %d %u\n", r, n);
}

static void print_power(const char *gpu) {
        unsigned milliwatts = UNTOUCHED;
        NvmlReturn r = nvml.nvmlDeviceGetPowerUsage(handle(gpu), &milliwatts);

        (void) printf("%d %u\n", r, milliwatts);
}

static void print_handles(void) {
        unsigned n = 0;

        (void) nvml.nvmlDeviceGetCount_v2(&n);
        for (unsigned i = 0; i < n; i++) {
                NvmlDevice device;

                (void) printf("%s%d", i > 0 ? " " : "", nvml.nvmlDeviceGetHandleByIndex_v2(i, &device));
        }
        (void) printf("\n");
}

static void wait_for_event(const char *gpu, const char *timeout) {
        NvmlEventData data = { .type = UNTOUCHED };
        NvmlEventSet set;
        NvmlReturn r;

        (void) nvml.nvmlEventSetCreate(&set);
        (void) nvml.nvmlDeviceRegisterEvents(handle(gpu), NVML_EVENT_XID | NVML_EVENT_RECOVERY_ACTION, set);
        (void) printf("ready\n");
        (void) fflush(stdout);
        r = nvml.nvmlEventSetWait_v2(set, &data, number(timeout));
        (void) printf("%d %" PRIu64 " %" PRIu64 "\n", r, data.type, data.data);
        (void) nvml.nvmlEventSetFree(set);
}

int main(int argc, char **argv) {
        const char *verb = argc > 1 ? argv[1] : "";
        NvmlReturn r;

        if (load() != 0)
                return 1;
        r = nvml.nvmlInit_v2();
        if (streq(verb, "init") || streq(verb, "stay") || r != NVML_OK)
                (void) printf("%d\n", r);
        (void) fflush(stdout);
        if (r != NVML_OK)
                return 1;

        if (streq(verb, "stay"))
                (void) pause();
        if (streq(verb, "field") && argc > 3)
                print_field(argv[2], argv[3], argv[4]);
        if (streq(verb, "processes") && argc > 3)
                print_processes(argv[2], argv[3]);
        if (streq(verb, "power") && argc > 2)
                print_power(argv[2]);
        if (streq(verb, "handles"))
                print_handles();
        if (streq(verb, "event") && argc > 3)
                wait_for_event(argv[2], argv[3]);
        return nvml.nvmlShutdown() != NVML_OK;
}
