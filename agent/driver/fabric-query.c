/* SPDX-License-Identifier: MIT */
#include "agent/driver/fabric-query.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "agent/base/text.h"
#include "agent/driver/program.h"

#define BLANKS         " \t"
#define LINE_MAX_BYTES 512

/* That of the default partition (NVLink Partition User's Guide). */
#define PARTITION_MAX 32766

/* A look at the GPUs must not take as long as a program that hangs. */
#define QUERY_TIMEOUT_USEC (10 * USEC_PER_SEC)

int fabric_line_parse(const char *line, FabricLine *ret) {
        FabricLine parsed = { .clique = UNKNOWN_U32 };
        char copy[LINE_MAX_BYTES], *words[5], *rest = copy;
        size_t n = 0;

        if (strlen(line) >= sizeof copy)
                return -EINVAL;
        strcpy(copy, line);
        for (char *word; n < ELEMENTSOF(words) && (word = strtok_r(rest, BLANKS "\r", &rest)); n++)
                words[n] = word;
        if (n != 4 || gpu_uuid_parse(words[0], parsed.uuid) < 0 ||
                        parse_u32(words[1], PARTITION_MAX, &parsed.partition) < 0)
                return -EINVAL;

        if (!streq(words[2], "-")) {
                if (strlen(words[2]) >= sizeof parsed.name)
                        return -EINVAL;
                text_escape(words[2], parsed.name, sizeof parsed.name);
                if (!streq(parsed.name, words[2]))
                        return -EINVAL;
        }
        if (!streq(words[3], "-") && parse_u32(words[3], UNKNOWN_U32 - 1, &parsed.clique) < 0)
                return -EINVAL;

        *ret = parsed;
        return 0;
}

static int compare_lines(const void *a, const void *b) {
        return strcmp(((const FabricLine *) a)->uuid, ((const FabricLine *) b)->uuid);
}

/* A GPU is in one partition at most: of one that is told of in several ways nothing is known. */
static size_t drop_contradictions(Answer *answer, FabricLine *lines, size_t n) {
        size_t kept = 0, same;

        for (size_t i = 0; i < n; i += same) {
                bool agree = true;

                for (same = 1; i + same < n && streq(lines[i].uuid, lines[i + same].uuid); same++)
                        agree &= lines[i].partition == lines[i + same].partition &&
                                        lines[i].clique == lines[i + same].clique;
                if (agree)
                        lines[kept++] = lines[i];
                else
                        answer_warn(answer, "fabric.query printed lines that contradict each other about %s",
                                        lines[i].uuid);
        }
        return kept;
}

static void samples_merge(Answer *answer, FabricLine *lines, size_t n_lines) {
        qsort(lines, n_lines, sizeof *lines, compare_lines);
        n_lines = drop_contradictions(answer, lines, n_lines);
        for (size_t i = 0; i < answer->n; i++) {
                GpuSample *sample = &answer->samples[i];
                FabricLine key = {}, *line;

                memcpy(key.uuid, sample->uuid, sizeof key.uuid);
                line = n_lines > 0 ? bsearch(&key, lines, n_lines, sizeof *lines, compare_lines) : NULL;
                if (!line)
                        continue;
                sample->partition = line->partition;
                sample->partition_clique = line->clique;
                memcpy(sample->partition_name, line->name, sizeof sample->partition_name);
        }
}

/* A line that cannot be read leaves its GPU's partition unknown. */
static int output_merge(Answer *answer, char *output) {
        CLEANUP(free_ptr) FabricLine *lines = NULL;
        size_t n = 0, room = 1;
        char *rest = output, *text;

        for (const char *c = output; *c; c++)
                room += *c == '\n';
        lines = calloc(room, sizeof *lines);
        if (!lines)
                return -ENOMEM;

        while ((text = strsep(&rest, "\n"))) {
                if (*text_strip(text) == '\0')
                        continue;
                if (fabric_line_parse(text, &lines[n]) >= 0)
                        n++;
                else
                        answer_warn(answer,
                                        "fabric.query printed a line that is not \"UUID PARTITION NAME "
                                        "CLIQUE\": %.64s",
                                        text);
        }
        samples_merge(answer, lines, n);
        return 0;
}

/* Whether an answer can matter to what the task is for. After a reset of some GPUs nothing is judged before
 * their fabric has come to rest, and until then the looks come fast. */
static bool is_worth_asking(const Task *task, const Answer *answer) {
        bool worth = !task->uuids || !*task->uuids;

        for (size_t i = 0; i < answer->n; i++)
                worth |= gpu_sample_has_settled(&answer->samples[i]);
        return answer->n > 0 && worth;
}

/* What it printed, to be freed. NULL: it does not work, and the answer says why. */
static char* query_ask(const Task *task, char *const *argv, Answer *answer) {
        usec_t now_usec = now_monotonic_usec(), half_usec = (task->deadline_usec - now_usec) / 2;
        Program program = { .argv = argv, .alone = true };
        CLEANUP(free_ptr) char *output = NULL;
        ProgramResult result;
        int r = -ETIMEDOUT;

        program.deadline_usec = now_usec + (half_usec < QUERY_TIMEOUT_USEC ? half_usec : QUERY_TIMEOUT_USEC);
        if (!task->query_hangs) {
                r = program_run(task, &program, &result);
                answer->query_hangs = r == -ETIMEDOUT;
        }
        if (r < 0) {
                answer_warn(answer, "fabric.query: %s %s", argv[0],
                                r == -ETIMEDOUT ? "did not end in time" : strerror(-r));
                return NULL;
        }

        output = result.output;
        if (!WIFEXITED(result.status) || WEXITSTATUS(result.status) != 0) {
                answer_warn(answer, "fabric.query: %s failed: %s", argv[0], program_words(&result));
                return NULL;
        }
        return take_ptr(&output);
}

void fabric_query_run(const Task *task, Answer *answer) {
        CLEANUP(strv_free_ptr) char **argv = NULL;
        CLEANUP(free_ptr) char *output = NULL;
        int r;

        if (task->config->fabric.query[0] == '\0' || !is_worth_asking(task, answer) ||
                        now_monotonic_usec() >= task->deadline_usec)
                return;

        r = command_split(task->config->fabric.query, &argv);
        if (r >= 0)
                output = query_ask(task, argv, answer);
        if (output)
                r = output_merge(answer, output);
        if (r < 0)
                answer_warn(answer, "fabric.query: %s", strerror(-r));
}
