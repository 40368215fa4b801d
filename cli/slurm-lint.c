/* SPDX-License-Identifier: MIT */
#include "cli/slurm-lint.h"

#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "agent/base/io.h"
#include "agent/base/parse.h"
#include "agent/base/sample.h"
#include "agent/base/text.h"

/* What a handover may take where a GPU is in use and the fabric is slow. */
#define LONG_ENOUGH_SEC 300U

#define SCRIPT_SIZE_MAX (1 << 20)

typedef enum Severity {
        SEVERITY_ERROR,
        SEVERITY_WARNING,
} Severity;

/* One of ours that slurmd runs. */
typedef struct Script {
        const char *key, *name;
        const char *without; /* what follows where it is not run */
} Script;

static const Script prolog_script = { "Prolog", "prolog", "no job is kept from a GPU that is not clean" };
static const Script epilog_script = { "Epilog", "epilog",
        "nothing resets what a job leaves behind, until the next prolog does" };

PRINTF_FORMAT(4, 5)
static void find(SlurmLint *lint, Severity severity, const SlurmSetting *setting, const char *format, ...) {
        const char *file = setting ? setting->file : lint->path,
                   *severity_name = severity == SEVERITY_ERROR ? "error" : "warning";
        CLEANUP(free_ptr) char *text = NULL;
        va_list arguments;
        char line[16] = "";
        int n;

        (*(severity == SEVERITY_ERROR ? &lint->errors : &lint->warnings))++;
        va_start(arguments, format);
        n = vasprintf(&text, format, arguments);
        va_end(arguments);
        if (n < 0)
                text = NULL;
        if (lint->output) {
                if (setting)
                        (void) snprintf(line, sizeof line, ":%u", setting->line);
                print_line(lint->output, "%s%s: %s: %s", file, line, severity_name, text ?: "out of memory");
                return;
        }
        table_add_string(lint->table, file);
        table_add_u32(lint->table, setting ? setting->line : UNKNOWN_U32);
        table_add_string(lint->table, severity_name);
        table_add_string(lint->table, text ?: "out of memory");
}

/* Whether the word is in a list with commas between, in any spelling. */
static bool list_has(const SlurmSetting *setting, const char *word) {
        const char *list = setting ? setting->value : "";

        while (*list != '\0') {
                size_t n = strcspn(list, ",");

                if (n == strlen(word) && strncasecmp(list, word, n) == 0)
                        return true;
                list += n + (list[n] == ',');
        }
        return false;
}

/* Whether the program is our script, or one of the site's that runs it. */
static bool runs_ours(const SlurmLint *lint, const char *path, const Script *script) {
        CLEANUP(free_ptr) char *real = realpath(path, NULL), *text = NULL;
        char ours[PATH_MAX], verb[64];

        (void) snprintf(ours, sizeof ours, "%s/%s", lint->scripts, script->name);
        (void) snprintf(verb, sizeof verb, "gpuagentctl slurm-%s", script->name);
        if (streq(path, ours) || (real && streq(real, ours)))
                return true;
        if (file_read(AT_FDCWD, path, SCRIPT_SIZE_MAX, &text, NULL) < 0)
                return false;
        return strstr(text, ours) || strstr(text, verb);
}

/* One path or pattern of the setting. true: ours is run by it. */
static bool lint_program(
                SlurmLint *lint, const SlurmSetting *setting, const char *path, const Script *script) {
        bool pattern = strpbrk(path, "*?[") != NULL, ours = false;
        glob_t found = {};

        if (path[0] != '/') {
                find(lint, SEVERITY_WARNING, setting, "%s=%s is no absolute path", setting->key, path);
                return false;
        }
        if (glob(path, pattern ? 0 : GLOB_NOCHECK, NULL, &found) != 0) {
                if (lint->runs_jobs)
                        find(lint, SEVERITY_ERROR, setting,
                                        "%s=%s matches no file here, with which each job fails and drains "
                                        "its node",
                                        setting->key, path);
                return false;
        }
        for (size_t i = 0; i < found.gl_pathc; i++) {
                if (lint->runs_jobs && access(found.gl_pathv[i], X_OK) < 0)
                        find(lint, SEVERITY_ERROR, setting,
                                        "%s cannot be run here, with which each job fails and drains its "
                                        "node",
                                        found.gl_pathv[i]);
                ours |= runs_ours(lint, found.gl_pathv[i], script);
        }
        globfree(&found);
        return ours;
}

/* Several of them may be set, since Slurm 24.11. */
static void lint_script(SlurmLint *lint, const Script *script) {
        const SlurmSetting *last = NULL;
        bool ours = false;

        for (size_t i = 0; i < lint->slurm->n; i++) {
                const SlurmSetting *setting = &lint->slurm->settings[i];
                CLEANUP(strv_free_ptr) char **paths = NULL;

                if (strcasecmp(setting->key, script->key) != 0)
                        continue;
                last = setting;
                if (list_parse(setting->value, &paths) < 0)
                        continue;
                STRV_FOREACH (path, paths)
                        ours |= lint_program(lint, setting, *path, script);
        }
        if (!ours)
                find(lint, SEVERITY_ERROR, last, "%s=%s/%s is not set: %s", script->key, lint->scripts,
                                script->name, script->without);
}

static void lint_prolog_flags(SlurmLint *lint) {
        const SlurmSetting *flags = slurm_conf_get(lint->slurm, "PrologFlags");

        if (!list_has(flags, "Contain"))
                find(lint, SEVERITY_WARNING, flags,
                                "PrologFlags has no Contain: the lease of a job whose epilog was lost "
                                "stands until somebody ends it");
        if (!list_has(flags, "Alloc") && !list_has(flags, "Contain"))
                find(lint, SEVERITY_ERROR, flags,
                                "PrologFlags has no Alloc: an allocated GPU is booked with the first step, "
                                "and until then by nobody");
        if (list_has(flags, "RunInJob"))
                find(lint, SEVERITY_WARNING, flags,
                                "PrologFlags has RunInJob: an epilog is killed with the processes of its "
                                "job");
}

static void lint_timeout(SlurmLint *lint, const char *key, const char *what) {
        const SlurmSetting *setting = slurm_conf_get(lint->slurm, key);
        uint32_t seconds;

        if (!setting || parse_u32(setting->value, UINT32_MAX, &seconds) < 0 || seconds == 0 ||
                        seconds == UINT16_MAX || seconds >= LONG_ENOUGH_SEC)
                return;
        find(lint, SEVERITY_WARNING, setting, "%s=%u is less than the %u s that a handover may take: %s",
                        setting->key, seconds, LONG_ENOUGH_SEC, what);
}

static void lint_timeouts(SlurmLint *lint) {
        static const char *const keys[] = { "PrologTimeout", "EpilogTimeout", "PrologEpilogTimeout" };
        const SlurmSetting *batch = slurm_conf_get(lint->slurm, "BatchStartTimeout");

        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                lint_timeout(lint, keys[i], "a GPU that takes longer drains its node");
        if (batch)
                lint_timeout(lint, "BatchStartTimeout", "a batch job whose prolog takes longer is given up");
        else
                find(lint, SEVERITY_WARNING, NULL,
                                "BatchStartTimeout is not set: a batch job whose prolog takes more than "
                                "10 s is given up; BatchStartTimeout=%u",
                                LONG_ENOUGH_SEC);
}

/* What keeps the driver open for as long as slurmd runs, so that no reset is granted. Which Slurm reads
 * these files is not known: from 25.11 on it closes the driver once it has found the GPUs. */
static void lint_holders(SlurmLint *lint) {
        const SlurmSetting *energy = slurm_conf_get(lint->slurm, "AcctGatherEnergyType");

        for (size_t i = 0; lint->gres && i < lint->gres->n; i++)
                if (strcasecmp(lint->gres->settings[i].key, "AutoDetect") == 0 &&
                                strcasecmp(lint->gres->settings[i].value, "nvml") == 0)
                        find(lint, SEVERITY_WARNING, &lint->gres->settings[i],
                                        "AutoDetect=nvml: before Slurm 25.11 slurmd keeps the driver open, "
                                        "and no GPU can be reset; write the GPUs into gres.conf, as "
                                        "gpuagentctl gres prints them");
        if (energy && strcasestr(energy->value, "gpu"))
                find(lint, SEVERITY_ERROR, energy,
                                "AcctGatherEnergyType=%s: slurmd keeps the driver open, and no GPU can be "
                                "reset",
                                energy->value);
}

static void lint_rest(SlurmLint *lint) {
        const SlurmSetting *user = slurm_conf_get(lint->slurm, "SlurmdUser"),
                           *types = slurm_conf_get(lint->slurm, "GresTypes"),
                           *track = slurm_conf_get(lint->slurm, "ProctrackType"),
                           *back = slurm_conf_get(lint->slurm, "ReturnToService"),
                           *prolog = slurm_conf_get(lint->slurm, "Prolog");

        if (user && !streq(user->value, "root") && !streq(user->value, "0"))
                find(lint, SEVERITY_ERROR, user, "SlurmdUser=%s: the scripts have to run as root",
                                user->value);
        if (back && !streq(back->value, "0") && !prolog)
                find(lint, SEVERITY_ERROR, back,
                                "ReturnToService=%s without a prolog: a node that was down in the middle of "
                                "an epilog comes back with a GPU that is not clean",
                                back->value);
        if ((list_has(types, "shard") || list_has(types, "mps")) &&
                        lint->config->handover.shared != SHARED_COUNT)
                find(lint, SEVERITY_WARNING, types,
                                "GresTypes has shared GPUs, and handover.shared in gpuagentd.yaml is not "
                                "count: the second job on a GPU is refused");
        if (!track || !strcasestr(track->value, "cgroup"))
                find(lint, SEVERITY_WARNING, track,
                                "ProctrackType is not proctrack/cgroup: processes can leave their job, and "
                                "hold its GPUs after it");
        if (!slurm_conf_get(lint->slurm, "HealthCheckProgram"))
                find(lint, SEVERITY_WARNING, NULL,
                                "HealthCheckProgram is not set: a quarantined GPU is found by the next job; "
                                "HealthCheckProgram=%s/health",
                                lint->scripts);
}

/* Observed or switched off is no gate either. */
static void lint_agent(SlurmLint *lint) {
        if (lint->config->mode == AGENT_MODE_OBSERVE)
                find(lint, SEVERITY_WARNING, NULL,
                                "mode is observe in gpuagentd.yaml: no job is kept from a GPU that is not "
                                "clean");
        if (!lint->config->handover.reset)
                find(lint, SEVERITY_WARNING, NULL,
                                "handover.reset is false in gpuagentd.yaml: no GPU is reset between jobs");
}

void slurm_lint(SlurmLint *lint) {
        lint_script(lint, &prolog_script);
        lint_script(lint, &epilog_script);
        lint_prolog_flags(lint);
        lint_timeouts(lint);
        lint_holders(lint);
        lint_rest(lint);
        lint_agent(lint);
}
