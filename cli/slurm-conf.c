/* SPDX-License-Identifier: MIT */
#include "cli/slurm-conf.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/base/array.h"
#include "agent/base/io.h"

#define CONF_SIZE_MAX (16 << 20)

/* Files that include each other end here. */
#define FILES_MAX 64

static int conf_read(SlurmConf *conf, const char *file, unsigned depth, Failure *failure);

void slurm_conf_done(SlurmConf *conf) {
        for (size_t i = 0; i < conf->n; i++) {
                free(conf->settings[i].key);
                free(conf->settings[i].value);
                free(conf->settings[i].file);
        }
        free(conf->settings);
        *conf = (SlurmConf){};
}

static int conf_add(SlurmConf *conf, const char *key, size_t key_length, const char *value,
                size_t value_length, const char *file, unsigned line) {
        SlurmSetting *setting;
        int r;

        r = array_reserve(&conf->settings, conf->n, 1);
        if (r < 0)
                return r;
        setting = &conf->settings[conf->n];
        *setting = (SlurmSetting){
                .key = strndup(key, key_length),
                .value = strndup(value, value_length),
                .file = strdup(file),
                .line = line,
        };
        conf->n++; /* also what is incomplete is freed with the rest */
        return setting->key && setting->value && setting->file ? 0 : -ENOMEM;
}

/* One line, without its comment. */
static int parse_words(SlurmConf *conf, const char *text, const char *file, unsigned line) {
        while (*(text += strspn(text, " \t\r")) != '\0') {
                const char *key = text, *value;
                size_t key_length = strcspn(text, "= \t\r"), value_length;
                int r;

                text += key_length;
                if (*text != '=') /* a word that sets nothing */
                        continue;
                value = ++text;
                if (*value == '"') {
                        value++;
                        value_length = strcspn(value, "\"");
                        text = value + value_length + (value[value_length] == '"');
                } else {
                        value_length = strcspn(value, " \t\r");
                        text = value + value_length;
                }
                r = conf_add(conf, key, key_length, value, value_length, file, line);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* The name behind "Include", NULL if the line is none. */
static const char* include_name(const char *text) {
        text += strspn(text, " \t");
        if (strncasecmp(text, "include", strlen("include")) != 0)
                return NULL;
        text += strlen("include");
        return *text == ' ' || *text == '\t' ? text + strspn(text, " \t") : NULL;
}

static int parse_include(
                SlurmConf *conf, const char *name, const char *file, unsigned depth, Failure *failure) {
        const char *slash = strrchr(file, '/');
        int folder = name[0] == '/' || !slash ? 0 : (int) (slash - file) + 1;
        char path[PATH_MAX];

        (void) snprintf(path, sizeof path, "%.*s%.*s", folder, file, (int) strcspn(name, " \t\r"), name);
        return conf_read(conf, path, depth + 1, failure);
}

/* A '#' begins a comment unless it is escaped. */
static void cut_comment(char *line) {
        for (char *c = line; *c != '\0'; c++)
                if (*c == '#' && (c == line || c[-1] != '\\')) {
                        *c = '\0';
                        return;
                }
}

static int parse_line(SlurmConf *conf, const char *text, const char *file, unsigned line, unsigned depth,
                Failure *failure) {
        const char *included = include_name(text);
        int r;

        if (included)
                return parse_include(conf, included, file, depth, failure);
        r = parse_words(conf, text, file, line);
        return r < 0 ? failure_errno(failure, r, "cannot read %s", file) : 0;
}

static int conf_parse(
                SlurmConf *conf, const char *file, const char *text, unsigned depth, Failure *failure) {
        CLEANUP(free_ptr) char *copy = strdup(text);
        char *rest = copy, *line;
        unsigned number = 0;
        int r;

        if (!copy)
                return failure_errno(failure, -ENOMEM, "cannot read %s", file);
        while ((line = strsep(&rest, "\n"))) {
                unsigned first = ++number;
                size_t n = strlen(line);

                /* Lines that go on are one: the end of the first becomes a space. */
                while (n > 0 && line[n - 1] == '\\' && rest) {
                        line[n - 1] = ' ';
                        line[n] = ' ';
                        n += 1 + strcspn(rest, "\n");
                        (void) strsep(&rest, "\n");
                        number++;
                }
                cut_comment(line);
                r = parse_line(conf, line, file, first, depth, failure);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int conf_read(SlurmConf *conf, const char *file, unsigned depth, Failure *failure) {
        CLEANUP(free_ptr) char *text = NULL;
        int r;

        if (depth >= FILES_MAX)
                return failure_set(failure, CLI_FAILED, "%s: files include each other", file);
        r = file_read(AT_FDCWD, file, CONF_SIZE_MAX, &text, NULL);
        if (r < 0)
                return failure_errno(failure, r, "cannot read %s", file);
        return conf_parse(conf, file, text, depth, failure);
}

int slurm_conf_parse(SlurmConf *conf, const char *file, const char *text, Failure *failure) {
        return conf_parse(conf, file, text, 0, failure);
}

int slurm_conf_read(SlurmConf *conf, const char *file, Failure *failure) {
        return conf_read(conf, file, 0, failure);
}

const SlurmSetting* slurm_conf_get(const SlurmConf *conf, const char *key) {
        for (size_t i = conf->n; i-- > 0;)
                if (strcasecmp(conf->settings[i].key, key) == 0)
                        return &conf->settings[i];
        return NULL;
}
