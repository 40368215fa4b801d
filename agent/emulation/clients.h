/* SPDX-License-Identifier: MIT */
/* What tenants say about themselves: how much of a GPU's memory they use and how hard they work it. Each
 * writes a small file of its own in a folder that anybody may write to, so readers believe nothing that the
 * kernel does not confirm: the file's owner must be the process's, numbers are cut to what a GPU can do, and
 * only so many files are read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/emulation/tray.h"

/* The file: fixed size, native byte order. */
typedef struct ClientRecord {
        char magic[8];
        int32_t pid;
        uint32_t gpu;        /* index */
        uint64_t start_time; /* of the process, clock ticks after boot */
        uint64_t used_bytes;
        uint64_t since_usec; /* CLOCK_MONOTONIC, since when it works */
        uint64_t until_usec; /* the last time it said so */
        uint32_t load;       /* percent */
        uint32_t reserved;
} ClientRecord;

/* As a reader takes it: checked, and for a process that lives, up to now. */
typedef struct Client {
        ClientRecord record;
        bool alive;
        uint64_t file; /* its inode */
} Client;

typedef struct Clients {
        Client *items;
        size_t n;
} Clients;

/* Reads all registrations. 0 and *ret, empty where there are none · -ENOMEM. */
int clients_read(const TrayHeader *header, usec_t now, Clients *ret);
void clients_done(Clients *clients);

/* Bytes of the GPU's memory in use by them. */
uint64_t clients_used_bytes(const Clients *clients, uint32_t gpu);

/* The registration of a process on a GPU; NULL if it has none. */
const Client* clients_find(const Clients *clients, pid_t pid, uint32_t gpu);

/* Registers the calling process. `ret_path` is where; client_update() writes there again.
 * 0 · -errno. */
int client_register(uint32_t gpu, uint64_t used_bytes, uint32_t load, ClientRecord *ret,
                char ret_path[static 96]);
int client_update(const char *path, ClientRecord *record);

/* Removes what processes that ended a while ago have left, after calling `fold` for each; for root. */
void clients_tidy(const TrayHeader *header, usec_t now,
                void (*fold)(const ClientRecord *record, void *userdata), void *userdata);
