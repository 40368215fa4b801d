/* SPDX-License-Identifier: MIT */
/* The emulated tray's nvidia-smi: the vendor's tool as far as it can be told from its outputs (drivers 580
 * to 610), over the tray's state. What is not emulated prints as the vendor's tool prints what it cannot
 * read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "agent/base/cleanup.h"
#include "agent/driver/nvml-abi.h"
#include "agent/emulation/clients.h"
#include "agent/emulation/holders.h"
#include "agent/emulation/process.h"
#include "agent/emulation/telemetry.h"
#include "agent/emulation/tray.h"

/* Exit codes: the vendor's manual, NVML's numbers; 255 is the reset's own failure. */
enum {
        SMI_OK = 0,
        SMI_INVALID = 2,
        SMI_NOT_SUPPORTED = 3,
        SMI_NO_PERMISSION = 4,
        SMI_NOT_FOUND = 6,
        SMI_DRIVER_NOT_LOADED = 9,
        SMI_GPU_IS_LOST = 15,
        SMI_FAILED = 255,
        SMI_LAB_FAILED = 1, /* whatever a reset failed for, under the reference lab's dialect */
};

#define SMI_NA         "N/A"
#define SMI_DEPRECATED "Requested functionality has been deprecated"
#define SMI_VALUE_SIZE 256

typedef enum SmiMode {
        SMI_MODE_TABLE,
        SMI_MODE_LIST,
        SMI_MODE_LOG,
        SMI_MODE_QUERY_GPU,
        SMI_MODE_QUERY_APPS,
        SMI_MODE_RESET,
        SMI_MODE_PERSISTENCE,
        SMI_MODE_TOPOLOGY,
        SMI_MODE_NVLINK,
        SMI_MODE_HELP,
        SMI_MODE_HELP_QUERY_GPU,
        SMI_MODE_HELP_QUERY_APPS,
        SMI_MODE_VERSION,
} SmiMode;

typedef struct SmiOptions {
        SmiMode mode;
        const char *ids;      /* -i; NULL: all */
        const char *fields;   /* of a query */
        const char *format;   /* --format */
        const char *filename; /* -f */
        const char *display;  /* -d */
        uint64_t loop_usec;   /* 0: once */
        bool xml;
        bool persistence; /* -pm */
        bool header, units;
        const char *problem; /* why the arguments are refused */
} SmiOptions;

typedef struct SmiProcess {
        pid_t pid;
        uint32_t gpu;
        uint64_t used_bytes;
} SmiProcess;

/* The tray at one moment, and what was asked of it. */
typedef struct Smi {
        Tray tray;
        Clients clients;
        SmiProcess *processes;
        size_t n_processes;
        bool *selected; /* by index */
        Dialect dialect;
        usec_t now;
        char timestamp[40];
        FILE *out;
} Smi;

/* One GPU at that moment. */
typedef struct SmiGpu {
        const Smi *smi;
        const TrayHeader *header;
        TrayGpu gpu;
        Telemetry telemetry;
        uint32_t recovery_action;
        uint32_t domain, bus, device;
        NvmlReturn error; /* NVML_OK, or why it does not answer */
} SmiGpu;

/* One property of a GPU. Its value is `text`, or what get(…, what, …) writes. */
typedef struct SmiField {
        const char *name;
        const char *alias;
        const char *unit;
        void (*get)(const SmiGpu *gpu, unsigned what, char *ret, size_t size);
        unsigned what;
        const char *text;
        const char *help;
} SmiField;

extern const SmiField smi_fields[];
extern const size_t smi_n_fields;

/* Reads the arguments. *ret has the problem if there is one. */
void smi_options_parse(int argc, char **argv, SmiOptions *ret);

/* Opens the tray as it is now and marks the GPUs that were asked for. SMI_OK, or an exit code after saying
 * why. */
int smi_open(const SmiOptions *options, Smi *ret);
void smi_done(Smi *smi);

/* The name of one of them, for printing. Read only where it is shown: a process can make whoever reads its
 * arguments wait, and a script that only counts processes must not. */
void smi_process_name(const SmiProcess *process, char ret[static SMI_VALUE_SIZE]);

/* Looks for processes on the GPUs; what they use counts as used memory from then on. 0 · -errno. */
int smi_find_processes(Smi *smi);

void smi_gpu_read(const Smi *smi, uint32_t index, SmiGpu *ret);

/* NULL if there is no such property. */
const SmiField* smi_field_find(const char *name);

/* The value without its unit. */
void smi_field_read(const SmiField *field, const SmiGpu *gpu, char ret[static SMI_VALUE_SIZE]);

/* What the modes do; the exit code. */
int smi_table(Smi *smi);
int smi_list(const Smi *smi);
int smi_log_text(Smi *smi, const SmiOptions *options);
int smi_log_xml(Smi *smi);
int smi_query_gpu(Smi *smi, const SmiOptions *options);
int smi_query_apps(Smi *smi, const SmiOptions *options);
int smi_reset(Smi *smi);
int smi_persistence(const Smi *smi, bool on);
int smi_topology(const Smi *smi);
int smi_nvlink(const Smi *smi);
int smi_help(void);
int smi_help_query_gpu(void);
int smi_help_query_apps(void);
