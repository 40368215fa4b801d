/* SPDX-License-Identifier: MIT */
/* The two layers under NRI's messages: frames that share one socket between two connections (containerd/nri,
 * pkg/net/multiplex), and in each connection a stream of ttrpc messages (containerd/ttrpc, PROTOCOL.md). All
 * numbers are big-endian. A message may lie in several frames, and a frame may hold several messages. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "agent/base/cleanup.h"

/* The connections: calls of the runtime, and of the plugin. */
#define WIRE_PLUGIN  1U
#define WIRE_RUNTIME 2U

/* ttrpc's types of messages that we meet. */
#define WIRE_CALL   1U
#define WIRE_ANSWER 2U

/* ttrpc's own limit for the data of a message. */
#define WIRE_DATA_MAX (4U << 20)

typedef struct WireBuffer {
        uint8_t *data;
        size_t n;
} WireBuffer;

/* What was read of the socket. Zero at first. */
typedef struct Wire {
        uint8_t header[8]; /* of the frame that is being read */
        size_t n_header;
        uint32_t connection;   /* its connection */
        uint32_t n_missing;    /* and how much of it is still to come */
        WireBuffer buffers[2]; /* of the connections */
        size_t n_taken[2];     /* what wire_next() gave out of them */
} Wire;

typedef struct WireMessage {
        uint32_t connection;
        uint32_t stream; /* which call an answer is for */
        uint8_t type;
        const uint8_t *data; /* borrowed until the next wire_feed() */
        size_t n;
} WireMessage;

void wire_done(Wire *wire);
void wire_buffer_done(WireBuffer *buffer);

/* Takes in what was read. All messages have to be taken out by wire_next() before more is fed: it bounds
 * what is kept. 0 · -EBADMSG a connection that there is not, or a message that is too large · -ENOMEM: the
 * socket is of no use any more. */
int wire_feed(Wire *wire, const uint8_t *data, size_t n);

/* 1 and *ret · 0 there is no whole message · -EBADMSG as above. */
int wire_next(Wire *wire, WireMessage *ret);

/* Appends a message in frames that every reader takes. 0 · -EMSGSIZE · -ENOMEM. */
int wire_write(WireBuffer *buffer, const WireMessage *message);
