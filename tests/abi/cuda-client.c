/* SPDX-License-Identifier: MIT */
/* A CUDA program: cuda-client count | wrong | write TEXT | read | hold. The GPU is the first that it may
 * see. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/base/text.h"
#include "agent/emulation/cuda-exports.h"

#define SIZE 4096

#define NAME(name, arguments) #name,

static const char *const names[] = { CUDA_FUNCTIONS(NAME) };

typedef CudaResult (*AnyFunction)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

static void *library;

static CudaResult call(const char *name, uintptr_t a, uintptr_t b, uintptr_t c) {
        AnyFunction function = (AnyFunction) dlsym(library, name);

        return function ? function(a, b, c, 0, 0) : -1;
}

/* Every call with nothing for arguments, before cuInit and after it: none may succeed. */
static int call_wrongly(void) {
        static const char *const may_succeed[] = { "cuInit", "cuMemFree_v2", "cuCtxSetCurrent",
                "cuDevicePrimaryCtxReset_v2", "cuDevicePrimaryCtxSetFlags_v2", "cuCtxSynchronize" };
        int wrong = 0;

        for (int initialized = 0; initialized < 2; initialized++) {
                for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                        bool expected = streq(names[i], "cuInit");

                        for (size_t k = 0; initialized && k < ELEMENTSOF(may_succeed); k++)
                                expected = expected || streq(names[i], may_succeed[k]);
                        if (!initialized && expected)
                                continue;
                        if (call(names[i], 0, 0, 0) <= 0 && !expected) {
                                (void) printf("%s with nothing for arguments succeeds\n", names[i]);
                                wrong = 1;
                        }
                }
                (void) call("cuInit", 0, 0, 0);
        }
        return wrong;
}

static int use_memory(const char *what, const char *text) {
        CudaContextHandle context;
        char bytes[SIZE] = {};
        CudaAddress address;

        if (call("cuCtxCreate_v2", (uintptr_t) &context, 0, 0) != CUDA_OK ||
                        call("cuMemAlloc_v2", (uintptr_t) &address, SIZE, 0) != CUDA_OK)
                return 1;
        if (streq(what, "write") && text)
                return call("cuMemcpyHtoD_v2", address, (uintptr_t) text, strlen(text) + 1);
        if (streq(what, "hold")) {
                (void) puts("holding");
                (void) fflush(stdout);
                (void) pause();
        }
        if (call("cuMemcpyDtoH_v2", (uintptr_t) bytes, address, SIZE) != CUDA_OK)
                return 1;
        (void) printf("%.*s\n", SIZE, bytes);
        return 0;
}

int main(int argc, char **argv) {
        int count = 0;
        CudaResult r;

        library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        if (!library || argc < 2) {
                (void) fprintf(stderr, "%s\n", library ? "nothing to do" : dlerror());
                return 2;
        }
        if (streq(argv[1], "wrong"))
                return call_wrongly();

        r = call("cuInit", 0, 0, 0);
        if (r == CUDA_OK)
                r = call("cuDeviceGetCount", (uintptr_t) &count, 0, 0);
        if (streq(argv[1], "count"))
                (void) printf("%d\n", r == CUDA_OK ? count : -r);
        else if (r == CUDA_OK)
                return use_memory(argv[1], argv[2]);
        return r != CUDA_OK;
}
