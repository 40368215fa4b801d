/* SPDX-License-Identifier: MIT */
#include "cli/screen.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "agent/base/text.h"

/* The sequences that every terminal since the VT220 knows, and xterm's for the alternate screen. */
#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[?25h\033[?1049l"

struct Screen {
        bool keys; /* stdin is the terminal, too */
        struct termios saved;
};

static void screen_enter(Screen *screen) {
        struct termios raw;

        screen->keys = tcgetattr(STDIN_FILENO, &screen->saved) == 0;
        if (screen->keys) {
                raw = screen->saved;
                raw.c_lflag &= ~(tcflag_t) (ICANON | ECHO);
                (void) tcsetattr(STDIN_FILENO, TCSANOW, &raw);
        }
        (void) fputs(ENTER, stdout);
        (void) fflush(stdout);
}

static void screen_leave(Screen *screen) {
        (void) fputs(LEAVE, stdout);
        (void) fflush(stdout);
        if (screen->keys)
                (void) tcsetattr(STDIN_FILENO, TCSAFLUSH, &screen->saved);
}

int screen_new(Screen **ret) {
        const char *terminal = getenv("TERM");
        Screen *screen;

        if (!isatty(STDOUT_FILENO) || !terminal || streq(terminal, "dumb"))
                return -ENOTTY;
        screen = calloc(1, sizeof *screen);
        if (!screen)
                return -ENOMEM;

        screen_enter(screen);
        *ret = screen;
        return 0;
}

Screen* screen_free(Screen *screen) {
        if (!screen)
                return NULL;
        screen_leave(screen);
        free(screen);
        return NULL;
}

void screen_suspend(Screen *screen) {
        screen_leave(screen);
        (void) raise(SIGSTOP);
        screen_enter(screen);
}

void screen_size(size_t *ret_columns, size_t *ret_rows) {
        struct winsize size = {};

        (void) ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
        *ret_columns = size.ws_col > 0 ? size.ws_col : 80;
        *ret_rows = size.ws_row > 0 ? size.ws_row : 24;
}

void screen_draw(const char *text) {
        size_t columns, rows;

        screen_size(&columns, &rows);
        (void) fputs("\033[H", stdout);
        for (size_t row = 0; row < rows && *text != '\0'; row++) {
                size_t length = strcspn(text, "\n");

                /* No newline behind the last row: it would move all of them up. */
                (void) printf("%s%.*s\033[K", row > 0 ? "\n" : "",
                                (int) (length < columns ? length : columns), text);
                text += length + (text[length] == '\n');
        }
        (void) fputs("\033[J", stdout);
        (void) fflush(stdout);
}
