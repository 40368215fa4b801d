/* SPDX-License-Identifier: MIT */
/* gpuagent-bmc: the BMC of the emulated tray, which answers Redfish's questions about its GPUs. Nothing that
 * a client sends is kept, and each request looks at the tray anew. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <microhttpd.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "agent/base/io.h"
#include "agent/base/text.h"
#include "agent/emulation/bmc-resource.h"
#include "agent/emulation/emulation-config.h"
#include "cli/json.h"

#define EXIT_USAGE 2

#define SECRET_MAX      256
#define CERTIFICATE_MAX (64U << 10)

/* What strangers may take of us. */
#define CONNECTIONS_MAX          64U
#define CONNECTIONS_MAX_EACH     16U
#define CONNECTION_MEMORY        (16U << 10)
#define CONNECTION_TIMEOUT_SEC   10U
#define AUTHORIZATION_HEADER_MAX (sizeof "Basic " + (SECRET_MAX + 2) / 3 * 4)

typedef struct Bmc {
        const char *config_path; /* NULL: the usual file */
        const char *listen;      /* NULL: what the file says */
        char *password_path, *certificate_path, *key_path;
        char *certificate, *key;                      /* NULL: no TLS */
        char authorization[AUTHORIZATION_HEADER_MAX]; /* what the header has to be; "" for no password */
        struct MHD_Daemon *daemon;
} Bmc;

static void bmc_done(Bmc *bmc) {
        if (bmc->daemon)
                MHD_stop_daemon(bmc->daemon);
        free(bmc->password_path);
        free(bmc->certificate_path);
        free(bmc->key_path);
        free(bmc->certificate);
        free(bmc->key);
        explicit_bzero(bmc->authorization, sizeof bmc->authorization);
}

static void addrinfo_done(struct addrinfo **list) {
        if (*list)
                freeaddrinfo(*list);
}

static void response_done(struct MHD_Response **response) {
        if (*response)
                MHD_destroy_response(*response);
}

static int fail(const char *what, const char *why) {
        (void) fprintf(stderr, "gpuagent-bmc: %s: %s\n", what, why);
        return -EINVAL;
}

/* How long it takes says nothing about where they differ. */
static bool is_same_secret(const char *a, const char *b) {
        size_t n = strlen(a);
        unsigned char difference = 0;

        if (strlen(b) != n)
                return false;
        for (size_t i = 0; i < n; i++)
                difference |= (unsigned char) (a[i] ^ b[i]);
        return difference == 0;
}

static bool is_authorized(const Bmc *bmc, struct MHD_Connection *connection) {
        const char *header;

        if (bmc->authorization[0] == '\0')
                return true;
        header = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
        return header && is_same_secret(bmc->authorization, header);
}

/* The answer to a request, as status and JSON. 0 and *ret (to be put) · -ENOMEM. */
static int answer_make(const Bmc *bmc, struct MHD_Connection *connection, const char *path,
                const char *method, unsigned *ret_status, json_object **ret) {
        CLEANUP(tray_done) Tray tray = TRAY_INIT;
        int r;

        *ret_status = MHD_HTTP_OK;
        if (!bmc_path_is_public(path) && !is_authorized(bmc, connection)) {
                *ret_status = MHD_HTTP_UNAUTHORIZED;
                *ret = bmc_error("NoValidSession", "A user and password are needed, the right ones.");
        } else if (!streq(method, MHD_HTTP_METHOD_GET) && !streq(method, MHD_HTTP_METHOD_HEAD)) {
                *ret_status = MHD_HTTP_METHOD_NOT_ALLOWED;
                *ret = bmc_error("OperationNotAllowed", "This BMC can be read only.");
        } else if (tray_open(&tray) < 0) {
                *ret_status = MHD_HTTP_SERVICE_UNAVAILABLE;
                *ret = bmc_error("ServiceTemporarilyUnavailable", "There is no emulated tray yet.");
        } else {
                r = bmc_resource(&tray, path, now_monotonic_usec(), ret);
                if (r == -ENOENT) {
                        *ret_status = MHD_HTTP_NOT_FOUND;
                        *ret = bmc_error("ResourceMissingAtURI", "There is no such resource.");
                } else if (r < 0) {
                        return r;
                }
        }
        return *ret ? 0 : -ENOMEM;
}

/* Paths stay as they were sent: none of ours needs an escape, and one for a NUL byte would cut them. */
static size_t on_unescape(void *userdata, struct MHD_Connection *connection, char *text) {
        return strlen(text);
}

static bool response_describe(struct MHD_Response *response, unsigned status) {
        return MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json") &&
                        MHD_add_response_header(response, "OData-Version", "4.0") &&
                        MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") &&
                        (status != MHD_HTTP_UNAUTHORIZED ||
                                        MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
                                                        "Basic realm=\"gpuagent-bmc\"")) &&
                        (status != MHD_HTTP_METHOD_NOT_ALLOWED ||
                                        MHD_add_response_header(
                                                        response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD"));
}

/* Answers at once, before a body is read: nobody makes us wait for one. MHD_NO closes the connection. */
static enum MHD_Result on_request(void *userdata, struct MHD_Connection *connection, const char *path,
                const char *method, const char *version, const char *upload, size_t *upload_size,
                void **request) {
        CLEANUP(response_done) struct MHD_Response *response = NULL;
        CLEANUP(json_put_ptr) json_object *answer = NULL;
        const char *text;
        unsigned status;

        if (answer_make(userdata, connection, path, method, &status, &answer) < 0)
                return MHD_NO;
        text = json_text(answer, OUTPUT_JSON_SHORT);
        if (!text)
                return MHD_NO;
        response = MHD_create_response_from_buffer(strlen(text), (void *) text, MHD_RESPMEM_MUST_COPY);
        if (!response || !response_describe(response, status))
                return MHD_NO;
        return MHD_queue_response(connection, status, response);
}

/* "127.0.0.1:8470" or "[::1]:8470". 0 and *ret · -EINVAL, and it has said why ·
 * -ENOMEM. */
static int address_parse(const char *text, struct addrinfo **ret) {
        static const struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
                .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV };
        CLEANUP(free_ptr) char *copy = strdup(text);
        char *host = copy, *port;
        uint32_t number;
        size_t n;

        if (!copy)
                return -ENOMEM;
        port = strrchr(copy, ':');
        if (!port || parse_u32(port + 1, 65535, &number) < 0 || number == 0)
                return fail(text, "give an address and a port, such as 127.0.0.1:8470");
        *port = '\0';
        n = strlen(host);
        if (host[0] == '[' && host[n - 1] == ']') {
                host[n - 1] = '\0';
                host++;
        } else if (strchr(host, ':')) {
                return fail(text, "an IPv6 address is written in brackets, as in [::1]:8470");
        }
        if (host[0] == '\0' || getaddrinfo(host, port + 1, &hints, ret) != 0)
                return fail(text, "this is no address, such as 127.0.0.1:8470");
        return 0;
}

/* Without an option it is a credential of the service, if there is one. 0 · -ENOMEM. */
static int credential_default(char **path, const char *name) {
        const char *folder = getenv("CREDENTIALS_DIRECTORY");

        if (*path || !folder)
                return 0;
        if (asprintf(path, "%s/gpuagent-bmc.%s", folder, name) < 0) {
                *path = NULL;
                return -ENOMEM;
        }
        if (access(*path, F_OK) < 0) {
                free(*path);
                *path = NULL;
        }
        return 0;
}

static void base64_encode(const char *text, size_t size, char *ret) {
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

        for (size_t i = 0; i < size; i += 3) {
                uint32_t bits = 0;

                for (size_t k = i; k < i + 3; k++)
                        bits = bits << 8 | (k < size ? (unsigned char) text[k] : 0);
                *ret++ = digits[bits >> 18];
                *ret++ = digits[bits >> 12 & 63];
                *ret++ = i + 1 < size ? digits[bits >> 6 & 63] : '=';
                *ret++ = i + 2 < size ? digits[bits & 63] : '=';
        }
        *ret = '\0';
}

/* The first line of the password's file is USER:PASSWORD. */
static int password_read(Bmc *bmc) {
        CLEANUP(free_ptr) char *text = NULL;
        size_t n;
        int r;

        if (!bmc->password_path)
                return 0;
        r = file_read(AT_FDCWD, bmc->password_path, SECRET_MAX, &text, NULL);
        if (r < 0)
                return fail(bmc->password_path, strerror(-r));
        n = strcspn(text, "\r\n");
        text[n] = '\0';
        if (!strchr(text, ':') || text[0] == ':')
                return fail(bmc->password_path, "its first line has to be USER:PASSWORD");

        strcpy(bmc->authorization, "Basic ");
        base64_encode(text, n, bmc->authorization + strlen("Basic "));
        explicit_bzero(text, n);
        return 0;
}

static int certificate_read(Bmc *bmc) {
        int r;

        if (!bmc->certificate_path && !bmc->key_path)
                return 0;
        if (!bmc->certificate_path || !bmc->key_path)
                return fail("TLS", "it needs a certificate and a key");
        r = file_read(AT_FDCWD, bmc->certificate_path, CERTIFICATE_MAX, &bmc->certificate, NULL);
        if (r < 0)
                return fail(bmc->certificate_path, strerror(-r));
        r = file_read(AT_FDCWD, bmc->key_path, CERTIFICATE_MAX, &bmc->key, NULL);
        if (r < 0)
                return fail(bmc->key_path, strerror(-r));
        return 0;
}

static int secrets_read(Bmc *bmc) {
        int r;

        r = credential_default(&bmc->password_path, "password");
        if (r >= 0)
                r = credential_default(&bmc->certificate_path, "certificate");
        if (r >= 0)
                r = credential_default(&bmc->key_path, "key");
        if (r >= 0)
                r = password_read(bmc);
        return r < 0 ? r : certificate_read(bmc);
}

static int bmc_listen(Bmc *bmc) {
        CLEANUP(emulation_config_free_ptr) EmulationConfig *config = NULL;
        CLEANUP(addrinfo_done) struct addrinfo *address = NULL;
        CLEANUP(free_ptr) char *message = NULL;
        struct MHD_OptionItem tls[] = {
                { MHD_OPTION_HTTPS_MEM_CERT, 0, bmc->certificate },
                { MHD_OPTION_HTTPS_MEM_KEY, 0, bmc->key },
                { MHD_OPTION_END, 0, NULL },
        };
        unsigned flags = MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD;
        const char *text;
        int r;

        r = emulation_config_load(bmc->config_path, &config, &message);
        if (r < 0)
                return fail("the configuration", message ?: strerror(-r));
        text = bmc->listen ?: config->bmc_listen;
        r = address_parse(text, &address);
        if (r < 0)
                return r;

        if (bmc->certificate)
                flags |= MHD_USE_TLS;
        if (address->ai_family == AF_INET6)
                flags |= MHD_USE_IPv6;
        errno = 0;
        bmc->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, bmc, MHD_OPTION_SOCK_ADDR,
                        address->ai_addr, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
                        MHD_OPTION_PER_IP_CONNECTION_LIMIT, CONNECTIONS_MAX_EACH,
                        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t) CONNECTION_MEMORY,
                        MHD_OPTION_CONNECTION_TIMEOUT, CONNECTION_TIMEOUT_SEC, MHD_OPTION_UNESCAPE_CALLBACK,
                        on_unescape, NULL, MHD_OPTION_ARRAY, bmc->certificate ? tls : tls + 2,
                        MHD_OPTION_END);
        if (!bmc->daemon)
                return fail(text, errno ? strerror(errno) : "cannot serve with this certificate and key");
        return 0;
}

static void help(void) {
        (void) puts("gpuagent-bmc [OPTION…]\n\n"
                    "The BMC of the emulated tray: Redfish over HTTP.\n\n"
                    "  -c, --config FILE           instead of " TRAY_CONFIG_PATH "\n"
                    "      --listen ADDRESS:PORT   instead of the configuration's bmc-listen\n"
                    "      --password-file FILE    USER:PASSWORD, to be asked for\n"
                    "      --certificate FILE, --key FILE\n"
                    "                              in PEM: serve HTTPS\n"
                    "      --version\n"
                    "  -h, --help\n\n"
                    "See gpuagent-emulate(8).");
}

/* 1 · 0: all is done · -EINVAL. */
static int arguments_parse(int argc, char **argv, Bmc *bmc) {
        static const struct option options[] = {
                { "config", required_argument, NULL, 'c' },
                { "listen", required_argument, NULL, 'l' },
                { "password-file", required_argument, NULL, 'p' },
                { "certificate", required_argument, NULL, 'C' },
                { "key", required_argument, NULL, 'K' },
                { "help", no_argument, NULL, 'h' },
                { "version", no_argument, NULL, 'V' },
                {},
        };
        char **path = NULL;
        int option;

        while ((option = getopt_long(argc, argv, "c:h", options, NULL)) >= 0) {
                switch (option) {
                case 'c': bmc->config_path = optarg; continue;
                case 'l': bmc->listen = optarg; continue;
                case 'p': path = &bmc->password_path; break;
                case 'C': path = &bmc->certificate_path; break;
                case 'K': path = &bmc->key_path; break;
                case 'V': (void) puts("gpuagent-bmc " VERSION); return 0;
                case 'h': help(); return 0;
                default: return -EINVAL;
                }
                free(*path);
                *path = strdup(optarg);
                if (!*path)
                        return -ENOMEM;
        }
        return optind < argc ? fail(argv[optind], "unexpected argument") : 1;
}

int main(int argc, char **argv) {
        CLEANUP(bmc_done) Bmc bmc = {};
        sigset_t ends;
        int r, number;

        r = arguments_parse(argc, argv, &bmc);
        if (r <= 0)
                return r < 0 ? EXIT_USAGE : EXIT_SUCCESS;

        /* Before there are threads, so that none of them takes these. */
        (void) sigemptyset(&ends);
        (void) sigaddset(&ends, SIGTERM);
        (void) sigaddset(&ends, SIGINT);
        (void) sigprocmask(SIG_BLOCK, &ends, NULL);
        (void) signal(SIGPIPE, SIG_IGN);

        r = secrets_read(&bmc);
        if (r >= 0)
                r = bmc_listen(&bmc);
        if (r < 0)
                return EXIT_FAILURE;

        (void) sd_notify(false, "READY=1");
        (void) sigwait(&ends, &number);
        (void) sd_notify(false, "STOPPING=1");
        return EXIT_SUCCESS;
}
