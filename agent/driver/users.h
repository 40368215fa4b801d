/* SPDX-License-Identifier: MIT */
/* Names of user ids, for people. They may come from a network, so they get a second; after that numbers must
 * do. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#define USER_NAME_SIZE 40

typedef struct UserName {
        uid_t uid;
        char name[USER_NAME_SIZE]; /* printable; the number where there is no name, or none came in time */
} UserName;

/* Names each of them. The array may still be used by a thread that hangs: it must live as long as the
 * process. */
void users_name(UserName *users, size_t n);
