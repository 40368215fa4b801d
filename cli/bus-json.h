/* SPDX-License-Identifier: MIT */
/* Values of the bus as JSON. */
#pragma once

#include <json-c/json.h>
#include <systemd/sd-bus.h>

/* Reads the next value of the message, of any type: an array of dictionary entries with strings or paths as
 * keys becomes an object, other arrays and structs become arrays, a variant what is in it. 0 and *ret (to be
 * put; may be NULL for null) · negative errno. */
int json_from_message(sd_bus_message *message, json_object **ret);

/* Reads all that is left of a message's body into an array. As above. */
int json_from_arguments(sd_bus_message *message, json_object **ret);
