/* SPDX-License-Identifier: MIT */
#include "agent/base/text-stream.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/base/cleanup.h"

FILE* text_stream_open(TextStream *stream) {
        stream->file = open_memstream(&stream->text, &stream->size);
        return stream->file;
}

int text_stream_end(TextStream *stream) {
        return fclose(take_ptr(&stream->file)) != 0 ? -ENOMEM : 0;
}

int text_stream_take(TextStream *stream, char **ret) {
        int r;

        r = text_stream_end(stream);
        if (r >= 0)
                *ret = take_ptr(&stream->text);
        return r;
}

/* The file comes first: what it has not written yet goes to the text when it is closed. */
void text_stream_done(TextStream *stream) {
        if (stream->file)
                (void) fclose(stream->file);
        free(stream->text);
        *stream = (TextStream){};
}
