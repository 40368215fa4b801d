/* SPDX-License-Identifier: MIT */
/* NRI as a plugin sees it, on one connection to a runtime: it registers, says which events it wants, and
 * answers what the runtime asks. What an event means to GPUs is for others; what a peer sends is bounded
 * here. */
#pragma once

#include "cli/oci-rules.h"
#include "hooks/nri/wire.h"

/* Enough for the agent's line about sixteen GPUs; an event of a pod shows it. */
#define PLUGIN_WHY_SIZE 2048

typedef struct PluginOps {
        /* A container is about to be made. 0: it may · negative: it must not, and ret_why says why. */
        int (*gate)(const OciContainer *container, char ret_why[static PLUGIN_WHY_SIZE], void *userdata);

        /* The use of GPUs by this container, or its pod, is over. */
        void (*end)(const OciContainer *container, void *userdata);

        /* The runtime has taken us, and is this; printable. */
        void (*ready)(const char *runtime, const char *version, void *userdata);
        void *userdata;
} PluginOps;

typedef struct Plugin {
        PluginOps ops;
        WireBuffer out;   /* to be sent, and then emptied */
        char **sandboxes; /* a strv of "UID ID": in which sandbox a pod has had its last container made */
} Plugin;

/* 0, and the registration is in plugin->out · -ENOMEM. */
int plugin_begin(Plugin *plugin, const PluginOps *ops);
void plugin_done(Plugin *plugin);

/* Takes a message; what is to be said to it is in plugin->out. 0 · -ECONNREFUSED the runtime does not want
 * us · -EBADMSG not ttrpc · -ENOMEM: the connection is of no use any more. */
int plugin_take(Plugin *plugin, const WireMessage *message);
