/* SPDX-License-Identifier: MIT */
#include "agent/driver/tenants.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "agent/base/io.h"
#include "agent/base/sluid.h"
#include "agent/base/text.h"
#include "agent/driver/owner.h"
#include "agent/driver/vendor.h"

#define SLURM_CONF_MAX     (4U << 20)
#define CGROUP_TEXT_MAX    (64U << 10)
#define CGROUP_ROOT        "/sys/fs/cgroup"
#define CGROUP_DEPTH_MAX   12
#define CGROUP_FOLDERS_MAX 100000
/* Of these those that belong to others than root, who make as many as they like: no pod is among them. */
#define CGROUP_USERS_MAX 10000

/* As engines make them. */
#define CONTAINER_ID_LENGTH 64

/* slurmd's configuration, also where it came from the controller. */
static const char *const slurm_confs[] = { "/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf",
        "/etc/slurm-llnl/slurm.conf", "/usr/local/etc/slurm.conf" };

/* Without a word in it: Slurm's own default, and Debian's. */
static const char *const slurm_spools[] = { "/var/spool/slurmd", "/var/lib/slurm/slurmd" };

/* One tenant that is looked for. */
typedef struct Sought {
        OwnerTenant owner;
        size_t place; /* in the answer */
} Sought;

/* A kind of tenant whose signs could all be read, so that none of them means something. */
typedef struct Search {
        const Task *task;
        TenantSign *signs;
        size_t n;
        Sought *sought; /* sorted */
        size_t n_sought;
        bool jobs_known, pods_known, containers_known;
        size_t n_folders, n_users; /* of root, and of others */
} Search;

static void search_done(Search *search) {
        free(search->signs);
        free(search->sought);
}

static int compare_sought(const void *a, const void *b) {
        return strcmp(((const Sought *) a)->owner.where, ((const Sought *) b)->owner.where);
}

static int search_init(Search *search) {
        char *const *tenants = search->task->tenants;

        search->n = strv_length(tenants);
        search->signs = calloc(search->n + 1, sizeof *search->signs);
        search->sought = calloc(search->n + 1, sizeof *search->sought);
        if (!search->signs || !search->sought)
                return -ENOMEM;

        for (size_t i = 0; i < search->n; i++) {
                Sought *sought = &search->sought[search->n_sought];

                (void) snprintf(search->signs[i].tenant, sizeof search->signs[i].tenant, "%s", tenants[i]);
                search->signs[i].presence = TENANT_UNKNOWN;
                if (owner_tenant_parse(tenants[i], &sought->owner) < 0)
                        continue; /* of a kind that leaves no signs */
                sought->place = i;
                search->n_sought++;
        }
        qsort(search->sought, search->n_sought, sizeof *search->sought, compare_sought);
        return 0;
}

/* A sign of "job 27" or "pod <uid>". */
static void search_see(Search *search, const char *where) {
        size_t low = 0, high = search->n_sought;

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (strcmp(search->sought[middle].owner.where, where) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        /* Two runs of a job look alike: a sign is one of both. */
        for (; low < search->n_sought && streq(search->sought[low].owner.where, where); low++)
                search->signs[search->sought[low].place].presence = TENANT_ALIVE;
}

static void dir_close(DIR **dir) {
        if (*dir)
                (void) closedir(*dir);
}

/* Which jobs and pods have processes. 0 · -errno. */
static int search_processes(Search *search) {
        CLEANUP(dir_close) DIR *proc = opendir("/proc");
        struct dirent *entry;

        if (!proc)
                return -errno;
        while ((errno = 0, entry = readdir(proc))) {
                CLEANUP(free_ptr) char *text = NULL;
                char path[32], where[96];

                if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
                        continue;
                (void) snprintf(path, sizeof path, "%.20s/cgroup", entry->d_name);
                if (file_read(dirfd(proc), path, CGROUP_TEXT_MAX, &text, NULL) < 0)
                        continue; /* gone */
                owner_from_cgroup(text, where, sizeof where);
                if (startswith(where, "job s"))
                        search->jobs_known = false; /* a SLUID without a step: it may be any job */
                else if (where[0])
                        search_see(search, where);
        }
        return -errno;
}

int step_socket_parse(const char *name, uint32_t *ret_job) {
        const char *underscore = strrchr(name, '_'), *dot = underscore ? strchr(underscore, '.') : NULL;
        uint32_t job;
        char id[16];
        size_t n;

        if (!underscore || underscore == name || !dot || strspn(dot, ".0123456789") != strlen(dot) ||
                        !dot[1])
                return 0;
        n = (size_t) (dot - underscore) - 1;
        if (is_sluid(underscore + 1, n))
                return -EOPNOTSUPP;
        if (n >= sizeof id)
                return 0;
        memcpy(id, underscore + 1, n);
        id[n] = '\0';
        if (parse_u32(id, UINT32_MAX, &job) < 0)
                return 0;
        *ret_job = job;
        return 1;
}

/* The text of a line behind "SlurmdSpoolDir=", NULL for another line. */
static char* spool_value(char *line) {
        static const char name[] = "SlurmdSpoolDir";
        char *value;

        line = text_strip(line);
        if (strncasecmp(line, name, sizeof name - 1) != 0)
                return NULL;
        value = text_strip(line + sizeof name - 1);
        if (*value != '=')
                return NULL;
        value = text_strip(value + 1);
        value[strcspn(value, " \t#")] = '\0';
        return *value == '/' ? value : NULL;
}

int slurm_spool_parse(const char *text, char **ret) {
        CLEANUP(free_ptr) char *copy = strdup(text), *pattern = NULL;
        char *rest = copy, *line;

        if (!copy)
                return -ENOMEM;
        while ((line = strsep(&rest, "\n"))) {
                char *value = spool_value(line), *to;

                if (!value)
                        continue;
                free(pattern);
                pattern = to = calloc(1, 2 * strlen(value) + 1);
                if (!pattern)
                        return -ENOMEM;
                for (const char *from = value; *from; from++)
                        if (from[0] == '%' && (from[1] == 'h' || from[1] == 'n')) {
                                *to++ = '*';
                                from++;
                        } else {
                                if (strchr("*?[\\", *from))
                                        *to++ = '\\';
                                *to++ = *from;
                        }
        }
        if (!pattern)
                return 0;
        *ret = take_ptr(&pattern);
        return 1;
}

/* A step that was killed leaves its socket behind, at which nobody listens any more; a step that is merely
 * too busy to answer is there. What is no socket proves nothing. */
static bool step_is_dead(int spool_fd, const char *name) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        CLEANUP(fd_close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        struct stat st;

        if (fstatat(spool_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISSOCK(st.st_mode))
                return false;
        /* Whatever the length of the folder's name. */
        if (fd < 0 ||
                        (size_t) snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s",
                                        spool_fd, name) >= sizeof address.sun_path)
                return false;
        return connect(fd, (const struct sockaddr *) &address, sizeof address) < 0 && errno == ECONNREFUSED;
}

/* Steps by their sockets. 0 · -errno. */
static int search_spool(Search *search, const char *folder) {
        CLEANUP(dir_close) DIR *dir = opendir(folder);
        struct dirent *entry;

        if (!dir)
                return -errno;
        while ((errno = 0, entry = readdir(dir))) {
                char where[48];
                uint32_t job;
                int r;

                r = step_socket_parse(entry->d_name, &job);
                if (r < 0)
                        search->jobs_known = false;
                if (r <= 0 || step_is_dead(dirfd(dir), entry->d_name))
                        continue;
                (void) snprintf(where, sizeof where, "job %u", job);
                search_see(search, where);
        }
        return -errno;
}

/* Every folder that the pattern stands for. 1 there are some, and all could be read · 0. */
static int search_spools(Search *search, const char *pattern) {
        glob_t found = {};
        int all = 1;

        if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
                return 0;
        for (size_t i = 0; i < found.gl_pathc; i++)
                if (search_spool(search, found.gl_pathv[i]) < 0)
                        all = 0;
        globfree(&found);
        return all;
}

/* Where slurmd says that its spool folder is, else where it is by default. Without any, nothing is known
 * about jobs. */
static void search_slurm(Search *search) {
        bool any = false, all = true, said = false;

        for (size_t i = 0; i < ELEMENTSOF(slurm_confs); i++) {
                CLEANUP(free_ptr) char *text = NULL, *pattern = NULL;
                int r = file_read(AT_FDCWD, slurm_confs[i], SLURM_CONF_MAX, &text, NULL);

                if (r == -ENOENT)
                        continue;
                if (r < 0 || slurm_spool_parse(text, &pattern) < 0) {
                        all = false;
                        continue;
                }
                if (!pattern)
                        continue;
                said = true;
                if (search_spools(search, pattern))
                        any = true;
                else
                        all = false;
        }
        for (size_t i = 0; !said && i < ELEMENTSOF(slurm_spools); i++)
                any = search_spools(search, slurm_spools[i]) || any;
        search->jobs_known = search->jobs_known && any && all;
}

bool pod_folder_parse(const char *name, char *ret, size_t size) {
        char line[300], where[96];

        /* Spelled as one line of /proc/PID/cgroup, so that there is one reader of such names. */
        if (strlen(name) > 255)
                return false;
        (void) snprintf(line, sizeof line, "0::/kubepods/%s", name);
        owner_from_cgroup(line, where, sizeof where);
        if (!startswith(where, "pod "))
                return false;
        (void) snprintf(ret, size, "%s", where);
        return true;
}

/* A container by its folder, which is named by its id, and by engines "libpod-<id>.scope" or
 * "cri-containerd-<id>.scope" with an id that nothing else can have. true: it is such a one's, and what is
 * in it was made by the container. */
static bool search_container(Search *search, const char *folder) {
        size_t n = strlen(folder), suffix = strlen(".scope");
        char where[32 + CONTAINER_ID_LENGTH];

        if (n <= CONTAINER_ID_LENGTH) {
                (void) snprintf(where, sizeof where, "container %s", folder);
                search_see(search, where);
                return false;
        }
        if (streq(folder + n - suffix, ".scope"))
                n -= suffix;
        if (n <= CONTAINER_ID_LENGTH || folder[n - CONTAINER_ID_LENGTH - 1] != '-')
                return false;
        (void) snprintf(where, sizeof where, "container %.*s", CONTAINER_ID_LENGTH,
                        folder + n - CONTAINER_ID_LENGTH);
        search_see(search, where);
        return strspn(folder + n - CONTAINER_ID_LENGTH, "0123456789abcdef") >= CONTAINER_ID_LENGTH;
}

/* Whether there is room for one more folder in one of this owner's. 1 · 0 others than root have made too
 * many, and only containers can be among them · -E2BIG. */
static int search_count(Search *search, uid_t owner) {
        if (owner == 0)
                return ++search->n_folders > CGROUP_FOLDERS_MAX ? -E2BIG : 1;
        if (++search->n_users <= CGROUP_USERS_MAX)
                return 1;
        search->containers_known = false;
        return 0;
}

/* The folders of pods and containers, which are there while those are, with or without a process.
 * 0 · -errno. */
static int search_folder(Search *search, int parent_fd, const char *name, unsigned depth, bool kubelets) {
        CLEANUP(dir_close) DIR *dir = NULL;
        struct dirent *entry;
        struct stat st;
        int fd;

        fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return errno == ENOENT && depth > 0 ? 0 : -errno; /* gone meanwhile */
        dir = fdopendir(fd);
        if (!dir) {
                int r = -errno;

                fd_close(&fd);
                return r;
        }
        if (fstat(fd, &st) < 0)
                return -errno;

        while ((errno = 0, entry = readdir(dir))) {
                bool pods = kubelets || strstr(entry->d_name, "kubepods");
                char where[96];
                int r;

                if (entry->d_name[0] == '.' || entry->d_type != DT_DIR)
                        continue;
                r = search_count(search, st.st_uid);
                if (r <= 0)
                        return r;
                if (pods && pod_folder_parse(entry->d_name, where, sizeof where)) {
                        search_see(search, where);
                        continue; /* its containers tell nothing new */
                }
                /* Pods lie in kubelet's folders; what users make is not theirs. */
                if (search_container(search, entry->d_name) || depth >= CGROUP_DEPTH_MAX ||
                                streq(entry->d_name, "user.slice"))
                        continue;
                r = search_folder(search, dirfd(dir), entry->d_name, depth + 1, pods);
                if (r < 0)
                        return r;
        }
        return errno == ENODEV ? 0 : -errno; /* what is removed while it is read */
}

/* Whether nothing of it means that there is nothing of it. */
static bool search_knows(const Search *search, const OwnerTenant *owner) {
        if (owner->is_job)
                return search->jobs_known;
        return startswith(owner->where, "pod ") ? search->pods_known : search->containers_known;
}

void tenants_run(const Task *task, Answer *answer) {
        CLEANUP(search_done)
        Search search = { .task = task, .jobs_known = true, .pods_known = true, .containers_known = true };
        int r;

        r = search_init(&search);
        if (r < 0) {
                answer_fail(answer, ANSWER_FAILED, "cannot look for tenants: %s", strerror(-r));
                return;
        }

        if (search.n_sought > 0) {
                if (search_processes(&search) < 0)
                        search.jobs_known = search.pods_known = search.containers_known = false;
                search_slurm(&search);
                if (search_folder(&search, AT_FDCWD, CGROUP_ROOT, 0, false) < 0)
                        search.pods_known = search.containers_known = false;
        }
        for (size_t i = 0; i < search.n_sought; i++) {
                TenantSign *sign = &search.signs[search.sought[i].place];

                if (sign->presence == TENANT_UNKNOWN && search_knows(&search, &search.sought[i].owner))
                        sign->presence = TENANT_NO_SIGN;
        }

        answer->tenants = take_ptr(&search.signs);
        answer->n = answer->n_asked = search.n;
}
