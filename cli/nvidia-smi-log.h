/* SPDX-License-Identifier: MIT */
/* The lines of -q and the elements of -q -x: one table for both. */
#pragma once

#include "cli/nvidia-smi.h"

/* -d's words. */
enum {
        DISPLAY_MEMORY = 1 << 0,
        DISPLAY_UTILIZATION = 1 << 1,
        DISPLAY_ECC = 1 << 2,
        DISPLAY_TEMPERATURE = 1 << 3,
        DISPLAY_POWER = 1 << 4,
        DISPLAY_CLOCK = 1 << 5,
        DISPLAY_COMPUTE = 1 << 6,
        DISPLAY_PIDS = 1 << 7,
        DISPLAY_PERFORMANCE = 1 << 8,
        DISPLAY_PAGE_RETIREMENT = 1 << 9,
        DISPLAY_ACCOUNTING = 1 << 10,
        DISPLAY_ENCODER_STATS = 1 << 11,
        DISPLAY_FBC_STATS = 1 << 12,
        DISPLAY_ROW_REMAPPER = 1 << 13,
        DISPLAY_GSP_FIRMWARE = 1 << 14,
};

typedef enum LogKind {
        LOG_GROUP,     /* a heading for the deeper lines that follow */
        LOG_FIELD,     /* a property of --query-gpu, by its name in `value` */
        LOG_GET,       /* get(…, what, …) */
        LOG_TEXT,      /* `value` itself */
        LOG_PROCESSES, /* the processes on the GPU */
        LOG_CLOCKS,    /* XML only: the clocks that can be set */
} LogKind;

typedef struct LogLine {
        uint8_t depth; /* of its heading: 1 for the GPU's own lines */
        uint8_t kind;  /* LogKind */
        bool bare;     /* XML: without "0x" in front */
        uint16_t display;
        const char *label;   /* NULL: in XML only */
        const char *element; /* NULL: in the text only */
        const char *value;
        const char *unit; /* behind the value; NULL: the property's */
        void (*get)(const SmiGpu *gpu, unsigned what, char *ret, size_t size);
        unsigned what;
} LogLine;

extern const LogLine log_lines[];
extern const size_t n_log_lines;

/* The line's value with its unit. */
void log_line_read(const LogLine *line, const SmiGpu *gpu, char ret[static SMI_VALUE_SIZE]);
