/* SPDX-License-Identifier: MIT */
#include "agent/config/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/io.h"
#include "agent/base/text.h"
#include "agent/config/reader.h"

#define FILE_MAX ((size_t) 1 << 20)

static const char *const default_folders[] = { "/usr/lib/gpuagent", "/etc/gpuagent", NULL };

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

/* Reads one file over what `object` holds. 0 · -ENOENT without a message · negative and *ret_message. */
static int config_file_read(const ConfigSchema *schema, void *object, const char *path, char **ret_message) {
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

        return config_read_text(schema, object, path, text, size, ret_message);
}

static int is_yaml(const struct dirent *entry) {
        size_t length = strlen(entry->d_name);

        return entry->d_name[0] != '.' && length > 5 && streq(entry->d_name + length - 5, ".yaml");
}

static int compare_names(const struct dirent **a, const struct dirent **b) {
        return strcmp((*a)->d_name, (*b)->d_name);
}

/* The paths of NAME and NAME.d/(*).yaml in a folder, in the order they are read; the first two are the file
 * and the folder of drop-ins themselves, there or not. 0 · -errno of scandir. */
static int list_files(const char *folder, const char *name, char ***ret) {
        CLEANUP(strv_free_ptr) char **paths = NULL;
        CLEANUP(free_ptr) char *main_file = NULL, *drop_ins = NULL;
        struct dirent **entries = NULL;
        int n, r;

        if (asprintf(&main_file, "%s/%s", folder, name) < 0)
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

static int read_folder(const ConfigSchema *schema, void *object, const char *folder, const char *name,
                char **ret_message) {
        CLEANUP(strv_free_ptr) char **paths = NULL;
        int r;

        r = list_files(folder, name, &paths);
        if (r < 0)
                return refuse_file(r, folder, strerror(-r), ret_message);

        for (size_t i = 0; paths[i]; i++) {
                if (i == 1)
                        continue; /* the folder of drop-ins itself */
                r = config_file_read(schema, object, paths[i], ret_message);
                if (r < 0 && r != -ENOENT)
                        return r;
        }
        return 0;
}

int config_files_read(const ConfigSchema *schema, void *object, const char *const *folders, const char *name,
                char **ret_message) {
        int r = 0;

        for (; r >= 0 && *folders; folders++)
                r = read_folder(schema, object, *folders, name, ret_message);
        return r;
}

int config_usual_read(const ConfigSchema *schema, void *object, const char *path, const char *name,
                char **ret_message) {
        int r;

        if (!path)
                return config_files_read(schema, object, default_folders, name, ret_message);

        r = config_file_read(schema, object, path, ret_message);
        return r == -ENOENT ? refuse_file(r, path, strerror(ENOENT), ret_message) : r;
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

uint64_t config_usual_stamp(const char *path, const char *name) {
        uint64_t hash = UINT64_C(14695981039346656037);

        if (path)
                return stamp_file(hash, path);

        for (const char *const *folder = default_folders; *folder; folder++) {
                CLEANUP(strv_free_ptr) char **paths = NULL;
                int r;

                r = list_files(*folder, name, &paths);
                hash = mix(hash, (uint64_t) r);
                STRV_FOREACH (file, paths)
                        hash = stamp_file(hash, *file);
        }
        return hash;
}
