/* SPDX-License-Identifier: MIT */
#include "cli/complete.h"

#include "agent/base/text.h"
#include "agent/config/client-config.h"
#include "cli/gpu.h"

/* Nobody waits longer at a Tab. */
#define ANSWER_TIMEOUT_USEC (1 * USEC_PER_SEC)

static void print_gpus(const Tray *tray) {
        for (size_t i = 0; i < tray->n_gpus; i++)
                if (tray->gpus[i].index != UNKNOWN_U32)
                        print_line(stdout, "%u", tray->gpus[i].index);
        for (size_t i = 0; i < tray->n_gpus; i++)
                print_line(stdout, "%s", tray->gpus[i].uuid);
}

static bool is_first_of_partition(const Tray *tray, size_t i) {
        for (size_t j = 0; j < i; j++)
                if (streq(tray->gpus[j].partition_name, tray->gpus[i].partition_name))
                        return false;
        return tray->gpus[i].partition_name[0] != '\0';
}

static void print_partitions(const Tray *tray) {
        for (size_t i = 0; i < tray->n_gpus; i++)
                if (is_first_of_partition(tray, i))
                        print_line(stdout, "%s", tray->gpus[i].partition_name);
}

static void print_trays(const Options *options, const char *local) {
        CLEANUP(client_config_free_ptr) ClientConfig *config = NULL;
        CLEANUP(free_ptr) char *message = NULL;
        bool listed = false;

        if (client_config_load(options->config_path, &config, &message) >= 0)
                STRV_FOREACH (host, config->trays) {
                        print_line(stdout, "%s", *host);
                        listed = listed || streq(host_name(*host), local);
                }
        if (!listed && local[0] != '\0')
                print_line(stdout, "%s", local);
}

void complete_from_agent(const Options *options, const char *what) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(client_free_ptr) Client *client = NULL;
        CLEANUP(tray_done) Tray tray = {};
        Options quick = *options;
        bool answered;

        quick.timeout_usec = ANSWER_TIMEOUT_USEC;
        answered = client_open(&quick, &client, &failure) >= 0 && tray_read(client, &tray, &failure) >= 0;
        if (streq(what, "trays"))
                print_trays(options, answered ? tray.node_name : "");
        else if (answered && streq(what, "gpus"))
                print_gpus(&tray);
        else if (answered && streq(what, "partitions"))
                print_partitions(&tray);
}
