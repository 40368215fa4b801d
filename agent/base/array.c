/* SPDX-License-Identifier: MIT */
#include "agent/base/array.h"

#include <stdlib.h>

void* array_grow(void *array, size_t n, size_t more, size_t size) {
        size_t wanted, room = 1;

        if (__builtin_add_overflow(n, more, &wanted))
                return NULL;
        while (room < wanted)
                if (__builtin_mul_overflow(room, 2, &room))
                        return NULL;
        return reallocarray(array, room, size);
}
