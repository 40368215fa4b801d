/* SPDX-License-Identifier: MIT */
#include "agent/emulation/clients.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/array.h"
#include "agent/base/io.h"

#define CLIENT_MAGIC "gpuaclnt"
#define CLIENTS_MAX  2048
/* Somebody may fill the folder with litter; nobody waits for the end of that. */
#define ENTRIES_MAX 65536
/* A GPU that worked is warm for a while; after that its registration says nothing any more. */
#define CLIENT_AFTERGLOW_USEC (300 * USEC_PER_SEC)

DEFINE_CLEANUP(DIR, directory_close, closedir)

/* The process's start time from /proc/PID/stat (proc(5), field 22). 0 · -ESRCH. */
static int process_start_time(pid_t pid, uint64_t *ret) {
        CLEANUP(free_ptr) char *text = NULL;
        char path[40], *p;
        unsigned long long start;

        (void) snprintf(path, sizeof path, "/proc/%d/stat", (int) pid);
        if (file_read(AT_FDCWD, path, 4096, &text, NULL) < 0)
                return -ESRCH;
        p = strrchr(text, ')'); /* the name in front of it may hold anything */
        if (!p ||
                        sscanf(p + 1,
                                        " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
                                        "%*d %*d %*d %llu",
                                        &start) != 1)
                return -ESRCH;
        *ret = start;
        return 0;
}

static bool process_is(const ClientRecord *record, uid_t owner) {
        struct stat st;
        char path[32];
        uint64_t start;

        (void) snprintf(path, sizeof path, "/proc/%d", record->pid);
        return record->pid > 0 && stat(path, &st) >= 0 && st.st_uid == owner &&
                        process_start_time(record->pid, &start) >= 0 && start == record->start_time;
}

static bool client_read(int dir_fd, const char *name, const TrayHeader *header, usec_t now, Client *ret) {
        CLEANUP(fd_close) int fd = -1;
        Client client = {};
        struct stat st;

        fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return false;
        if (pread(fd, &client.record, sizeof client.record, 0) != (ssize_t) sizeof client.record ||
                        memcmp(client.record.magic, CLIENT_MAGIC, sizeof client.record.magic) != 0 ||
                        client.record.gpu >= header->n_gpus)
                return false;

        if (client.record.load > 100)
                client.record.load = 100;
        if (client.record.used_bytes > header->model.memory_total)
                client.record.used_bytes = header->model.memory_total;
        client.alive = process_is(&client.record, st.st_uid);
        if (client.alive || client.record.until_usec > now)
                client.record.until_usec = now;
        if (client.record.since_usec < header->boot_usec)
                client.record.since_usec = header->boot_usec;
        if (client.record.since_usec > client.record.until_usec)
                client.record.since_usec = client.record.until_usec;

        client.file = st.st_ino;
        *ret = client;
        return true;
}

int clients_read(const TrayHeader *header, usec_t now, Clients *ret) {
        CLEANUP(directory_close) DIR *directory = NULL;
        CLEANUP(clients_done) Clients clients = {};
        const struct dirent *entry;
        size_t n = 0;
        int r;

        directory = opendir(TRAY_CLIENTS_DIRECTORY);
        while (directory && clients.n < CLIENTS_MAX && n++ < ENTRIES_MAX && (entry = readdir(directory))) {
                if (entry->d_name[0] == '.')
                        continue;
                r = array_reserve(&clients.items, clients.n, 1);
                if (r < 0)
                        return r;
                if (client_read(dirfd(directory), entry->d_name, header, now, &clients.items[clients.n]))
                        clients.n++;
        }

        *ret = clients;
        clients = (Clients){};
        return 0;
}

void clients_done(Clients *clients) {
        free(clients->items);
        *clients = (Clients){};
}

uint64_t clients_used_bytes(const Clients *clients, uint32_t gpu) {
        uint64_t sum = 0;

        for (size_t i = 0; i < clients->n; i++)
                if (clients->items[i].alive && clients->items[i].record.gpu == gpu)
                        sum += clients->items[i].record.used_bytes;
        return sum;
}

const Client* clients_find(const Clients *clients, pid_t pid, uint32_t gpu) {
        for (size_t i = 0; i < clients->n; i++)
                if (clients->items[i].alive && clients->items[i].record.pid == pid &&
                                clients->items[i].record.gpu == gpu)
                        return &clients->items[i];
        return NULL;
}

int client_update(const char *path, ClientRecord *record) {
        CLEANUP(fd_close) int fd = -1;
        ssize_t n;

        record->until_usec = now_monotonic_usec();
        fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return -errno;
        n = pwrite(fd, record, sizeof *record, 0);
        return n == (ssize_t) sizeof *record ? 0 : n < 0 ? -errno : -EIO;
}

int client_register(uint32_t gpu, uint64_t used_bytes, uint32_t load, ClientRecord *ret,
                char ret_path[static 96]) {
        CLEANUP(fd_close) int fd = -1;
        ClientRecord record = { .pid = getpid(), .gpu = gpu, .used_bytes = used_bytes, .load = load };
        char path[96];
        int r;

        memcpy(record.magic, CLIENT_MAGIC, sizeof record.magic);
        r = process_start_time(record.pid, &record.start_time);
        if (r < 0)
                return r;

        /* A name that nobody can have taken before us. */
        (void) snprintf(path, sizeof path, TRAY_CLIENTS_DIRECTORY "/%d-%u.XXXXXX", record.pid, gpu);
        fd = mkostemp(path, O_CLOEXEC);
        if (fd < 0)
                return -errno;
        if (fchmod(fd, 0644) < 0)
                return -errno;

        record.since_usec = now_monotonic_usec();
        r = client_update(path, &record);
        if (r < 0)
                return r;
        *ret = record;
        memcpy(ret_path, path, sizeof path);
        return 0;
}

void clients_tidy(const TrayHeader *header, usec_t now,
                void (*fold)(const ClientRecord *record, void *userdata), void *userdata) {
        CLEANUP(directory_close) DIR *directory = NULL;
        const struct dirent *entry;

        directory = opendir(TRAY_CLIENTS_DIRECTORY);
        while (directory && (entry = readdir(directory))) {
                Client client;

                if (entry->d_name[0] == '.')
                        continue;
                if (client_read(dirfd(directory), entry->d_name, header, now, &client)) {
                        if (client.alive ||
                                        (client.record.load > 0 &&
                                                        usec_add(client.record.until_usec,
                                                                        CLIENT_AFTERGLOW_USEC) >= now))
                                continue;
                        fold(&client.record, userdata);
                }
                (void) unlinkat(dirfd(directory), entry->d_name, 0); /* what is no registration is litter */
        }
}
