/* SPDX-License-Identifier: MIT */
/* cmocka with what it wants to have included before it. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* cmocka 2 wants the sign said, and 1 does not know it. */
#ifndef assert_uint_in_range
#define assert_uint_in_range assert_in_range
#endif
