/* SPDX-License-Identifier: MIT */
/* The arguments that the methods share: GPU ids and the last a{sv} of options. All of it comes from
 * strangers. */
#pragma once

#include <stdbool.h>
#include <systemd/sd-bus.h>

#include "agent/core/request.h"

/* More than any tray has, and few enough to look at one by one. */
#define BUS_IDS_MAX 4096U

/* Strings and numbers belong to the message. */
typedef struct BusOptions {
        const char *tenant;
        const char *identifier;
        char reason[GPU_REASON_SIZE]; /* "" for none */
        usec_t timeout_usec;          /* 0: not given */
        bool no_wait;
        bool shared, force, checks;
        uint32_t clique;      /* UNKNOWN_U32: not given */
        const uint32_t *from; /* n_from of them; NULL: not given */
        size_t n_from;
} BusOptions;

/* Reads an array of GPU ids. 0 and *ret (a NULL-terminated array, itself to be freed, whose strings belong
 * to the message; NULL for an empty one) · -errno with the error set. Whether they name a GPU is not looked
 * at. */
int bus_ids_read(sd_bus_message *msg, const char ***ret, sd_bus_error *error);

/* Reads and checks the options, and that nothing follows. 0 and *ret · -errno with the error set. */
int bus_options_read(sd_bus_message *msg, BusOptions *ret, sd_bus_error *error);

/* Options that mean something to some methods only. */
typedef enum BusOptionFlag {
        BUS_OPTION_SHARED = 1 << 0,
        BUS_OPTION_FORCE = 1 << 1,
        BUS_OPTION_CHECKS = 1 << 2,
        BUS_OPTION_CLIQUE = 1 << 3,
        BUS_OPTION_FROM = 1 << 4,
} BusOptionFlag;

/* Refuses those of them that are given and that the method (`fit`, of BusOptionFlag) does not have. 0 ·
 * -errno with the error set. */
int bus_options_check(const BusOptions *options, uint32_t fit, sd_bus_error *error);

/* 0 · -errno with the error set. */
int bus_tenant_check(const char *tenant, sd_bus_error *error);
