/* SPDX-License-Identifier: MIT */
/* Times in microseconds, and the two clocks. The core takes times as arguments and never calls these. */
#pragma once

#include <stdint.h>
#include <time.h>

/* A span, or a point on CLOCK_MONOTONIC unless the name says realtime. */
typedef uint64_t usec_t;

#define USEC_PER_MSEC ((usec_t) 1000)
#define USEC_PER_SEC  ((usec_t) 1000000)
#define USEC_INFINITY ((usec_t) UINT64_MAX)

static inline usec_t clock_usec(clockid_t clock) {
        struct timespec now;

        (void) clock_gettime(clock, &now); /* cannot fail for a valid clock and pointer */
        return (usec_t) now.tv_sec * USEC_PER_SEC + (usec_t) now.tv_nsec / 1000;
}

static inline usec_t now_monotonic_usec(void) {
        return clock_usec(CLOCK_MONOTONIC);
}

static inline usec_t now_realtime_usec(void) {
        return clock_usec(CLOCK_REALTIME);
}

/* One moment on both clocks, as the core is given it: deadlines run on the first, people read the second. */
typedef struct Now {
        usec_t monotonic_usec;
        usec_t realtime_usec;
} Now;

static inline Now now_read(void) {
        return (Now){ .monotonic_usec = now_monotonic_usec(), .realtime_usec = now_realtime_usec() };
}

/* The sum, or USEC_INFINITY where it does not fit. */
static inline usec_t usec_add(usec_t a, usec_t b) {
        return a > USEC_INFINITY - b ? USEC_INFINITY : a + b;
}
