/* SPDX-License-Identifier: MIT */
/* The partitions' file: "partition ID CLIQUE NAME" and "gpu UUID ID" lines. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/base/io.h"
#include "agent/base/text-stream.h"
#include "agent/base/text.h"
#include "agent/emulation/boot.h"

#define PARTITIONS_SIZE_MAX (4U << 20)

int partitions_save(const Tray *tray) {
        CLEANUP(text_stream_done) TextStream stream = {};
        FILE *file = text_stream_open(&stream);
        int r;

        if (!file)
                return -ENOMEM;
        for (uint32_t i = 0; i < tray->header->n_partitions; i++)
                (void) fprintf(file, "partition %u %u %s\n", tray->partitions[i].id,
                                tray->partitions[i].clique, tray->partitions[i].name);
        for (uint32_t i = 0; i < tray->header->n_gpus; i++)
                (void) fprintf(file, "gpu %s %u\n", tray->gpus[i].uuid, tray->gpus[i].partition);
        r = text_stream_end(&stream);
        if (r < 0)
                return r;

        if (mkdir("/var/lib/gpuagent-emulation", 0755) < 0 && errno != EEXIST)
                return -errno;
        return file_write_atomic(TRAY_PARTITIONS_PATH, stream.text, stream.size, 0644);
}

static int load_partition(Tray *tray, char *line) {
        char *id_text = strsep(&line, " "), *clique_text = strsep(&line, " ");
        TrayPartition *partition;
        uint32_t id, clique;
        int r;

        if (!id_text || !clique_text || !line || parse_u32(id_text, PARTITION_ID_MAX, &id) < 0 ||
                        parse_u32(clique_text, UINT32_MAX - 1, &clique) < 0 ||
                        strlen(line) >= TRAY_NAME_SIZE)
                return 0;

        /* The configuration's own partition is there already, with what the configuration says now. */
        if (tray_find_partition(tray, id))
                return 0;
        r = tray_add_partition(tray, &partition);
        if (r < 0)
                return r;
        partition->id = id;
        partition->clique = clique;
        text_escape(line, partition->name, sizeof partition->name);
        return 0;
}

static void load_gpu(Tray *tray, char *line) {
        char *uuid = strsep(&line, " ");
        GpuId id = { .kind = GPU_ID_UUID };
        uint32_t partition;
        TrayGpu *gpu;

        if (!uuid || !line || gpu_uuid_parse(uuid, id.uuid) < 0 ||
                        parse_u32(line, PARTITION_ID_MAX, &partition) < 0)
                return;
        gpu = tray_find_gpu(tray, &id);
        if (gpu && (partition == PARTITION_NONE || tray_find_partition(tray, partition)))
                gpu->partition = partition;
}

int partitions_load(Tray *tray) {
        CLEANUP(free_ptr) char *text = NULL;
        char *rest, *line;
        int r;

        r = file_read(AT_FDCWD, TRAY_PARTITIONS_PATH, PARTITIONS_SIZE_MAX, &text, NULL);
        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return r;

        rest = text;
        while (r >= 0 && (line = strsep(&rest, "\n"))) {
                char *word = strsep(&line, " ");

                if (streq(word, "partition") && line)
                        r = load_partition(tray, line);
                else if (streq(word, "gpu") && line)
                        load_gpu(tray, line);
        }
        return r;
}
