/* SPDX-License-Identifier: MIT */
#include "agent/observers/xid.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-journal.h>

#include "agent/base/clock.h"
#include "agent/base/text.h"
#include "agent/log/log.h"

/* Everybody's journal entries wake the follower; once a second is enough to look for the kernel's. */
#define WAKE_INTERVAL_USEC USEC_PER_SEC
#define WAKE_BURST         2

/* A turn of the loop reads so many, so that a flood of messages does not keep it. */
#define ENTRIES_PER_TURN 500

struct XidWatch {
        Manager *manager;
        sd_journal *journal;
        sd_event_source *source;
        sd_event_source *more; /* there was more to read in the last turn */
};

int xid_parse(const char *line, char ret_bus_id[static GPU_BUS_ID_SIZE], uint32_t *ret_xid) {
        const char *id = startswith(line, "NVRM: Xid (PCI:"), *end, *number;
        char bus_id[GPU_BUS_ID_SIZE], digits[12];
        uint32_t xid;
        size_t n;
        int r;

        end = id ? strchr(id, ')') : NULL;
        number = end ? startswith(end, "): ") : NULL;
        if (!number)
                return -EINVAL;

        /* The module leaves the function out: a GPU is always function 0. */
        n = (size_t) (end - id);
        if (n + 2 >= sizeof bus_id)
                return -EINVAL;
        (void) snprintf(bus_id, sizeof bus_id, "%.*s%s", (int) n, id, memchr(id, '.', n) ? "" : ".0");

        n = strspn(number, "0123456789");
        if (n == 0 || n >= sizeof digits)
                return -EINVAL;
        (void) snprintf(digits, sizeof digits, "%.*s", (int) n, number);
        r = parse_u32(digits, UINT32_MAX - 1, &xid);
        if (r < 0)
                return -EINVAL;
        r = bus_id_parse(bus_id, ret_bus_id);
        if (r < 0)
                return r;

        *ret_xid = xid;
        return 0;
}

static void take_entry(XidWatch *watch) {
        char bus_id[GPU_BUS_ID_SIZE], line[256];
        const char *message;
        const void *data;
        uint32_t xid;
        size_t size;

        if (sd_journal_get_data(watch->journal, "MESSAGE", &data, &size) < 0)
                return;
        (void) snprintf(line, sizeof line, "%.*s", (int) (size < sizeof line ? size : sizeof line - 1),
                        (const char *) data);
        message = startswith(line, "MESSAGE=");
        if (message && xid_parse(message, bus_id, &xid) >= 0)
                manager_set_xid(watch->manager, bus_id, xid, now_read());
}

static void read_on(XidWatch *watch) {
        for (unsigned i = 0; i < ENTRIES_PER_TURN; i++) {
                if (sd_journal_next(watch->journal) <= 0)
                        return;
                take_entry(watch);
        }
        (void) sd_event_source_set_enabled(watch->more, SD_EVENT_ONESHOT);
}

static int on_more(sd_event_source *source, void *userdata) {
        read_on(userdata);
        return 0;
}

static int on_journal(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        XidWatch *watch = userdata;
        int r;

        r = sd_journal_process(watch->journal);
        if (r < 0) {
                (void) log_errno(r, "The journal cannot be followed any more: no Xids will be seen");
                return sd_event_source_set_enabled(source, SD_EVENT_OFF);
        }
        if (r != SD_JOURNAL_NOP)
                read_on(watch);
        return 0;
}

static int open_journal(sd_journal **ret) {
        sd_journal *journal = NULL;
        int r;

        /* Without SD_JOURNAL_SYSTEM: entries of the kernel that were brought in from elsewhere count too.
         * The transport is set by journald and cannot be forged. */
        r = sd_journal_open(&journal, SD_JOURNAL_LOCAL_ONLY);
        if (r < 0)
                return r;
        r = sd_journal_add_match(journal, "_TRANSPORT=kernel", 0);
        if (r >= 0)
                r = sd_journal_seek_tail(journal);
        if (r >= 0)
                r = sd_journal_previous(journal);
        if (r == 0) /* no message of the kernel yet: the first to come is the one after the head */
                r = sd_journal_seek_head(journal);
        if (r < 0) {
                sd_journal_close(journal);
                return r;
        }
        *ret = journal;
        return 0;
}

int xid_watch_new(sd_event *event, Manager *manager, XidWatch **ret) {
        CLEANUP(xid_watch_free_ptr) XidWatch *watch = NULL;
        int fd, r;

        watch = calloc(1, sizeof *watch);
        if (!watch)
                return -ENOMEM;
        watch->manager = manager;

        r = open_journal(&watch->journal);
        if (r < 0)
                return r;
        fd = sd_journal_get_fd(watch->journal);
        if (fd < 0)
                return fd;
        r = sd_event_add_io(event, &watch->source, fd, (uint32_t) sd_journal_get_events(watch->journal),
                        on_journal, watch);
        if (r >= 0)
                r = sd_event_source_set_ratelimit(watch->source, WAKE_INTERVAL_USEC, WAKE_BURST);
        if (r >= 0)
                r = sd_event_add_defer(event, &watch->more, on_more, watch);
        if (r < 0)
                return r;

        *ret = take_ptr(&watch);
        return 0;
}

XidWatch* xid_watch_free(XidWatch *watch) {
        if (!watch)
                return NULL;
        (void) sd_event_source_disable_unref(watch->source);
        (void) sd_event_source_disable_unref(watch->more);
        sd_journal_close(watch->journal);
        free(watch);
        return NULL;
}
