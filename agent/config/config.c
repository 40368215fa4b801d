/* SPDX-License-Identifier: MIT */
#include "agent/config/config.h"
