/* SPDX-License-Identifier: MIT */
#include "agent/driver/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/text.h"

/* Where a library lies in the tree of a containerised driver. */
static const char *const library_folders[] = {
        "/usr/lib64",
#if defined(__x86_64__)
        "/usr/lib/x86_64-linux-gnu",
#elif defined(__aarch64__)
        "/usr/lib/aarch64-linux-gnu",
#endif
        "/usr/lib",
        "/lib64",
};

/* 0 and *ret (to be freed) · -ENOENT · -ENOMEM. */
static int library_find(const char *root, const char *library, char **ret) {
        char *path;

        if (streq(root, "/")) {
                path = strdup(library);
                if (!path)
                        return -ENOMEM;
                *ret = path;
                return 0;
        }
        if (strchr(library, '/')) {
                if (asprintf(&path, "%s/%s", root, library) < 0)
                        return -ENOMEM;
                *ret = path;
                return 0;
        }

        for (size_t i = 0; i < ELEMENTSOF(library_folders); i++) {
                if (asprintf(&path, "%s%s/%s", root, library_folders[i], library) < 0)
                        return -ENOMEM;
                if (access(path, F_OK) == 0) {
                        *ret = path;
                        return 0;
                }
                free(path);
        }
        return -ENOENT;
}

/* dlsym, without the conversion of an object's to a function's pointer that C does not know. */
static void symbol_find(void *library, const char *name, void *ret_function) {
        void *symbol = dlsym(library, name);

        memcpy(ret_function, &symbol, sizeof symbol);
}

int nvml_load(const char *root, const char *library, Nvml **ret, char **ret_message) {
        CLEANUP(nvml_free_ptr) Nvml *nvml = NULL;
        CLEANUP(free_ptr) char *path = NULL;
        const char *missing = NULL;
        int r;

        *ret_message = NULL;
        nvml = calloc(1, sizeof *nvml);
        if (!nvml)
                return -ENOMEM;
        r = library_find(root, library, &path);
        if (r < 0)
                return r;
        nvml->library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
        if (!nvml->library) {
                const char *message = dlerror();

                *ret_message = message ? strdup(message) : NULL;
                return -ENOENT;
        }

#define NVML_FIND(name, arguments) symbol_find(nvml->library, #name, &nvml->name);
#define NVML_NEED(name, arguments) \
        if (!nvml->name)           \
                missing = missing ?: #name;
        NVML_REQUIRED_FUNCTIONS(NVML_FIND)
        NVML_OPTIONAL_FUNCTIONS(NVML_FIND)
        symbol_find(nvml->library, "nvmlErrorString", &nvml->nvmlErrorString);
        NVML_REQUIRED_FUNCTIONS(NVML_NEED)
        if (!nvml->nvmlErrorString)
                missing = missing ?: "nvmlErrorString";
        if (missing) {
                *ret_message = strdup(missing);
                return -ENOSYS;
        }

        *ret = take_ptr(&nvml);
        return 0;
}

Nvml* nvml_free(Nvml *nvml) {
        if (!nvml)
                return NULL;
        if (nvml->library) {
                if (nvml->nvmlShutdown)
                        (void) nvml->nvmlShutdown(); /* "uninitialized" if it was never started */
                (void) dlclose(nvml->library);
        }
        free(nvml);
        return NULL;
}

void nvml_error_format(const Nvml *nvml, NvmlReturn result, char *ret, size_t size) {
        const char *text = nvml->nvmlErrorString(result);

        if (text && *text)
                text_escape_words(text, ret, size);
        else
                (void) snprintf(ret, size, "error %d", result);
}
