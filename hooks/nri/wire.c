/* SPDX-License-Identifier: MIT */
#include "hooks/nri/wire.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/array.h"

#define FRAME_HEADER   8U
#define MESSAGE_HEADER 10U

/* A frame of more than 4 KiB is the end of the connection for the Go side, which reads through a buffer of
 * that size. */
#define FRAME_DATA_MAX 2048U

static uint32_t read_u32(const uint8_t *data) {
        uint32_t value;

        memcpy(&value, data, sizeof value);
        return be32toh(value);
}

static void put_u32(uint8_t *data, uint32_t value) {
        value = htobe32(value);
        memcpy(data, &value, sizeof value);
}

void wire_buffer_done(WireBuffer *buffer) {
        free(buffer->data);
        *buffer = (WireBuffer){};
}

void wire_done(Wire *wire) {
        for (size_t i = 0; i < ELEMENTSOF(wire->buffers); i++)
                wire_buffer_done(&wire->buffers[i]);
}

static int buffer_append(WireBuffer *buffer, const void *data, size_t n) {
        int r;

        r = array_reserve(&buffer->data, buffer->n, n);
        if (r < 0)
                return r;
        if (n > 0)
                memcpy(buffer->data + buffer->n, data, n);
        buffer->n += n;
        return 0;
}

/* What was given out goes; a large buffer does not outlive the message that it was for. */
static void wire_discard_taken(Wire *wire) {
        for (size_t i = 0; i < ELEMENTSOF(wire->buffers); i++) {
                WireBuffer *buffer = &wire->buffers[i];

                buffer->n -= wire->n_taken[i];
                if (buffer->n == 0)
                        wire_buffer_done(buffer);
                else if (wire->n_taken[i] > 0)
                        memmove(buffer->data, buffer->data + wire->n_taken[i], buffer->n);
                wire->n_taken[i] = 0;
        }
}

int wire_feed(Wire *wire, const uint8_t *data, size_t n) {
        wire_discard_taken(wire);
        while (n > 0) {
                size_t take;
                int r;

                if (wire->n_missing == 0) {
                        wire->header[wire->n_header++] = *data++;
                        n--;
                        if (wire->n_header < sizeof wire->header)
                                continue;
                        wire->n_header = 0;
                        wire->connection = read_u32(wire->header);
                        wire->n_missing = read_u32(wire->header + 4);
                        if (wire->connection != WIRE_PLUGIN && wire->connection != WIRE_RUNTIME)
                                return -EBADMSG;
                        continue;
                }
                take = n < wire->n_missing ? n : wire->n_missing;
                r = buffer_append(&wire->buffers[wire->connection - 1], data, take);
                if (r < 0)
                        return r;
                wire->n_missing -= (uint32_t) take;
                data += take;
                n -= take;
        }
        return 0;
}

int wire_next(Wire *wire, WireMessage *ret) {
        for (uint32_t i = 0; i < ELEMENTSOF(wire->buffers); i++) {
                size_t n = wire->buffers[i].n - wire->n_taken[i];
                const uint8_t *data;
                uint32_t length;

                if (n < MESSAGE_HEADER)
                        continue;
                data = wire->buffers[i].data + wire->n_taken[i];
                length = read_u32(data);
                if (length > WIRE_DATA_MAX)
                        return -EBADMSG;
                if (n < MESSAGE_HEADER + length)
                        continue;
                *ret = (WireMessage){ .connection = i + 1,
                        .stream = read_u32(data + 4),
                        .type = data[8],
                        .data = data + MESSAGE_HEADER,
                        .n = length };
                wire->n_taken[i] += MESSAGE_HEADER + length;
                return 1;
        }
        return 0;
}

int wire_write(WireBuffer *buffer, const WireMessage *message) {
        CLEANUP(wire_buffer_done) WireBuffer whole = {};
        uint8_t header[MESSAGE_HEADER] = {};
        int r;

        if (message->n > WIRE_DATA_MAX)
                return -EMSGSIZE;
        put_u32(header, (uint32_t) message->n);
        put_u32(header + 4, message->stream);
        header[8] = message->type;
        r = buffer_append(&whole, header, sizeof header);
        if (r >= 0)
                r = buffer_append(&whole, message->data, message->n);

        for (size_t at = 0; r >= 0 && at < whole.n; at += FRAME_DATA_MAX) {
                size_t n = whole.n - at < FRAME_DATA_MAX ? whole.n - at : FRAME_DATA_MAX;
                uint8_t frame[FRAME_HEADER];

                put_u32(frame, message->connection);
                put_u32(frame + 4, (uint32_t) n);
                r = buffer_append(buffer, frame, sizeof frame);
                if (r >= 0)
                        r = buffer_append(buffer, whole.data + at, n);
        }
        return r;
}
