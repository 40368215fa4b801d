/* SPDX-License-Identifier: MIT */
/* What a fuzz target has: the function that libFuzzer, or replay.c, calls with each input. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Always 0. A mistake is found by a sanitizer or an assertion. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
