/* SPDX-License-Identifier: MIT */
/* gpuagent-oci-hook: what container engines run for every container. Most of them have no GPU, and are
 * let pass by this program alone, which loads next to nothing; for the others it becomes gpuagentctl
 * oci-hook. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/base/io.h"
#include "cli/oci-bundle.h"
#include "cli/oci-stage.h"

/* Puts what was read from stdin back, and goes on as gpuagentctl. Returns only after a failure: -errno. */
static int go_on(OciStage stage, const char *state, size_t size) {
        CLEANUP(fd_close) int fd = memfd_create("state", MFD_CLOEXEC);
        int r;

        r = fd < 0 ? -errno : fd_write_all(fd, state, size);
        if (r < 0)
                return r;
        if (lseek(fd, 0, SEEK_SET) < 0 || dup2(fd, STDIN_FILENO) < 0)
                return -errno;
        oci_stage_hold();
        (void) execl(GPUAGENTCTL, "gpuagentctl", "oci-hook", oci_stage_to_string(stage), (char *) NULL);
        return -errno;
}

/* 0 the container has no GPU · negative, and *failure says what went wrong. */
static int run(OciStage stage, Failure *failure) {
        /* The widest: a site's configuration can only take GPUs away from these. */
        static const OciRules rules = { .nvidia_runtime = true };
        CLEANUP(oci_container_done) OciContainer container = {};
        CLEANUP(free_ptr) char *state = NULL, *bundle = NULL;
        CLEANUP(strv_free_ptr) char **gpus = NULL;
        size_t size;
        int r;

        r = oci_state_read(STDIN_FILENO, usec_add(now_monotonic_usec(), OCI_STATE_TIMEOUT_USEC), &state,
                        &size, failure);
        if (r >= 0)
                r = oci_state_parse(state, size, &container, &bundle, failure);
        if (r < 0)
                return r;
        r = oci_config_read(bundle, &container, failure);
        if (r >= 0) {
                r = oci_gpus(&container, &rules, &gpus);
                if (r == 0)
                        return 0;
        } else if (stage == OCI_PRESTART)
                return r;
        r = go_on(stage, state, size); /* the end of a container is not held up by what it says */
        return failure_errno(failure, r, "cannot run %s", GPUAGENTCTL);
}

int main(int argc, char **argv) {
        CLEANUP(failure_done) Failure failure = {};
        OciStage stage = argc == 2 ? oci_stage_parse(argv[1]) : _OCI_STAGE_INVALID;

        if (stage < 0)
                return fail_with(CLI_USAGE, "give one stage to gpuagent-oci-hook: prestart or poststop");
        oci_stage_begin(stage);
        if (run(stage, &failure) >= 0)
                return CLI_DONE;
        print_line(stderr, "gpuagent: %s", failure.message ?: "out of memory");
        return stage == OCI_POSTSTOP ? CLI_DONE : CLI_FAILED;
}
