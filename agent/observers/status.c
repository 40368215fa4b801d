/* SPDX-License-Identifier: MIT */
#include "agent/observers/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-daemon.h>

#include "agent/base/text.h"

#define LINE_SIZE 128

struct Status {
        Manager *manager;
        bool ready;
        char told[LINE_SIZE];
};

static void print_line(const Manager *manager, char *ret, size_t size) {
        DriverState driver = manager_driver_state(manager);
        uint32_t quarantined = manager_quarantined(manager);
        char quarantine[32] = "", trouble[48] = "";
        size_t n;

        (void) manager_gpus(manager, &n);
        if (quarantined > 0)
                (void) snprintf(quarantine, sizeof quarantine, ", %u quarantined", quarantined);
        if (manager_maintenance(manager))
                (void) snprintf(trouble, sizeof trouble, ", maintenance");
        else if (driver != DRIVER_OK)
                (void) snprintf(trouble, sizeof trouble, ", driver %s", driver_state_to_string(driver));
        (void) snprintf(ret, size, "%zu GPU%s%s%s", n, n == 1 ? "" : "s", quarantine, trouble);
}

static void tell(Status *status) {
        char line[LINE_SIZE];

        if (!status->ready)
                return;
        print_line(status->manager, line, sizeof line);
        if (streq(line, status->told))
                return;
        (void) snprintf(status->told, sizeof status->told, "%s", line);
        (void) sd_notifyf(0, "STATUS=%s", line); /* nobody listens outside a service */
}

static void on_gpu_added(Gpu *gpu, void *userdata) {
        tell(userdata);
}

static void on_gpu_removed(Gpu *gpu, void *userdata) {
        tell(userdata);
}

static void on_manager_changed(uint32_t changes, void *userdata) {
        tell(userdata);
}

void status_ready(Status *status) {
        if (status->ready)
                return;
        status->ready = true;
        (void) sd_notify(0, "READY=1");
        tell(status);
}

int status_new(Manager *manager, Status **ret) {
        CLEANUP(status_free_ptr) Status *status = NULL;
        ManagerObserver observer = { .on_gpu_added = on_gpu_added,
                .on_gpu_removed = on_gpu_removed,
                .on_manager_changed = on_manager_changed };
        int r;

        status = calloc(1, sizeof *status);
        if (!status)
                return -ENOMEM;
        status->manager = manager;

        observer.userdata = status;
        r = manager_add_observer(manager, &observer);
        if (r < 0)
                return r;

        *ret = take_ptr(&status);
        return 0;
}

Status* status_free(Status *status) {
        free(status);
        return NULL;
}
