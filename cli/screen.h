/* SPDX-License-Identifier: MIT */
/* The terminal, while a view has all of it: the alternate screen, keys as they are pressed, no cursor. What
 * was there before is there again afterwards. */
#pragma once

#include <stddef.h>

#include "agent/base/cleanup.h"

typedef struct Screen Screen;

/* Takes the terminal. 0 and *ret · -ENOTTY where stdout is none, or one that cannot be drawn on ·
 * -ENOMEM. */
int screen_new(Screen **ret);

/* Gives it back. */
Screen* screen_free(Screen *screen);

DEFINE_CLEANUP(Screen, screen_free_ptr, screen_free)

/* Stops this process as Ctrl-Z does, with the terminal given back until it goes on. */
void screen_suspend(Screen *screen);

/* In characters; 80 by 24 if the terminal does not say. */
void screen_size(size_t *ret_columns, size_t *ret_rows);

/* Draws lines of printable ASCII in the place of what is there. Those that are too long are cut, and those
 * that are too many are left out. */
void screen_draw(const char *text);
