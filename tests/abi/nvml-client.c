/* SPDX-License-Identifier: MIT */
/* A client of NVML: prints what nvmlInit returned, and with `stay` remains one until it is stopped. */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/base/text.h"
#include "agent/driver/nvml-abi.h"

int main(int argc, char **argv) {
        NvmlReturn (*init)(void);
        void *library;

        library = dlopen(NVML_LIBRARY_NAME, RTLD_NOW | RTLD_LOCAL);
        if (!library) {
                (void) fprintf(stderr, "%s\n", dlerror());
                return 1;
        }
        init = (NvmlReturn(*)(void)) dlsym(library, "nvmlInit_v2");
        if (!init)
                return 1;

        (void) printf("%d\n", init());
        (void) fflush(stdout);
        if (argc > 1 && streq(argv[1], "stay"))
                (void) pause();
        return 0;
}
