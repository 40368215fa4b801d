/* SPDX-License-Identifier: MIT */
/* slurm.conf, as the check of it reads it. */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <string.h>

#include "cli/slurm-conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        CLEANUP(slurm_conf_done) SlurmConf conf = {};
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(free_ptr) char *text = strndup((const char *) data, size);

        if (!text)
                return 0;
        if (slurm_conf_parse(&conf, "/nowhere/slurm.conf", text, &failure) < 0)
                assert(failure.message);
        for (size_t i = 0; i < conf.n; i++) {
                assert(conf.settings[i].line > 0);
                assert(!strpbrk(conf.settings[i].key, "= \t\n"));
                assert(slurm_conf_get(&conf, conf.settings[i].key));
        }
        return 0;
}
