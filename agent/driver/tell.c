/* SPDX-License-Identifier: MIT */
#include "agent/driver/tell.h"

#include <syslog.h>

#include "agent/base/text.h"
#include "agent/log/journal.h"
#include "agent/log/message-ids.h"

static const struct {
        const char *message_id, *result;
        int priority;
} deeds[_TASK_KIND_MAX] = {
        [TASK_LEFTOVERS] = { MESSAGE_ID_LEFTOVERS_ENDED, "ended", LOG_WARNING },
        [TASK_QUIESCE] = { MESSAGE_ID_QUIESCED, "stopped", LOG_INFO },
        [TASK_RESUME] = { MESSAGE_ID_QUIESCED, "started", LOG_INFO },
};

bool tell_deed(char **uuids, char **tenants, const Answer *answer) {
        JournalEntry entry;

        if (!deeds[answer->kind].message_id)
                return false;
        if (!answer->warning[0])
                return true;
        journal_begin(&entry, deeds[answer->kind].message_id, deeds[answer->kind].priority,
                        "gpuagent-driver");
        journal_add(&entry, "MESSAGE", answer->warning);
        STRV_FOREACH (uuid, uuids)
                journal_add(&entry, "GPUAGENT_GPU", *uuid);
        STRV_FOREACH (tenant, tenants)
                journal_add(&entry, "GPUAGENT_TENANT", *tenant);
        journal_add(&entry, "GPUAGENT_RESULT", deeds[answer->kind].result);
        journal_send(&entry);
        return true;
}
