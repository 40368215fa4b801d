/* SPDX-License-Identifier: MIT */
#include "agent/emulation/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "agent/base/io.h"
#include "agent/base/text.h"
#include "agent/driver/nvml-abi.h"

#define MIB (UINT64_C(1) << 20)

/* FNV-1a and a finisher: identities need to be stable and to differ, nothing more. */
static uint64_t hash_text(const char *text, uint64_t salt) {
        uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ (salt * UINT64_C(0x9e3779b97f4a7c15));

        for (; *text != '\0'; text++)
                hash = (hash ^ (unsigned char) *text) * UINT64_C(0x100000001b3);
        hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
        return hash ^ hash >> 31;
}

static int uuid_parse(const char *s, uint8_t ret[static 16]) {
        char prefixed[GPU_UUID_SIZE], canonical[GPU_UUID_SIZE];
        size_t n = 0;
        int r;

        if (snprintf(prefixed, sizeof prefixed, "GPU-%s", s) >= (int) sizeof prefixed)
                return -EINVAL;
        r = gpu_uuid_parse(prefixed, canonical);
        if (r < 0)
                return r;

        for (const char *p = canonical + strlen("GPU-"); *p != '\0'; p++) {
                uint8_t digit;

                if (*p == '-')
                        continue;
                digit = (uint8_t) (*p <= '9' ? *p - '0' : *p - 'a' + 10);
                ret[n / 2] = (uint8_t) (n % 2 == 0 ? digit << 4 : ret[n / 2] | digit);
                n++;
        }
        return 0;
}

static void gpu_make_uuid(const char *tray_name, uint32_t index, char ret[static GPU_UUID_SIZE]) {
        uint64_t high = hash_text(tray_name, 2 * index + 1), low = hash_text(tray_name, 2 * index + 2);

        (void) snprintf(ret, GPU_UUID_SIZE, "GPU-%08x-%04x-%04x-%04x-%012llx", (unsigned) (high >> 32),
                        (unsigned) (high >> 16) & 0xffff, (unsigned) high & 0xffff, (unsigned) (low >> 48),
                        (unsigned long long) low & 0xffffffffffff);
}

/* Trays larger than the preset's machine repeat its buses in further PCI domains. */
static void gpu_make_bus_id(const GpuPreset *preset, uint32_t index, char ret[static GPU_BUS_ID_SIZE]) {
        const char *pattern = preset->bus_ids[index % preset->n_gpus];
        unsigned long domain = strtoul(pattern, NULL, 16) + index / preset->n_gpus * 0x20UL;

        (void) snprintf(ret, GPU_BUS_ID_SIZE, "%08lX%s", domain, strchr(pattern, ':'));
}

static const char* list_item(char *const *list, uint32_t index) {
        return index < strv_length(list) ? list[index] : NULL;
}

static int gpu_set_identity(
                const EmulationConfig *config, const GpuPreset *preset, uint32_t index, TrayGpu *gpu) {
        uint32_t board = preset->model.shared_serials ? index / 2 : index;
        const char *item;
        int r = 0;

        gpu->index = index;
        gpu->minor = index;
        gpu->module_id = index < preset->n_gpus ? preset->module_ids[index] : index + 1;
        gpu->fabric_guid = hash_text(config->name, 0x10000 + index);
        gpu_make_uuid(config->name, index, gpu->uuid);
        gpu_make_bus_id(preset, index, gpu->bus_id);
        (void) snprintf(gpu->serial, sizeof gpu->serial, "165%010llu",
                        (unsigned long long) (hash_text(config->name, 0x20000 + board) % 10000000000));

        item = list_item(config->uuids, index);
        if (item)
                r = gpu_uuid_parse(item, gpu->uuid);
        item = list_item(config->bus_ids, index);
        if (r >= 0 && item)
                r = bus_id_parse(item, gpu->bus_id);
        item = list_item(config->minors, index);
        if (r >= 0 && item)
                r = parse_u32(item, 0xfffff, &gpu->minor);
        item = list_item(config->serials, index);
        if (r >= 0 && item) {
                text_escape(item, gpu->serial, NVML_SERIAL_SIZE);
                r = strlen(item) < NVML_SERIAL_SIZE ? 0 : -EINVAL;
        }
        return r;
}

static int identities_are_unique(const Tray *tray) {
        uint32_t n = tray->header->n_gpus;

        /* Once per boot: 1,024 GPUs are half a million comparisons, about a millisecond each kind. */
        for (uint32_t i = 0; i < n; i++)
                for (uint32_t k = 0; k < i; k++)
                        if (tray->gpus[i].minor == tray->gpus[k].minor ||
                                        streq(tray->gpus[i].uuid, tray->gpus[k].uuid) ||
                                        streq(tray->gpus[i].bus_id, tray->gpus[k].bus_id))
                                return -EEXIST;
        return 0;
}

static void header_fill(const EmulationConfig *config, const GpuPreset *preset, TrayHeader *header) {
        header->model = preset->model;
        header->boot_usec = now_monotonic_usec();
        header->reset_usec = config->reset_usec;
        header->settle_usec = config->settle_usec;
        header->dialect = (uint8_t) dialect_from_string(config->dialect);
        (void) snprintf(header->name, sizeof header->name, "%s", config->name);
        (void) snprintf(header->devices, sizeof header->devices, "%s", config->devices);
        (void) snprintf(header->driver_version, sizeof header->driver_version, "%s", config->driver_version);
        if (config->model)
                (void) snprintf(header->model.name, sizeof header->model.name, "%s", config->model);
        if (config->memory_mib > 0)
                header->model.memory_total = config->memory_mib * MIB;
        if (header->model.memory_reserved > header->model.memory_total / 2)
                header->model.memory_reserved = header->model.memory_total / 2;
        if (config->nvlinks != UINT32_MAX)
                header->model.n_links = config->nvlinks;

        if (header->model.cluster) {
                (void) snprintf((char *) header->chassis_serial, sizeof header->chassis_serial, "182%010llu",
                                (unsigned long long) (hash_text(config->cluster_uuid, 1) % 10000000000));
                header->slot_number = (uint8_t) (1 + hash_text(config->name, 3) % 36);
                header->tray_index = (uint8_t) (hash_text(config->name, 3) % 18);
        }
}

static int tray_fill(
                const EmulationConfig *config, const GpuPreset *preset, Tray *tray, char **ret_message) {
        TrayHeader *header = tray->header;
        TrayPartition *partition;
        int r;

        header_fill(config, preset, header);
        if (header->model.cluster) {
                if (uuid_parse(config->cluster_uuid, header->cluster_uuid) < 0)
                        return emulation_refuse(-EINVAL, ret_message, "cluster-uuid \"%s\" is not a UUID",
                                        config->cluster_uuid);
                if (config->partition != PARTITION_NONE) {
                        r = tray_add_partition(tray, &partition);
                        if (r < 0)
                                return r;
                        partition->id = config->partition;
                        partition->clique = config->clique;
                        (void) snprintf(partition->name, sizeof partition->name, "%s",
                                        config->partition_name);
                }
        }

        for (uint32_t i = 0; i < header->n_gpus; i++) {
                TrayGpu *gpu = &tray->gpus[i];

                if (gpu_set_identity(config, preset, i, gpu) < 0)
                        return emulation_refuse(-EINVAL, ret_message,
                                        "GPU %u's UUID, bus id, minor or serial is not valid", i);
                gpu->partition = header->model.cluster ? config->partition : PARTITION_NONE;
                gpu->settle_usec = TRAY_SETTLE_DEFAULT;
                gpu->links_up = UINT64_MAX;
                gpu->persistence = 1;
        }

        r = identities_are_unique(tray);
        return r < 0 ? emulation_refuse(r, ret_message, "two GPUs have the same UUID, bus id or minor") : 0;
}

/* The driver's load trains the fabric as a reset does: what partitions say takes effect. */
static void tray_apply_partitions(Tray *tray) {
        for (uint32_t i = 0; i < tray->header->n_gpus; i++) {
                TrayGpu *gpu = &tray->gpus[i];

                gpu->applied_partition = gpu->partition;
                gpu->clique = tray_wanted_clique(tray, gpu);
                gpu->settle_start_usec = tray->header->boot_usec;
                gpu->settled_usec = usec_add(tray->header->boot_usec, tray->header->settle_usec);
        }
}

static int make_directory(const char *path, mode_t mode) {
        if (mkdir(path, mode) < 0 && errno != EEXIST)
                return -errno;
        return chmod(path, mode) < 0 ? -errno : 0;
}

/* A character node where that is permitted, since slurmd takes nothing else; it is /dev/null's, so that
 * anybody can open and hold it. In an unprivileged container a plain file, or what its manager has put
 * there. */
static int make_node(const char *path) {
        CLEANUP(fd_close) int fd = -1;
        struct stat st;

        if (lstat(path, &st) >= 0)
                return 0;
        if (mknod(path, S_IFCHR | 0666, makedev(1, 3)) >= 0)
                return chmod(path, 0666) < 0 ? -errno : 0;

        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd < 0)
                return -errno;
        return fchmod(fd, 0666) < 0 ? -errno : 0;
}

static int make_memory(const TrayGpu *gpu) {
        CLEANUP(fd_close) int fd = -1;
        char path[64];

        (void) snprintf(path, sizeof path, TRAY_MEMORY_DIRECTORY "/%u", gpu->index);
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd < 0)
                return -errno;
        return fchmod(fd, 0666) < 0 ? -errno : 0;
}

static int make_files(const Tray *tray) {
        int r;

        r = make_directory(TRAY_MEMORY_DIRECTORY, 0755);
        if (r >= 0)
                r = make_directory(TRAY_CLIENTS_DIRECTORY, 01777);
        if (r >= 0 && !streq(tray->header->devices, "/dev"))
                r = make_directory(tray->header->devices, 0755);

        for (uint32_t i = 0; r >= 0 && i < tray->header->n_gpus; i++) {
                char path[192];

                r = tray_node_path(tray->header, &tray->gpus[i], path, sizeof path);
                if (r >= 0)
                        r = make_node(path);
                if (r >= 0)
                        r = make_memory(&tray->gpus[i]);
        }
        return r;
}

int tray_boot(const EmulationConfig *config, char **ret_message) {
        CLEANUP(tray_done) Tray tray = TRAY_INIT;
        const GpuPreset *preset = gpu_preset_find(config->preset);
        int r;

        if (!preset)
                return emulation_refuse(-EINVAL, ret_message,
                                "there is no preset \"%s\" (gb200, gb300, b200, h100)", config->preset);
        if (dialect_from_string(config->dialect) < 0)
                return emulation_refuse(-EINVAL, ret_message, "there is no dialect \"%s\" (nvidia, ai-lab)",
                                config->dialect);

        r = make_directory(TRAY_DIRECTORY, 0755);
        if (r >= 0)
                r = tray_make(config->gpus > 0 ? config->gpus : preset->n_gpus, &tray);
        if (r < 0)
                return r;

        r = tray_fill(config, preset, &tray, ret_message);
        if (r >= 0 && tray.header->model.cluster)
                r = partitions_load(&tray);
        if (r < 0)
                return r;

        tray_apply_partitions(&tray);
        r = make_files(&tray);
        if (r >= 0)
                r = tray_commit(&tray);
        return r;
}
