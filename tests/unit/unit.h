/* SPDX-License-Identifier: MIT */
/* cmocka with what it wants to have included before it. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
