/* SPDX-License-Identifier: MIT */
/* What an OCI runtime tells a hook: the container's state on stdin, and config.json in the bundle that this
 * names. Both are JSON and are read within bounds. */
#pragma once

#include "agent/base/clock.h"
#include "cli/oci-rules.h"
#include "cli/print.h"

/* A state is some hundred bytes with the annotations; a configuration has the container's environment. Both
 * grow by a factor of 50 when they are read. */
#define OCI_STATE_MAX  (1U << 20)
#define OCI_CONFIG_MAX (4U << 20)

/* Reads a state from a pipe or file. 0 and *ret (to be freed), *ret_size · negative, and *failure says
 * what is wrong: too long, or no end of it until the deadline (monotonic). */
int oci_state_read(int fd, usec_t deadline_usec, char **ret, size_t *ret_size, Failure *failure);

/* What the state says: id, pod, first process and bundle. 0, *ret (to be given to oci_container_done) and
 * *ret_bundle (to be freed) · negative, and *failure says what is wrong. */
int oci_state_parse(const char *text, size_t size, OciContainer *ret, char **ret_bundle, Failure *failure);

/* What config.json says goes into *container, in the bundle or as text. 0 · negative, and *failure says what
 * is wrong. */
int oci_config_read(const char *bundle, OciContainer *container, Failure *failure);
int oci_config_parse(const char *text, size_t size, OciContainer *container, Failure *failure);
