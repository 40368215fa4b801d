/* SPDX-License-Identifier: MIT */
#include "agent/config/config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/io.h"
#include "agent/base/text.h"
#include "agent/config/keys.h"
#include "agent/config/reader.h"

#define FILE_MAX ((size_t) 1 << 20)

static const char *const default_folders[] = { "/usr/lib/gpuagent", "/etc/gpuagent", NULL };

Config* config_free(Config *config) {
        if (!config)
                return NULL;

        free(config->driver.root);
        free(config->driver.devices);
        free(config->driver.module);
        free(config->driver.library);
        free(config->driver.smi);
        free(config->handover.checks_directory);
        strv_free(config->quiesce.units);
        free(config->quiesce.command);
        free(config->fabric.query);
        free(config->access.group);
        free(config);
        return NULL;
}

/* A configuration of defaults. 0 · -ENOMEM. */
static int config_new(Config **ret) {
        CLEANUP(config_free_ptr) Config *config = calloc(1, sizeof *config);
        const ConfigKeyInfo *info;

        if (!config)
                return -ENOMEM;

        for (size_t i = 0; (info = config_key_info(i)); i++) {
                CLEANUP(free_ptr) char *problem = NULL;
                bool empty = streq(info->fallback, "\"\"");
                int r;

                if (config_key_is_list((int) i))
                        continue; /* empty */
                r = config_key_set(config, (int) i, empty ? "" : info->fallback, empty, &problem);
                if (r < 0)
                        return r;
        }

        *ret = take_ptr(&config);
        return 0;
}

/* Passes `r` on, with a message of the file's name and the words. */
static int refuse_file(int r, const char *path, const char *words, char **ret_message) {
        if (asprintf(ret_message, "%s: %s", path, words) < 0) {
                *ret_message = NULL;
                return -ENOMEM;
        }
        return r;
}

/* What is executed as root stands in these files, so they are as much worth as root is. */
static int check_owner(const struct stat *st, const char *path, char **ret_message) {
        if (st->st_uid != 0 && st->st_uid != geteuid())
                return refuse_file(-EPERM, path, "must belong to root: chown root it", ret_message);
        if (st->st_mode & (S_IWGRP | S_IWOTH))
                return refuse_file(-EPERM, path, "may be written by others than its owner: chmod go-w it",
                                ret_message);
        return 0;
}

/* Reads one file over what `config` holds. 0 · -ENOENT without a message · negative, as config_load. */
static int config_read_file(Config *config, const char *path, char **ret_message) {
        CLEANUP(fd_close) int fd = -1;
        CLEANUP(free_ptr) char *text = NULL;
        struct stat st;
        size_t size;
        int r;

        /* O_NONBLOCK: a fifo put in the place of a file must not stop us. */
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0) {
                r = -errno;
                return r == -ENOENT ? r : refuse_file(r, path, strerror(-r), ret_message);
        }
        if (fstat(fd, &st) < 0)
                return refuse_file(-errno, path, strerror(errno), ret_message);
        if (!S_ISREG(st.st_mode))
                return refuse_file(-EINVAL, path, "is not a regular file", ret_message);
        r = check_owner(&st, path, ret_message);
        if (r < 0)
                return r;

        r = fd_read_all(fd, FILE_MAX, &text, &size);
        if (r == -EFBIG)
                return refuse_file(r, path, "is larger than 1 MiB", ret_message);
        if (r < 0)
                return refuse_file(r, path, strerror(-r), ret_message);

        return config_read_text(config, path, text, size, ret_message);
}

static int is_yaml(const struct dirent *entry) {
        size_t length = strlen(entry->d_name);

        return entry->d_name[0] != '.' && length > 5 && streq(entry->d_name + length - 5, ".yaml");
}

static int compare_names(const struct dirent **a, const struct dirent **b) {
        return strcmp((*a)->d_name, (*b)->d_name);
}

/* The paths of gpuagentd.yaml and gpuagentd.yaml.d/(*).yaml in a folder, in the order they are read; the
 * first two are the file and the folder of drop-ins themselves, there or not. 0 · -errno of scandir. */
static int list_files(const char *folder, char ***ret) {
        CLEANUP(strv_free_ptr) char **paths = NULL;
        CLEANUP(free_ptr) char *main_file = NULL, *drop_ins = NULL;
        struct dirent **entries = NULL;
        int n, r;

        if (asprintf(&main_file, "%s/gpuagentd.yaml", folder) < 0)
                return -ENOMEM;
        if (asprintf(&drop_ins, "%s.d", main_file) < 0)
                return -ENOMEM;
        r = strv_append(&paths, main_file);
        if (r >= 0)
                r = strv_append(&paths, drop_ins);
        if (r < 0)
                return r;

        n = scandir(drop_ins, &entries, is_yaml, compare_names);
        if (n < 0 && errno != ENOENT)
                return -errno;
        for (int i = 0; i < n; i++) {
                CLEANUP(free_ptr) char *path = NULL;

                if (r >= 0)
                        r = asprintf(&path, "%s/%s", drop_ins, entries[i]->d_name) < 0
                                        ? -ENOMEM
                                        : strv_append(&paths, path);
                free(entries[i]);
        }
        free(entries);
        if (r < 0)
                return r;

        *ret = take_ptr(&paths);
        return 0;
}

static int config_read_folder(Config *config, const char *folder, char **ret_message) {
        CLEANUP(strv_free_ptr) char **paths = NULL;
        int r;

        r = list_files(folder, &paths);
        if (r < 0)
                return refuse_file(r, folder, strerror(-r), ret_message);

        for (size_t i = 0; paths[i]; i++) {
                if (i == 1)
                        continue; /* the folder of drop-ins itself */
                r = config_read_file(config, paths[i], ret_message);
                if (r < 0 && r != -ENOENT)
                        return r;
        }
        return 0;
}

int config_load_folders(const char *const *folders, Config **ret, char **ret_message) {
        CLEANUP(config_free_ptr) Config *config = NULL;
        int r;

        *ret_message = NULL;
        r = config_new(&config);
        for (; r >= 0 && *folders; folders++)
                r = config_read_folder(config, *folders, ret_message);
        if (r < 0)
                return r;

        *ret = take_ptr(&config);
        return 0;
}

int config_load(const char *path, Config **ret, char **ret_message) {
        CLEANUP(config_free_ptr) Config *config = NULL;
        int r;

        if (!path)
                return config_load_folders(default_folders, ret, ret_message);

        *ret_message = NULL;
        r = config_new(&config);
        if (r >= 0)
                r = config_read_file(config, path, ret_message);
        if (r == -ENOENT)
                return refuse_file(r, path, strerror(ENOENT), ret_message);
        if (r < 0)
                return r;

        *ret = take_ptr(&config);
        return 0;
}

int config_parse(const char *name, const char *text, size_t size, Config **ret, char **ret_message) {
        CLEANUP(config_free_ptr) Config *config = NULL;
        int r;

        *ret_message = NULL;
        r = config_new(&config);
        if (r >= 0)
                r = config_read_text(config, name, text, size, ret_message);
        if (r < 0)
                return r;

        *ret = take_ptr(&config);
        return 0;
}

/* FNV-1a over 64-bit words. */
static uint64_t mix(uint64_t hash, uint64_t value) {
        return (hash ^ value) * UINT64_C(1099511628211);
}

static uint64_t stamp_file(uint64_t hash, const char *path) {
        struct stat st;

        if (stat(path, &st) < 0)
                return mix(hash, (uint64_t) errno);

        hash = mix(mix(hash, st.st_dev), st.st_ino);
        hash = mix(mix(hash, (uint64_t) st.st_size), st.st_mode);
        hash = mix(mix(hash, (uint64_t) st.st_mtim.tv_sec), (uint64_t) st.st_mtim.tv_nsec);
        return mix(mix(hash, (uint64_t) st.st_ctim.tv_sec), (uint64_t) st.st_ctim.tv_nsec);
}

uint64_t config_stamp(const char *path) {
        uint64_t hash = UINT64_C(14695981039346656037);

        if (path)
                return stamp_file(hash, path);

        for (const char *const *folder = default_folders; *folder; folder++) {
                CLEANUP(strv_free_ptr) char **paths = NULL;
                int r;

                r = list_files(*folder, &paths);
                hash = mix(hash, (uint64_t) r);
                STRV_FOREACH (file, paths)
                        hash = stamp_file(hash, *file);
        }
        return hash;
}
