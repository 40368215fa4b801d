/* SPDX-License-Identifier: MIT */
/* A text that is written like a file. */
#pragma once

#include <stdio.h>

/* Zero at first. */
typedef struct TextStream {
        FILE *file;
        char *text; /* what there is of it when the file was flushed last */
        size_t size;
} TextStream;

/* The file to write to; NULL without memory. */
FILE* text_stream_open(TextStream *stream);

/* Ends the text: all of it is there, and stays the stream's. 0 · -ENOMEM. */
int text_stream_end(TextStream *stream);

/* The same, and hands it over. 0 and *ret (to be freed) · -ENOMEM. */
int text_stream_take(TextStream *stream, char **ret);

void text_stream_done(TextStream *stream);
