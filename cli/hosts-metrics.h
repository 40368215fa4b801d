/* SPDX-License-Identifier: MIT */
/* The metrics of many trays as one text. */
#pragma once

#include <stdio.h>

/* Prometheus wants each metric once, with all its samples behind its "# HELP" and "# TYPE": those of all
 * texts are joined so. A text may lack some of them, or be empty. */
void metrics_merge(char *const *texts, size_t n, FILE *file);
