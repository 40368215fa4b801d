/* SPDX-License-Identifier: MIT */
/* Calls the fuzz target with each file of the folders named on the command line, and with nothing. Options
 * are those of libFuzzer and are passed over. */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>

#include "agent/base/cleanup.h"
#include "agent/base/io.h"

#define INPUT_MAX (1024 * 1024)

static void directory_close(DIR **directory) {
        if (*directory)
                (void) closedir(*directory);
}

static int replay_folder(const char *path) {
        CLEANUP(directory_close) DIR *directory = opendir(path);
        const struct dirent *entry;
        unsigned n = 0;

        if (!directory) {
                perror(path);
                return 1;
        }
        while ((entry = readdir(directory))) {
                CLEANUP(free_ptr) char *text = NULL;
                size_t size;

                if (entry->d_name[0] == '.')
                        continue;
                if (file_read(dirfd(directory), entry->d_name, INPUT_MAX, &text, &size) < 0) {
                        (void) fprintf(stderr, "%s/%s cannot be read\n", path, entry->d_name);
                        return 1;
                }
                (void) LLVMFuzzerTestOneInput((const uint8_t *) text, size);
                n++;
        }
        (void) printf("%u inputs of %s\n", n, path);
        return n == 0;
}

int main(int argc, char **argv) {
        (void) LLVMFuzzerTestOneInput((const uint8_t *) "", 0);
        for (int i = 1; i < argc; i++)
                if (argv[i][0] != '-' && replay_folder(argv[i]) != 0)
                        return 1;
        return 0;
}
