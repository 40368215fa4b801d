/* SPDX-License-Identifier: MIT */
/* Arrays that grow. Their owner keeps how many entries they have; what room they have follows from that. */
#pragma once

#include <errno.h>
#include <stddef.h>

/* realloc() to room for `more` entries of `size` bytes behind the first n. It goes by powers of two, so that
 * one at a time costs little. NULL: there is no such room, and the array is as it was. */
void* array_grow(void *array, size_t n, size_t more, size_t size);

/* Makes room for `more` entries behind the n of an array, wherever it goes: array_reserve(&entries, n, 1).
 * 0 · -ENOMEM, and the array is as it was. */
#define array_reserve(array, n, more)                                          \
        ({                                                                     \
                __auto_type _array = (array);                                  \
                void *_larger = array_grow(*_array, n, more, sizeof **_array); \
                if (_larger)                                                   \
                        *_array = _larger;                                     \
                _larger ? 0 : -ENOMEM;                                         \
        })
