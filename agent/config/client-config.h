/* SPDX-License-Identifier: MIT */
/* The configuration of gpuagentctl and its helpers on an operator's host, from gpuagentctl.yaml.
 * gpuagentctl.yaml(5) describes each key. */
#pragma once

#include "agent/config/config.h"

#define CLIENT_TRAYS_MAX       1024
#define CLIENT_BLOCK_SIZES_MAX 16

typedef struct NumberList {
        size_t n;
        uint32_t values[CLIENT_BLOCK_SIZES_MAX];
} NumberList;

/* What `gpuagentctl topology` writes. */
typedef enum TopologyFormat {
        TOPOLOGY_BLOCK_SIZES,
        TOPOLOGY_BLOCK_LEVELS,
        TOPOLOGY_YAML,
        TOPOLOGY_FEATURES,
} TopologyFormat;

/* How a tray's BMC is reached. The strings are never NULL, and "" where nothing is configured. */
typedef struct ClientBmc {
        char *tray;
        char *url;
        char *user;
        char *password_file;
        char *ca_file; /* whose certificates are believed; "": the system's */
        bool verify;   /* that a certificate is good, and the BMC's */
} ClientBmc;

/* The strings are never NULL. */
typedef struct ClientConfig {
        char **trays;        /* a strv of [USER@]HOST, in the order of their slots; the first is slot 1 */
        char *fabric_assign; /* the command that changes the fabric; "" for none */
        struct {
                int format;             /* TopologyFormat */
                NumberList block_sizes; /* as Slurm's BlockSizes; none: from the trays */
        } topology;
        ClientBmc *bmcs;
        size_t n_bmcs;
} ClientConfig;

/* Reads /usr/lib/gpuagent/gpuagentctl.yaml, its drop-ins, and the same in /etc/gpuagent, or `path` alone, as
 * config_load() does. 0 and *ret · -errno and *ret_message (to be freed, NULL only without memory), one line
 * that a person can act on. */
int client_config_load(const char *path, ClientConfig **ret, char **ret_message);

/* The same from `size` bytes of text, called `name` in the message. */
int client_config_parse(
                const char *name, const char *text, size_t size, ClientConfig **ret, char **ret_message);

ClientConfig* client_config_free(ClientConfig *config);

/* The BMC of a tray, by the tray's name; NULL if none is configured. */
const ClientBmc* client_config_bmc(const ClientConfig *config, const char *tray);

/* What a tray is called: what follows the "@" in [USER@]HOST. */
const char* host_name(const char *host);

/* What there is to configure, as config_key_info(). */
const ConfigKeyInfo* client_config_key_info(size_t i);

DEFINE_CLEANUP(ClientConfig, client_config_free_ptr, client_config_free)
