/* SPDX-License-Identifier: MIT */
/* Preloaded into a program, shows it a time of day that is off by the seconds in /run/tray/clock, which may
 * change at any time: the clock is set under it. Only CLOCK_REALTIME: that is what an administrator, NTP or
 * an empty battery changes; spans and timers of the kernel's go by the monotonic one. The clock of the
 * machine stays as it is. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define OFFSET_PATH "/run/tray/clock"
#define OFFSET_SIZE 24 /* a number, and blanks up to here */

static const char *offset;

/* Mapped, not opened each time: programs close what they do not know, and are confined. */
__attribute__((constructor)) static void map_offset(void) {
        int fd = open(OFFSET_PATH, O_RDONLY | O_CLOEXEC);
        const void *map;

        if (fd < 0)
                return;
        map = mmap(NULL, OFFSET_SIZE, PROT_READ, MAP_SHARED, fd, 0);
        if (map != MAP_FAILED)
                offset = map;
        (void) close(fd);
}

int clock_gettime(clockid_t clock, struct timespec *ret) {
        long r = syscall(SYS_clock_gettime, clock, ret);

        if (r == 0 && offset && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
                ret->tv_sec += strtol(offset, NULL, 10);
        return (int) r;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone) {
        struct timespec now;

        (void) zone; /* obsolete */
        (void) clock_gettime(CLOCK_REALTIME, &now);
        *ret = (struct timeval){ .tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000 };
        return 0;
}

time_t time(time_t *ret) {
        struct timespec now;

        (void) clock_gettime(CLOCK_REALTIME, &now);
        if (ret)
                *ret = now.tv_sec;
        return now.tv_sec;
}
