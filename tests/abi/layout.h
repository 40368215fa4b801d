/* SPDX-License-Identifier: MIT */
/* The same table from two headers: ours, and the vendor's where it is installed. */
#pragma once

#include <stddef.h>

typedef struct Layout {
        const char *name;
        size_t size;
        size_t offsets[12];
        size_t n;
} Layout;

extern const Layout our_layouts[];
extern const size_t n_our_layouts;
extern const Layout their_layouts[];
extern const size_t n_their_layouts;

#define AT(Type, member) offsetof(Type, member)
#define LAYOUT(name, Type, n_, ...) \
        { name, sizeof(Type), { __VA_ARGS__ }, n_ }
