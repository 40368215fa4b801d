/* SPDX-License-Identifier: MIT */
/* NRI's messages, packed and unpacked within bounds; and what they say of containers. */
#pragma once

#include <google/protobuf-c/protobuf-c.h>

#include "cli/oci-rules.h"
#include "hooks/nri/nri.pb-c.h"
#include "hooks/nri/wire.h"

/* A message of its type, to be given to message_free(). NULL: it is none, or takes more memory than an
 * honest one. */
ProtobufCMessage* message_unpack(const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t n);

/* NULL does nothing. */
void message_free(ProtobufCMessage *message);

/* 0 and *ret · -ENOMEM. */
int message_pack(const ProtobufCMessage *message, WireBuffer *ret);

/* A pod alone, or a container of it, as OciContainer has it; `container` may be NULL. 0 and *ret (to be
 * given to oci_container_done) · -ENOMEM. */
int container_from_message(const Nri__Pod *pod, const Nri__Container *container, OciContainer *ret);
