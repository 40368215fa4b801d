/* SPDX-License-Identifier: MIT */
#include "agent/driver/settings.h"

#include <errno.h>
#include <string.h>

#include "agent/log/log.h"

struct Settings {
        char *path;
        Config *config;
        uint64_t stamp;
};

/* The stamp is taken before reading: a file that is changed meanwhile is read again the next time. */
static int settings_read(Settings *settings) {
        CLEANUP(free_ptr) char *message = NULL;
        Config *config;
        int r;

        settings->stamp = config_stamp(settings->path);
        r = config_load(settings->path, &config, &message);
        if (r < 0) {
                log_message(LOG_ERR, "%s", message ?: strerror(-r));
                return r;
        }

        (void) config_free(settings->config);
        settings->config = config;
        return 0;
}

int settings_new(const char *path, Settings **ret) {
        CLEANUP(settings_free_ptr) Settings *settings = NULL;
        int r;

        settings = calloc(1, sizeof *settings);
        if (!settings)
                return -ENOMEM;
        if (path) {
                settings->path = strdup(path);
                if (!settings->path)
                        return -ENOMEM;
        }

        r = settings_read(settings);
        if (r < 0)
                return r;
        *ret = take_ptr(&settings);
        return 0;
}

Settings* settings_free(Settings *settings) {
        if (!settings)
                return NULL;
        (void) config_free(settings->config);
        free(settings->path);
        free(settings);
        return NULL;
}

const Config* settings_get(Settings *settings) {
        if (config_stamp(settings->path) != settings->stamp && settings_read(settings) < 0)
                log_message(LOG_WARNING, "The configuration stays as it was");
        return settings->config;
}
