/* SPDX-License-Identifier: MIT */
/* The emulated libnvidia-ml.so.1 called the wrong way: before init, with nothing for arguments, with handles
 * that are no longer valid. Usage: test-exports LIBRARY, where an emulated tray is booted. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "agent/base/cleanup.h"
#include "agent/base/text.h"
#include "agent/emulation/nvml-exports.h"

#define SYMBOL(name, arguments) #name,

static const char *const symbols[] = { NVML_REQUIRED_FUNCTIONS(SYMBOL) NVML_OPTIONAL_FUNCTIONS(SYMBOL)
                        NVML_CLIENT_FUNCTIONS(SYMBOL) };

static void *library;

/* Every call takes integers and pointers only, at most six of them. */
typedef NvmlReturn (*AnyFunction)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

static void* look_up(const char *name) {
        void *function = dlsym(library, name);

        if (!function)
                fail_msg("%s is not exported", name);
        return function;
}

static NvmlReturn call(const char *name, uintptr_t a, uintptr_t b, uintptr_t c) {
        return ((AnyFunction) look_up(name))(a, b, c, 0, 0, 0);
}

/* The result of the call in a child; below 0: the signal that killed it. */
static int call_in_child(const char *name, bool initialized, uintptr_t first) {
        int status;
        pid_t pid;

        pid = fork();
        if (pid == 0) {
                if (initialized && call("nvmlInit_v2", 0, 0, 0) != NVML_OK)
                        _exit(250);
                _exit((call(name, first, 0, 0) & 0xff));
        }
        assert_true(pid > 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static bool is_init(const char *name) {
        return startswith(name, "nvmlInit") != NULL;
}

/* Our standard input has the library's exported names, as nm prints them. */
static void test_nothing_else_is_exported(void **state) {
        CLEANUP(free_ptr) char *line = NULL;
        size_t room = 0, n = 0;

        while (getline(&line, &room, stdin) > 0) {
                const char *name = strrchr(text_strip(line), ' ');
                bool known = false;

                if (!name)
                        continue;
                for (size_t i = 0; i < ELEMENTSOF(symbols) && !known; i++)
                        known = streq(symbols[i], name + 1);
                if (!known && !streq(name + 1, "nvmlErrorString"))
                        fail_msg("%s is exported and in no list", name + 1);
                n++;
        }
        assert_int_equal(n, ELEMENTSOF(symbols) + 1);
}

static void test_before_init_every_call_says_so(void **state) {
        for (size_t i = 0; i < ELEMENTSOF(symbols); i++)
                if (!is_init(symbols[i]) && call_in_child(symbols[i], false, 0) != NVML_UNINITIALIZED)
                        fail_msg("%s does not say that nothing is initialized", symbols[i]);
}

static void test_nothing_for_arguments_is_never_a_success(void **state) {
        for (size_t i = 0; i < ELEMENTSOF(symbols); i++) {
                int result = call_in_child(symbols[i], true, 0);

                if (is_init(symbols[i]) || streq(symbols[i], "nvmlShutdown"))
                        assert_int_equal(result, NVML_OK);
                else if (streq(symbols[i], "nvmlDeviceGetHandleByIndex") ||
                                streq(symbols[i], "nvmlDeviceGetHandleByIndex_v2") ||
                                result != NVML_INVALID_ARGUMENT)
                        if (result <= 0)
                                fail_msg("%s with zeros: %d", symbols[i], result);
        }
}

/* A valid GPU and no place for the answer. */
static void test_no_place_for_the_answer_is_never_a_success(void **state) {
        NvmlDevice device;

        assert_int_equal(call("nvmlInit_v2", 0, 0, 0), NVML_OK);
        assert_int_equal(call("nvmlDeviceGetHandleByIndex_v2", 0, (uintptr_t) &device, 0), NVML_OK);
        for (size_t i = 0; i < ELEMENTSOF(symbols); i++) {
                int result;

                if (!startswith(symbols[i], "nvmlDevice"))
                        continue;
                if (startswith(symbols[i], "nvmlDeviceGetHandle") ||
                                startswith(symbols[i], "nvmlDeviceGetCount"))
                        continue;
                if (streq(symbols[i], "nvmlDeviceSetPersistenceMode")) /* 0 is a mode */
                        continue;
                result = call_in_child(symbols[i], false, (uintptr_t) device);
                if (result <= 0)
                        fail_msg("%s without a place for the answer: %d", symbols[i], result);
        }
        assert_int_equal(call("nvmlShutdown", 0, 0, 0), NVML_OK);
}

static void test_init_counts(void **state) {
        unsigned n;

        assert_int_equal(call("nvmlInit_v2", 0, 0, 0), NVML_OK);
        assert_int_equal(call("nvmlInitWithFlags", NVML_INIT_NO_ATTACH, 0, 0), NVML_OK);
        assert_int_equal(call("nvmlShutdown", 0, 0, 0), NVML_OK);
        assert_int_equal(call("nvmlDeviceGetCount_v2", (uintptr_t) &n, 0, 0), NVML_OK);
        assert_int_equal(call("nvmlShutdown", 0, 0, 0), NVML_OK);
        assert_int_equal(call("nvmlShutdown", 0, 0, 0), NVML_UNINITIALIZED);
        assert_int_equal(call("nvmlDeviceGetCount_v2", (uintptr_t) &n, 0, 0), NVML_UNINITIALIZED);
}

static void test_a_handle_of_an_earlier_session_is_refused(void **state) {
        NvmlDevice old, device;
        unsigned index;

        assert_int_equal(call("nvmlInit_v2", 0, 0, 0), NVML_OK);
        assert_int_equal(call("nvmlDeviceGetHandleByIndex_v2", 1, (uintptr_t) &old, 0), NVML_OK);
        assert_int_equal(call("nvmlShutdown", 0, 0, 0), NVML_OK);
        assert_int_equal(call("nvmlInit_v2", 0, 0, 0), NVML_OK);
        assert_int_equal(call("nvmlDeviceGetIndex", (uintptr_t) old, (uintptr_t) &index, 0),
                        NVML_INVALID_ARGUMENT);
        assert_int_equal(call("nvmlDeviceGetHandleByIndex_v2", 1, (uintptr_t) &device, 0), NVML_OK);
        assert_int_equal(call("nvmlDeviceGetIndex", (uintptr_t) device, (uintptr_t) &index, 0), NVML_OK);
        assert_int_equal(index, 1);
        assert_int_equal(call("nvmlShutdown", 0, 0, 0), NVML_OK);
}

static void test_a_struct_of_another_version_is_refused(void **state) {
        NvmlFabricInfoV3 info = { .version = 0x04000028 };
        NvmlMemoryV2 memory = { .version = 0x01000028 };
        NvmlDevice device;

        assert_int_equal(call("nvmlInit_v2", 0, 0, 0), NVML_OK);
        assert_int_equal(call("nvmlDeviceGetHandleByIndex_v2", 0, (uintptr_t) &device, 0), NVML_OK);
        assert_int_equal(call("nvmlDeviceGetGpuFabricInfoV", (uintptr_t) device, (uintptr_t) &info, 0),
                        NVML_ARGUMENT_VERSION_MISMATCH);
        assert_int_equal(call("nvmlDeviceGetMemoryInfo_v2", (uintptr_t) device, (uintptr_t) &memory, 0),
                        NVML_ARGUMENT_VERSION_MISMATCH);
        assert_int_equal(memory.total, 0);
        assert_int_equal(call("nvmlShutdown", 0, 0, 0), NVML_OK);
}

static void* query_often(void *userdata) {
        uintptr_t failures = 0;

        for (int i = 0; i < 2000; i++) {
                NvmlDevice device;
                NvmlMemory memory;
                char uuid[NVML_UUID_SIZE];

                failures += call("nvmlInit_v2", 0, 0, 0) != NVML_OK;
                failures += call("nvmlDeviceGetHandleByIndex_v2", 0, (uintptr_t) &device, 0) != NVML_OK;
                failures += call("nvmlDeviceGetUUID", (uintptr_t) device, (uintptr_t) uuid, sizeof uuid) !=
                                NVML_OK;
                failures += call("nvmlDeviceGetMemoryInfo", (uintptr_t) device, (uintptr_t) &memory, 0) !=
                                NVML_OK;
                failures += call("nvmlShutdown", 0, 0, 0) != NVML_OK;
        }
        return (void *) failures;
}

static void test_threads_and_forks_do_not_disturb_each_other(void **state) {
        pthread_t threads[4];
        void *failures;

        assert_int_equal(call("nvmlInit_v2", 0, 0, 0), NVML_OK);
        for (size_t i = 0; i < ELEMENTSOF(threads); i++)
                assert_int_equal(pthread_create(&threads[i], NULL, query_often, NULL), 0);
        for (int i = 0; i < 50; i++) {
                unsigned n;
                int status;
                pid_t pid = fork();

                if (pid == 0)
                        _exit(call("nvmlDeviceGetCount_v2", (uintptr_t) &n, 0, 0) == NVML_OK ? 0 : 1);
                assert_int_equal(waitpid(pid, &status, 0), pid);
                assert_int_equal(status, 0);
        }
        for (size_t i = 0; i < ELEMENTSOF(threads); i++) {
                assert_int_equal(pthread_join(threads[i], &failures), 0);
                assert_null(failures);
        }
        assert_int_equal(call("nvmlShutdown", 0, 0, 0), NVML_OK);
}

int main(int argc, char **argv) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nothing_else_is_exported),
                cmocka_unit_test(test_before_init_every_call_says_so),
                cmocka_unit_test(test_nothing_for_arguments_is_never_a_success),
                cmocka_unit_test(test_no_place_for_the_answer_is_never_a_success),
                cmocka_unit_test(test_init_counts),
                cmocka_unit_test(test_a_handle_of_an_earlier_session_is_refused),
                cmocka_unit_test(test_a_struct_of_another_version_is_refused),
                cmocka_unit_test(test_threads_and_forks_do_not_disturb_each_other),
        };

        if (argc != 2)
                return 2;
        library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!library) {
                (void) fprintf(stderr, "%s\n", dlerror());
                return 1;
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
