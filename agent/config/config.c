/* SPDX-License-Identifier: MIT */
#include "agent/config/config.h"

#include <errno.h>

#include "agent/config/files.h"
#include "agent/config/keys.h"
#include "agent/config/reader.h"

#define FILE_NAME "gpuagentd.yaml"

Config* config_free(Config *config) {
        if (!config)
                return NULL;

        schema_done(&config_schema, config);
        free(config);
        return NULL;
}

/* A configuration of defaults. 0 · -ENOMEM. */
static int config_new(Config **ret) {
        CLEANUP(config_free_ptr) Config *config = calloc(1, sizeof *config);
        int r;

        if (!config)
                return -ENOMEM;
        r = schema_init(&config_schema, config);
        if (r < 0)
                return r;

        *ret = take_ptr(&config);
        return 0;
}

int config_load_folders(const char *const *folders, Config **ret, char **ret_message) {
        CLEANUP(config_free_ptr) Config *config = NULL;
        int r;

        *ret_message = NULL;
        r = config_new(&config);
        if (r >= 0)
                r = config_files_read(&config_schema, config, folders, FILE_NAME, ret_message);
        if (r < 0)
                return r;

        *ret = take_ptr(&config);
        return 0;
}

int config_load(const char *path, Config **ret, char **ret_message) {
        CLEANUP(config_free_ptr) Config *config = NULL;
        int r;

        *ret_message = NULL;
        r = config_new(&config);
        if (r >= 0)
                r = config_usual_read(&config_schema, config, path, FILE_NAME, ret_message);
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
                r = config_read_text(&config_schema, config, name, text, size, ret_message);
        if (r < 0)
                return r;

        *ret = take_ptr(&config);
        return 0;
}

uint64_t config_stamp(const char *path) {
        return config_usual_stamp(path, FILE_NAME);
}
