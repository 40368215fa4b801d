/* SPDX-License-Identifier: MIT */
/* gpuagentctl oci-spec: from the configuration that containerd gives containers by itself ("ctr oci
 * spec") to one with our hooks, for base_runtime_spec of a runtime. */
#include <errno.h>
#include <unistd.h>

#include "agent/base/io.h"
#include "agent/base/text.h"
#include "cli/json.h"
#include "cli/oci-bundle.h"
#include "cli/oci-stage.h"

#define HOOK PKGLIBDIR "/gpuagent-oci-hook"

/* Above oci.timeout, whose refusal says why; and what containerd gives an exit as a whole. */
#define PRESTART_TIMEOUT 110
#define POSTSTOP_TIMEOUT 10

/* 0 · -ENOMEM. */
static int hook_new(OciStage stage, json_object **ret) {
        CLEANUP(json_put_ptr) json_object *hook = json_object_new_object();
        json_object *args = json_object_new_array();
        int r;

        r = json_set(hook, "args", args);
        if (r >= 0)
                r = json_set(hook, "path", json_object_new_string(HOOK));
        if (r >= 0)
                r = json_set(hook, "timeout",
                                json_object_new_int(stage == OCI_PRESTART ? PRESTART_TIMEOUT
                                                                          : POSTSTOP_TIMEOUT));
        if (r < 0 || json_object_array_add(args, json_object_new_string("gpuagent-oci-hook")) < 0 ||
                        json_object_array_add(args, json_object_new_string(oci_stage_to_string(stage))) < 0)
                return -ENOMEM;
        *ret = take_ptr(&hook);
        return 0;
}

static bool is_ours(json_object *hook) {
        json_object *path = NULL;

        return json_object_is_type(hook, json_type_object) &&
                        json_object_object_get_ex(hook, "path", &path) &&
                        json_object_is_type(path, json_type_string) &&
                        streq(json_object_get_string(path), HOOK);
}

/* Puts ours before the hooks that are there: NVIDIA's opens the GPUs. 0 · -ENOMEM. */
static int add_hook(json_object *hooks, OciStage stage) {
        json_object *others = NULL, *list = json_object_new_array(), *hook = NULL;
        int r;

        r = hook_new(stage, &hook);
        if (r >= 0 && (!list || json_object_array_add(list, hook) < 0)) {
                (void) json_object_put(hook);
                r = -ENOMEM;
        }
        if (json_object_object_get_ex(hooks, oci_stage_to_string(stage), &others) &&
                        json_object_is_type(others, json_type_array))
                for (size_t i = 0; r >= 0 && i < json_object_array_length(others); i++) {
                        json_object *other = json_object_array_get_idx(others, i);

                        if (!is_ours(other) && json_object_array_add(list, json_object_get(other)) < 0)
                                r = -ENOMEM;
                }
        if (r < 0) {
                (void) json_object_put(list);
                return r;
        }
        return json_set(hooks, oci_stage_to_string(stage), list);
}

static void drop(json_object *spec, const char *part, const char *key) {
        json_object *object = NULL;

        if (json_object_object_get_ex(spec, part, &object) && json_object_is_type(object, json_type_object))
                json_object_object_del(object, key);
}

static int edit(json_object *spec) {
        json_object *hooks = NULL;
        int r = 0;

        /* What containerd takes out by itself for a pod, and leaves in where there is a
         * base_runtime_spec: the file limits of "ctr run", and profiles that a pod did not ask for. */
        drop(spec, "process", "rlimits");
        drop(spec, "process", "apparmorProfile");
        drop(spec, "linux", "seccomp");

        if (!json_object_object_get_ex(spec, "hooks", &hooks) ||
                        !json_object_is_type(hooks, json_type_object)) {
                hooks = json_object_new_object();
                r = json_set(spec, "hooks", hooks);
        }
        for (OciStage stage = 0; stage < _OCI_STAGE_MAX && r >= 0; stage++)
                r = add_hook(hooks, stage);
        return r;
}

int verb_oci_spec(const Options *options, int argc, char **argv) {
        CLEANUP(json_put_ptr) json_object *spec = NULL;
        CLEANUP(free_ptr) char *text = NULL;
        json_object *version = NULL;
        size_t size;
        int r;

        if (isatty(STDIN_FILENO))
                return fail_with(CLI_USAGE, "the output of \"ctr oci spec\" is wanted on stdin");
        r = fd_read_all(STDIN_FILENO, OCI_CONFIG_MAX, &text, &size);
        if (r >= 0)
                r = json_read_object(text, size, &spec);
        if (r == -EINVAL || (r >= 0 && !json_object_object_get_ex(spec, "ociVersion", &version)))
                return fail_with(CLI_FAILED, "what is on stdin is no output of \"ctr oci spec\"");
        if (r >= 0)
                r = edit(spec);
        if (r >= 0)
                r = json_print(spec, OUTPUT_JSON_PRETTY);
        if (r < 0)
                return fail_with(CLI_FAILED, "cannot edit the configuration: %s", strerror(-r));
        return CLI_DONE;
}
