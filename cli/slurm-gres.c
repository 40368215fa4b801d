/* SPDX-License-Identifier: MIT */
#include "cli/slurm-gres.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/array.h"
#include "agent/base/io.h"
#include "agent/base/text-stream.h"
#include "agent/base/text.h"
#include "cli/program.h"

#define DEFAULT_SLURM_CONF "/etc/slurm/slurm.conf"
#define SLURMD             "/usr/sbin/slurmd"

/* Root's alone, and gone with the boot, as the minors may be other ones in the next. */
#define CACHE_FOLDER   "/run/gpuagent-slurm"
#define CACHE_FILE     CACHE_FOLDER "/gres"
#define CACHE_SIZE_MAX (1 << 20)
#define CONF_SIZE_MAX  (16 << 20)

/* slurmd -G takes some 50 ms; where it has to load the vendor's library, longer. */
#define SLURMD_TIMEOUT_USEC (10 * USEC_PER_SEC)

#define MINOR_MAX 65535U

void gres_list_done(GresList *list) {
        free(list->minors);
        *list = (GresList){};
}

static int gres_list_append(GresList *list, uint32_t minor) {
        int r;

        r = array_reserve(&list->minors, list->n_minors, 1);
        if (r < 0)
                return r;
        list->minors[list->n_minors++] = minor;
        return 0;
}

/* "3" or "0-2", all of `text`. 0 · -EINVAL · -ENOMEM. */
static int append_range(GresList *list, char *text) {
        char *dash = strchr(text, '-');
        uint32_t first, last;
        int r;

        if (dash)
                *dash = '\0';
        if (parse_u32(text, MINOR_MAX, &first) < 0)
                return -EINVAL;
        last = first;
        if (dash && (parse_u32(dash + 1, MINOR_MAX, &last) < 0 || last < first))
                return -EINVAL;
        for (uint32_t minor = first; minor <= last; minor++) {
                r = gres_list_append(list, minor);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* The device files of one line, in Slurm's notation: "/dev/nvidia0", "/dev/nvidia[0-1,3]", several with
 * commas between. */
static int append_files(GresList *list, const char *files) {
        while (*files != '\0') {
                const char *name = files, *digits;
                CLEANUP(strv_free_ptr) char **ranges = NULL;
                CLEANUP(free_ptr) char *text = NULL;
                size_t n = strcspn(files, ",[");
                int r;

                if (files[n] == '[')
                        n += strcspn(files + n, "]") + 1;
                text = strndup(name, n);
                if (!text)
                        return -ENOMEM;
                files += strlen(text);
                if (*files == ',')
                        files++;
                else if (*files != '\0')
                        return -EINVAL;

                digits = strrchr(text, '/');
                digits = startswith(digits ? digits + 1 : text, "nvidia");
                if (!digits)
                        return -EINVAL;
                if (digits[0] == '[') {
                        if (text[strlen(text) - 1] != ']')
                                return -EINVAL;
                        text[strlen(text) - 1] = '\0';
                        digits++;
                }
                r = list_parse(digits, &ranges);
                if (r < 0)
                        return r;
                STRV_FOREACH (range, ranges) {
                        r = append_range(list, *range);
                        if (r < 0)
                                return r;
                }
        }
        return 0;
}

/* Copies the value of " key=" up to the next space. */
static int line_value(const char *line, const char *key, char *ret, size_t size) {
        const char *start = strstr(line, key);
        size_t n;

        if (!start)
                return -ENOENT;
        start += strlen(key);
        n = strcspn(start, " ");
        if (n >= size)
                return -EINVAL;
        (void) snprintf(ret, size, "%.*s", (int) n, start);
        return 0;
}

/* One line of slurmd's; those of other resources are passed over. */
static int parse_line(GresList *list, const char *line, Failure *failure) {
        const char *gres = strstr(line, "Gres Name=gpu ");
        char files[1024], count_text[24], flags[512] = "";
        size_t before = list->n_minors;
        uint32_t count;
        int r;

        if (!gres)
                return 0;
        (void) line_value(gres, " Flags=", flags, sizeof flags);
        if (line_value(gres, " File=", files, sizeof files) < 0)
                return failure_set(failure, CLI_FAILED, "slurmd's gres list has a GPU without a File=: %s",
                                gres);
        r = append_files(list, files);
        if (r == -ENOMEM)
                return failure_errno(failure, r, "cannot read slurmd's gres list");
        /* One place that has several files (MultipleFiles=, as with MIG) is not one GPU. */
        if (r < 0 || strstr(flags, "HAS_MULT") ||
                        line_value(gres, " Count=", count_text, sizeof count_text) < 0 ||
                        parse_u32(count_text, MINOR_MAX, &count) < 0 || count != list->n_minors - before)
                return failure_set(failure, CLI_FAILED,
                                "slurmd's gres list does not tell the GPUs apart: %s", gres);
        return 0;
}

int gres_list_parse(const char *text, GresList *ret, Failure *failure) {
        CLEANUP(gres_list_done) GresList list = {};
        CLEANUP(free_ptr) char *copy = strdup(text);
        char *rest = copy, *line;
        int r;

        if (!copy)
                return failure_errno(failure, -ENOMEM, "cannot read slurmd's gres list");
        while ((line = strsep(&rest, "\n"))) {
                r = parse_line(&list, line, failure);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < list.n_minors; i++)
                for (size_t k = 0; k < i; k++)
                        if (list.minors[i] == list.minors[k])
                                return failure_set(failure, CLI_FAILED,
                                                "slurmd's gres list has /dev/nvidia%u twice",
                                                list.minors[i]);

        *ret = list;
        list = (GresList){};
        return 0;
}

static const char* conf_path(const SlurmJob *job) {
        return job->configuration && job->configuration[0] != '\0' ? job->configuration : DEFAULT_SLURM_CONF;
}

/* A line that is another one when the file has changed. */
static void stamp_file(FILE *stamp, const char *path) {
        struct stat st;

        if (stat(path, &st) < 0)
                (void) fprintf(stamp, "%s none\n", path);
        else
                (void) fprintf(stamp, "%s %llu:%llu %lld %lld.%09ld\n", path, (unsigned long long) st.st_dev,
                                (unsigned long long) st.st_ino, (long long) st.st_size,
                                (long long) st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

bool slurm_conf_has_include(const char *text) {
        for (const char *line = text; line; line = strchr(line, '\n')) {
                line += strspn(line, " \t\n");
                if (strncasecmp(line, "include", strlen("include")) == 0)
                        return true;
        }
        return false;
}

/* gres.conf stands beside slurm.conf. */
static void gres_conf_path(const SlurmJob *job, char ret[static PATH_MAX]) {
        const char *conf = conf_path(job), *slash = strrchr(conf, '/');

        (void) snprintf(ret, PATH_MAX, "%.*sgres.conf", slash ? (int) (slash - conf) + 1 : 0, conf);
}

/* Whether all that the list depends on is in the stamp. */
static bool may_cache(const SlurmJob *job) {
        char gres[PATH_MAX];
        const char *const paths[] = { conf_path(job), gres };

        gres_conf_path(job, gres);
        for (size_t i = 0; i < ELEMENTSOF(paths); i++) {
                CLEANUP(free_ptr) char *text = NULL;
                int r;

                r = file_read(AT_FDCWD, paths[i], CONF_SIZE_MAX, &text, NULL);
                if (r < 0 ? r != -ENOENT : slurm_conf_has_include(text))
                        return false;
        }
        return true;
}

/* What the list depends on: the node's name, slurmd itself, and its two files. 0 and *ret (to be freed) ·
 * -ENOMEM. */
static int stamp_new(const SlurmJob *job, char **ret) {
        CLEANUP(text_stream_done) TextStream stream = {};
        FILE *stamp = text_stream_open(&stream);
        char gres[PATH_MAX];

        if (!stamp)
                return -ENOMEM;
        (void) fprintf(stamp, "node %s\n", job->node ?: "");
        stamp_file(stamp, SLURMD);
        stamp_file(stamp, conf_path(job));
        gres_conf_path(job, gres);
        stamp_file(stamp, gres);
        return text_stream_take(&stream, ret);
}

/* The cache is the stamp, slurmd's lines, and an end that shows it is whole: two epilogs may write it at
 * once.
 * 0 and *ret: it has the list for this stamp · -ENOENT: it does not. */
static int cache_read(const char *stamp, GresList *ret) {
        CLEANUP(failure_done) Failure failure = {};
        CLEANUP(free_ptr) char *text = NULL;
        const char *lines;
        size_t size;

        if (file_read(AT_FDCWD, CACHE_FILE, CACHE_SIZE_MAX, &text, &size) < 0)
                return -ENOENT;
        lines = startswith(text, stamp);
        if (!lines || size < 5 || !streq(text + size - 5, "\nend\n"))
                return -ENOENT;
        return gres_list_parse(lines, ret, &failure) < 0 ? -ENOENT : 0;
}

/* A cache that cannot be written costs the next epilog some time, and nothing else. */
static void cache_write(const char *stamp, const char *lines) {
        CLEANUP(free_ptr) char *text = NULL;
        int n;

        if (mkdir(CACHE_FOLDER, 0700) < 0 && errno != EEXIST)
                return;
        n = asprintf(&text, "%s%s\nend\n", stamp, lines);
        if (n < 0) {
                text = NULL;
                return;
        }
        (void) file_write_atomic(CACHE_FILE, text, (size_t) n, 0600);
}

/* The last line of slurmd's, for the message. */
static const char* last_line(char *text) {
        char *end;

        text = text_strip(text);
        end = strrchr(text, '\n');
        return end ? end + 1 : text;
}

static int ask_slurmd(const SlurmJob *job, char **ret_output, Failure *failure) {
        const char *const with_node[] = { SLURMD, "-f", conf_path(job), "-G", "-N", job->node, NULL };
        const char *const plain[] = { SLURMD, "-f", conf_path(job), "-G", NULL };
        CLEANUP(free_ptr) char *output = NULL;
        int r;

        r = program_run((char *const *) (job->node ? with_node : plain),
                        usec_add(now_monotonic_usec(), SLURMD_TIMEOUT_USEC), &output);
        if (r < 0)
                return failure_errno(failure, r, "cannot read slurmd's gres list with " SLURMD " -G");
        if (r > 0)
                return failure_set(failure, CLI_FAILED,
                                "cannot read slurmd's gres list with " SLURMD " -G: %s", last_line(output));

        *ret_output = take_ptr(&output);
        return 0;
}

int gres_list_read(const SlurmJob *job, GresList *ret, Failure *failure) {
        CLEANUP(free_ptr) char *stamp = NULL, *output = NULL;
        CLEANUP(gres_list_done) GresList list = {};
        int r;

        /* slurmd without a slurm.conf would look for a controller in the network, for minutes. */
        if (access(conf_path(job), F_OK) < 0) {
                if (job->configuration && job->configuration[0] != '\0')
                        return failure_errno(failure, -errno, "cannot read %s", job->configuration);
                return 0;
        }

        r = stamp_new(job, &stamp);
        if (r < 0)
                return failure_errno(failure, r, "cannot read slurmd's gres list");
        if (cache_read(stamp, ret) >= 0)
                return 1;

        r = ask_slurmd(job, &output, failure);
        if (r >= 0)
                r = gres_list_parse(output, &list, failure);
        if (r < 0)
                return r;
        if (may_cache(job))
                cache_write(stamp, output);

        *ret = list;
        list = (GresList){};
        return 1;
}

usec_t slurm_timeout_parse(const char *text, SlurmScript script) {
        const char *const keys[] = {
                script == SLURM_PROLOG ? "PrologTimeout=" : "EpilogTimeout=",
                "PrologEpilogTimeout=",
        };

        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                for (const char *line = text; line; line = strchr(line, '\n')) {
                        char number[16];
                        uint32_t seconds;
                        const char *value;

                        line += strspn(line, " \t\n");
                        if (strncasecmp(line, keys[i], strlen(keys[i])) != 0)
                                continue;
                        value = line + strlen(keys[i]);
                        (void) snprintf(number, sizeof number, "%.*s", (int) strspn(value, "0123456789"),
                                        value);
                        if (parse_u32(number, UINT16_MAX - 1, &seconds) >= 0 && seconds > 0)
                                return seconds * USEC_PER_SEC;
                }
        return USEC_INFINITY;
}

usec_t slurm_timeout(const SlurmJob *job, SlurmScript script) {
        CLEANUP(free_ptr) char *text = NULL;

        if (file_read(AT_FDCWD, conf_path(job), CONF_SIZE_MAX, &text, NULL) < 0)
                return USEC_INFINITY;
        return slurm_timeout_parse(text, script);
}
