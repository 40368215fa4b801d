/* SPDX-License-Identifier: MIT */
#include "agent/base/parse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "agent/base/cleanup.h"
#include "agent/base/text.h"

static bool is_digit(char c) {
        return c >= '0' && c <= '9';
}

static int hex_value(char c) {
        if (is_digit(c))
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        return -EINVAL;
}

int parse_u64(const char *s, uint64_t max, uint64_t *ret) {
        uint64_t value = 0;

        if (!is_digit(s[0]) || (s[0] == '0' && s[1] != '\0'))
                return -EINVAL;

        for (; *s != '\0'; s++) {
                if (!is_digit(*s))
                        return -EINVAL;
                if (__builtin_mul_overflow(value, 10, &value) ||
                                __builtin_add_overflow(value, (uint64_t) (*s - '0'), &value))
                        return -ERANGE;
        }

        if (value > max)
                return -ERANGE;
        *ret = value;
        return 0;
}

int parse_u32(const char *s, uint32_t max, uint32_t *ret) {
        uint64_t value;
        int r;

        r = parse_u64(s, max, &value);
        if (r < 0)
                return r;
        *ret = (uint32_t) value;
        return 0;
}

int parse_boolean(const char *s, bool *ret) {
        static const char *const words[][2] = {
                { "no", "yes" },
                { "false", "true" },
                { "off", "on" },
                { "0", "1" },
        };

        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                for (int value = 0; value < 2; value++)
                        if (strcasecmp(s, words[i][value]) == 0) {
                                *ret = value != 0;
                                return 0;
                        }
        return -EINVAL;
}

int parse_duration(const char *s, usec_t *ret_usec) {
        static const struct {
                const char *suffix;
                usec_t usec;
        } units[] = {
                { "", USEC_PER_SEC },
                { "s", USEC_PER_SEC },
                { "ms", USEC_PER_MSEC },
                { "us", 1 },
                { "min", 60 * USEC_PER_SEC },
                { "h", 3600 * USEC_PER_SEC },
        };
        usec_t whole = 0, fraction = 0, scale = 1;

        if (!is_digit(*s))
                return -EINVAL;
        for (; is_digit(*s); s++)
                if (__builtin_mul_overflow(whole, 10, &whole) ||
                                __builtin_add_overflow(whole, (usec_t) (*s - '0'), &whole))
                        return -ERANGE;
        if (*s == '.') {
                s++;
                if (!is_digit(*s))
                        return -EINVAL;
                for (; is_digit(*s); s++)
                        if (scale < USEC_PER_SEC) { /* digits below a microsecond do not count */
                                fraction = fraction * 10 + (usec_t) (*s - '0');
                                scale *= 10;
                        }
        }

        for (size_t i = 0; i < ELEMENTSOF(units); i++) {
                usec_t usec;

                if (!streq(s, units[i].suffix))
                        continue;
                if (__builtin_mul_overflow(whole, units[i].usec, &usec) ||
                                __builtin_add_overflow(usec, fraction * units[i].usec / scale, &usec) ||
                                usec == USEC_INFINITY)
                        return -ERANGE;
                *ret_usec = usec;
                return 0;
        }
        return -EINVAL;
}

/* Reads exactly `digits` hex digits. The value, or -EINVAL. */
static int64_t read_hex(const char *s, size_t digits) {
        int64_t value = 0;

        for (size_t i = 0; i < digits; i++) {
                int digit = hex_value(s[i]);

                if (digit < 0)
                        return -EINVAL;
                value = value * 16 + digit;
        }
        return value;
}

int bus_id_parse(const char *s, char ret[static GPU_BUS_ID_SIZE]) {
        size_t domain_digits = strcspn(s, ":");
        int64_t domain = 0, bus, device, function;

        /* domain:bus:device.function, the domain in 8 digits (NVIDIA), 4 (the kernel) or left out */
        if (s[domain_digits] == ':' && strchr(s + domain_digits + 1, ':')) {
                if (domain_digits != 4 && domain_digits != 8)
                        return -EINVAL;
                domain = read_hex(s, domain_digits);
                s += domain_digits + 1;
        }
        if (strlen(s) != strlen("18:00.0") || s[2] != ':' || s[5] != '.')
                return -EINVAL;

        bus = read_hex(s, 2);
        device = read_hex(s + 3, 2);
        function = read_hex(s + 6, 1);
        if (domain < 0 || bus < 0 || device < 0 || device > 31 || function < 0 || function > 7)
                return -EINVAL;

        (void) snprintf(ret, GPU_BUS_ID_SIZE, "%08X:%02X:%02X.%X", (unsigned) domain, (unsigned) bus & 0xffU,
                        (unsigned) device & 0xffU, (unsigned) function & 0xfU);
        return 0;
}

int gpu_uuid_parse(const char *s, char ret[static GPU_UUID_SIZE]) {
        static const char form[] = "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

        if (strlen(s) != strlen(form))
                return -EINVAL;
        for (size_t i = 0; form[i] != '\0'; i++)
                if (form[i] == 'x' ? hex_value(s[i]) < 0 : s[i] != form[i])
                        return -EINVAL;

        for (size_t i = 0; i < sizeof form; i++)
                ret[i] = form[i] == 'x' && s[i] >= 'A' && s[i] <= 'F' ? (char) (s[i] - 'A' + 'a') : s[i];
        return 0;
}

int gpu_id_parse(const char *s, GpuId *ret) {
        GpuId id = {};
        int r;

        if (startswith(s, "GPU-")) {
                id.kind = GPU_ID_UUID;
                r = gpu_uuid_parse(s, id.uuid);
        } else if (strchr(s, ':')) {
                id.kind = GPU_ID_BUS_ID;
                r = bus_id_parse(s, id.bus_id);
        } else {
                id.kind = GPU_ID_INDEX;
                r = parse_u32(s, UINT32_MAX - 1, &id.index);
        }
        if (r < 0)
                return -EINVAL;

        *ret = id;
        return 0;
}

int list_parse(const char *s, char ***ret) {
        CLEANUP(strv_free_ptr) char **items = NULL;

        for (;;) {
                CLEANUP(free_ptr) char *item = NULL;
                size_t n = strcspn(s, ",");
                int r;

                if (n == 0)
                        return -EINVAL;
                item = strndup(s, n);
                if (!item)
                        return -ENOMEM;
                r = strv_append(&items, item);
                if (r < 0)
                        return r;
                if (s[n] == '\0')
                        break;
                s += n + 1;
        }

        *ret = take_ptr(&items);
        return 0;
}

static bool is_name_character(char c) {
        return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' ||
                        c == '-';
}

bool tenant_is_valid(const char *s) {
        const char *p = s;

        while (*p >= 'a' && *p <= 'z')
                p++;
        if (p == s || *p != '/')
                return false;
        p++;
        if (!is_name_character(*p) || *p == '.' || *p == '_' || *p == '-')
                return false;
        while (is_name_character(*p))
                p++;
        return *p == '\0' && (size_t) (p - s) <= TENANT_MAX;
}

size_t pod_uid_length(const char *s) {
        size_t n = strspn(s, "0123456789abcdef-_");

        if (n == strlen("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"))
                return n;
        return n == 32 && strspn(s, "0123456789abcdef") == n ? n : 0;
}

bool pod_uid_is_valid(const char *s) {
        size_t n = pod_uid_length(s);

        return n > 0 && s[n] == '\0' && !strchr(s, '_');
}

size_t tenant_job(const char *tenant, const char **ret) {
        const char *job = startswith(tenant, "slurm/");

        *ret = job ?: "";
        return job ? strcspn(job, ".") : 0;
}

bool tenant_is_later_run(const char *tenant, const char *earlier) {
        const char *job, *earlier_job;
        size_t n = tenant_job(tenant, &job), earlier_n = tenant_job(earlier, &earlier_job);
        uint32_t restarts, earlier_restarts;

        return n > 0 && n == earlier_n && strncmp(job, earlier_job, n) == 0 && job[n] == '.' &&
                        earlier_job[n] == '.' && parse_u32(job + n + 1, UINT32_MAX, &restarts) >= 0 &&
                        parse_u32(earlier_job + n + 1, UINT32_MAX, &earlier_restarts) >= 0 &&
                        restarts > earlier_restarts;
}

bool identifier_is_valid(const char *s) {
        size_t n = 0;

        while (is_name_character(s[n]))
                n++;
        return n > 0 && n <= 64 && s[n] == '\0';
}

bool host_is_valid(const char *s) {
        const char *p = s;
        bool had_user = false;

        for (;;) {
                if (!is_name_character(*p) || *p == '.' || *p == '-')
                        return false;
                while (is_name_character(*p))
                        p++;
                if (*p == '\0')
                        return (size_t) (p - s) <= HOST_MAX;
                if (*p != '@' || had_user)
                        return false;
                had_user = true;
                p++;
        }
}
