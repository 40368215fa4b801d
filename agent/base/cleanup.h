/* SPDX-License-Identifier: MIT */
/* Ownership in scopes: f(&variable) releases a variable marked CLEANUP(f) when it goes out of scope. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#define CLEANUP(function)          __attribute__((cleanup(function)))
#define PRINTF_FORMAT(text, first) __attribute__((format(printf, text, first)))

#define ELEMENTSOF(array) (sizeof(array) / sizeof((array)[0]))

/* Hands a pointer on: take_ptr(&variable) is its value, and the variable is NULL afterwards. */
#define take_ptr(variable)                          \
        ({                                          \
                __auto_type _variable = (variable); \
                __auto_type _value = *_variable;    \
                *_variable = NULL;                  \
                _value;                             \
        })

/* Makes name(Type **pointer) from free_function(Type *), to be used with CLEANUP. */
#define DEFINE_CLEANUP(Type, name, free_function)       \
        static inline void name(Type **pointer) {       \
                if (*pointer)                           \
                        (void) free_function(*pointer); \
        }

static inline void free_ptr(void *pointer) {
        free(*(void **) pointer);
}

static inline void file_close(FILE **file) {
        if (*file)
                (void) fclose(*file);
}
