/* SPDX-License-Identifier: MIT */
#include "agent/driver/users.h"

#include <pthread.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/base/text.h"

#define LOOKUP_SECONDS 1
#define ENTRY_SIZE     16384

typedef struct Lookup {
        UserName *users;
        size_t n;
        char (*names)[USER_NAME_SIZE];
        atomic_size_t done; /* so many names are there to be read */
} Lookup;

static void* lookup_run(void *userdata) {
        Lookup *lookup = userdata;
        char *buffer = malloc(ENTRY_SIZE);

        for (size_t i = 0; buffer && i < lookup->n; i++) {
                struct passwd entry, *found = NULL;

                if (getpwuid_r(lookup->users[i].uid, &entry, buffer, ENTRY_SIZE, &found) == 0 && found)
                        text_escape(found->pw_name, lookup->names[i], USER_NAME_SIZE);
                atomic_store(&lookup->done, i + 1);
        }
        free(buffer);
        return NULL;
}

void users_name(UserName *users, size_t n) {
        Lookup *lookup = calloc(1, sizeof *lookup);
        struct timespec until;
        pthread_t thread;
        bool ended = true;
        size_t done;

        for (size_t i = 0; i < n; i++)
                (void) snprintf(users[i].name, sizeof users[i].name, "%u", users[i].uid);
        if (!lookup)
                return;

        *lookup = (Lookup){ .users = users, .n = n, .names = calloc(n, sizeof *lookup->names) };
        if (lookup->names && pthread_create(&thread, NULL, lookup_run, lookup) == 0) {
                (void) clock_gettime(CLOCK_MONOTONIC, &until);
                until.tv_sec += LOOKUP_SECONDS;
                ended = pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until) == 0;

                done = atomic_load(&lookup->done);
                for (size_t i = 0; i < done; i++)
                        if (lookup->names[i][0])
                                memcpy(users[i].name, lookup->names[i], sizeof users[i].name);
        }

        if (!ended)
                return; /* the thread still writes there; this process has not long to live */
        free(lookup->names);
        free(lookup);
}
