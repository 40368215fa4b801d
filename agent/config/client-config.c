/* SPDX-License-Identifier: MIT */
#include "agent/config/client-config.h"

#include <errno.h>
#include <string.h>

#include "agent/base/array.h"
#include "agent/base/parse.h"
#include "agent/base/text.h"
#include "agent/config/files.h"
#include "agent/config/keys.h"
#include "agent/config/reader.h"

static void client_bmc_done(ClientBmc *bmc) {
        schema_done(&client_bmc_schema, bmc);
        free(bmc->tray);
}

ClientConfig* client_config_free(ClientConfig *config) {
        if (!config)
                return NULL;

        schema_done(&client_config_schema, config);
        for (size_t i = 0; i < config->n_bmcs; i++)
                client_bmc_done(&config->bmcs[i]);
        free(config->bmcs);
        free(config);
        return NULL;
}

const char* host_name(const char *host) {
        const char *at = strchr(host, '@');

        return at ? at + 1 : host;
}

static ClientBmc* find_bmc(const ClientConfig *config, const char *tray) {
        for (size_t i = 0; i < config->n_bmcs; i++)
                if (streq(config->bmcs[i].tray, tray))
                        return &config->bmcs[i];
        return NULL;
}

const ClientBmc* client_config_bmc(const ClientConfig *config, const char *tray) {
        return find_bmc(config, tray);
}

int client_bmc_get(void *object, const char *name, void **ret_entry, char **ret_problem) {
        ClientConfig *config = object;
        ClientBmc *bmc = find_bmc(config, name);
        int r;

        if (bmc) {
                *ret_entry = bmc;
                return 0;
        }
        if (!host_is_valid(name) || strchr(name, '@') || config->n_bmcs >= CLIENT_TRAYS_MAX) {
                *ret_problem = strdup(config->n_bmcs >= CLIENT_TRAYS_MAX ? "is one tray too many"
                                                                         : "is no name of a tray");
                return -EINVAL;
        }

        r = array_reserve(&config->bmcs, config->n_bmcs, 1);
        if (r < 0)
                return r;
        bmc = &config->bmcs[config->n_bmcs++];
        *bmc = (ClientBmc){ .tray = strdup(name) };
        r = bmc->tray ? schema_init(&client_bmc_schema, bmc) : -ENOMEM;
        if (r < 0)
                return r; /* what there is of it goes with the configuration */

        *ret_entry = bmc;
        return 0;
}

/* A configuration of defaults. 0 · -ENOMEM. */
static int client_config_new(ClientConfig **ret) {
        CLEANUP(client_config_free_ptr) ClientConfig *config = calloc(1, sizeof *config);
        int r;

        if (!config)
                return -ENOMEM;
        r = schema_init(&client_config_schema, config);
        if (r < 0)
                return r;

        *ret = take_ptr(&config);
        return 0;
}

int client_config_load(const char *path, ClientConfig **ret, char **ret_message) {
        CLEANUP(client_config_free_ptr) ClientConfig *config = NULL;
        int r;

        *ret_message = NULL;
        r = client_config_new(&config);
        if (r >= 0)
                r = config_usual_read(&client_config_schema, config, path, "gpuagentctl.yaml", ret_message);
        if (r < 0)
                return r;

        *ret = take_ptr(&config);
        return 0;
}

int client_config_parse(
                const char *name, const char *text, size_t size, ClientConfig **ret, char **ret_message) {
        CLEANUP(client_config_free_ptr) ClientConfig *config = NULL;
        int r;

        *ret_message = NULL;
        r = client_config_new(&config);
        if (r >= 0)
                r = config_read_text(&client_config_schema, config, name, text, size, ret_message);
        if (r < 0)
                return r;

        *ret = take_ptr(&config);
        return 0;
}
