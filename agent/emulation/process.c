/* SPDX-License-Identifier: MIT */
#include "agent/emulation/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "agent/base/io.h"
#include "agent/base/text.h"

static const struct {
        NvmlReturn result;
        const char *text;
} errors[] = {
        { NVML_OK, "Success" },
        { NVML_UNINITIALIZED, "Uninitialized" },
        { NVML_INVALID_ARGUMENT, "Invalid Argument" },
        { NVML_NOT_SUPPORTED, "Not Supported" },
        { NVML_NO_PERMISSION, "Insufficient Permissions" },
        { 5, "Already Initialized" },
        { NVML_NOT_FOUND, "Not Found" },
        { NVML_INSUFFICIENT_SIZE, "Insufficient Size" },
        { NVML_INSUFFICIENT_POWER, "Insufficient External Power" },
        { NVML_DRIVER_NOT_LOADED, "Driver Not Loaded" },
        { NVML_TIMED_OUT, "Timeout" },
        { NVML_IRQ_ISSUE, "Interrupt Request Issue" },
        { NVML_LIBRARY_NOT_FOUND, "NVML Shared Library Not Found" },
        { NVML_FUNCTION_NOT_FOUND, "Function Not Found" },
        { NVML_CORRUPTED_INFOROM, "Corrupted infoROM" },
        { NVML_GPU_IS_LOST, "GPU is lost" },
        { NVML_RESET_REQUIRED, "GPU requires reset" },
        { NVML_OPERATING_SYSTEM, "GPU access blocked by the operating system" },
        { NVML_LIB_RM_VERSION_MISMATCH, "Driver/library version mismatch" },
        { NVML_IN_USE, "In use by another client" },
        { NVML_NO_MEMORY, "Insufficient Memory" },
        { NVML_NO_DATA, "No data" },
        { 22, "VGPU ECC Not Supported" },
        { NVML_INSUFFICIENT_RESOURCES, "Insufficient Resources" },
        { 24, "Frequency Not Supported" },
        { NVML_ARGUMENT_VERSION_MISMATCH, "Argument Version Mismatch" },
        { NVML_DEPRECATED, "Requested functionality has been deprecated" },
        { NVML_NOT_READY, "System is not ready" },
        { NVML_GPU_NOT_FOUND, "No GPUs were found" },
        { NVML_INVALID_STATE, "Invalid State" },
        { 30, "Reset Type Not Supported" },
};

const char* nvml_error_text(NvmlReturn result) {
        for (size_t i = 0; i < ELEMENTSOF(errors); i++)
                if (errors[i].result == result)
                        return errors[i].text;
        return "Unknown Error";
}

int process_name(pid_t pid, char *ret, size_t size) {
        CLEANUP(free_ptr) char *text = NULL;
        char path[40];

        (void) snprintf(path, sizeof path, "/proc/%d/cmdline", (int) pid);
        if (file_read(AT_FDCWD, path, 1U << 20, &text, NULL) < 0)
                return -ESRCH;
        if (text[0] == '\0') {
                free(take_ptr(&text));
                (void) snprintf(path, sizeof path, "/proc/%d/comm", (int) pid);
                if (file_read(AT_FDCWD, path, 4096, &text, NULL) < 0)
                        return -ESRCH;
                text[strcspn(text, "\n")] = '\0';
        }

        text_escape(text, ret, size);
        return 0;
}

unsigned driver_cuda_version(const char *driver_version) {
        static const struct {
                unsigned branch, cuda;
        } versions[] = { { 610, 13030 }, { 595, 13020 }, { 590, 13010 }, { 580, 13000 }, { 575, 12090 },
                { 570, 12080 }, { 560, 12060 }, { 550, 12040 }, { 535, 12020 } };
        unsigned long branch = strtoul(driver_version, NULL, 10);

        for (size_t i = 0; i < ELEMENTSOF(versions); i++)
                if (branch >= versions[i].branch)
                        return versions[i].cuda;
        return 12000;
}

int bus_id_scan(const char *s, char ret[static GPU_BUS_ID_SIZE]) {
        unsigned long long parts[3] = {}, function = 0;
        unsigned n = 0;

        for (;; s++) {
                char *end;

                if (n == 3 ||
                                !((*s >= '0' && *s <= '9') || (*s >= 'a' && *s <= 'f') ||
                                                (*s >= 'A' && *s <= 'F')))
                        return -EINVAL;
                parts[n++] = strtoull(s, &end, 16);
                if (end - s > 8)
                        return -EINVAL;
                s = end;
                if (*s != ':')
                        break;
        }
        if (*s == '.' && s[1] >= '0' && s[1] <= '7' && s[2] == '\0')
                function = (unsigned long long) (s[1] - '0');
        else if (*s != '\0')
                return -EINVAL;
        if (n < 2)
                return -EINVAL;
        if (n == 2) {
                parts[2] = parts[1];
                parts[1] = parts[0];
                parts[0] = 0;
        }
        if (parts[1] > 0xff || parts[2] > 0x1f)
                return -EINVAL;

        (void) snprintf(ret, GPU_BUS_ID_SIZE, "%08X:%02X:%02X.%X", (unsigned) parts[0],
                        (unsigned) parts[1] & 0xff, (unsigned) parts[2] & 0x1f, (unsigned) function & 7);
        return 0;
}
