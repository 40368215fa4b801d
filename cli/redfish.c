/* SPDX-License-Identifier: MIT */
/* gpuagent-redfish: asks a tray's BMC, as gpuagentctl.yaml says where it is, and prints its answer. Run by
 * gpuagentctl redfish, whose messages and exit codes it has. */
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/array.h"
#include "agent/base/io.h"
#include "agent/base/text.h"
#include "agent/config/client-config.h"
#include "cli/print.h"
#include "cli/redfish-body.h"

#define BODY_MAX     ((size_t) 1 << 20)
#define PASSWORD_MAX 4096
#define PATH_LENGTH  1024

#define TIMEOUT_USEC         (30 * USEC_PER_SEC)
#define CONNECT_TIMEOUT_USEC (10 * USEC_PER_SEC)

typedef struct Question {
        const char *config_path;
        const char *tray, *path;
        usec_t timeout_usec;
        OutputMode output;
} Question;

typedef struct Answer {
        long status;
        char *body;
        size_t size;
        bool too_long;
        char error[CURL_ERROR_SIZE]; /* of the transfer */
} Answer;

static void answer_done(Answer *answer) {
        free(answer->body);
}

static void curl_done(CURL **curl) {
        if (*curl)
                curl_easy_cleanup(*curl);
}

static void curl_list_done(struct curl_slist **list) {
        if (*list)
                curl_slist_free_all(*list);
}

static void secret_done(char **secret) {
        if (!*secret)
                return;
        explicit_bzero(*secret, strlen(*secret));
        free(*secret);
}

/* A path and perhaps a query, nothing that could lead elsewhere than to the BMC's Redfish service. */
static bool path_is_valid(const char *path) {
        const char *rest = startswith(path, "/redfish");

        if (!rest || (rest[0] != '\0' && rest[0] != '/') || strlen(path) > PATH_LENGTH ||
                        strstr(path, "/.."))
                return false;
        for (; *rest != '\0'; rest++)
                if (*rest <= ' ' || *rest > '~' || *rest == '#')
                        return false;
        return true;
}

static size_t on_body(char *data, size_t one, size_t size, void *userdata) {
        Answer *answer = userdata;

        if (size > BODY_MAX - answer->size) {
                answer->too_long = true;
                return 0;
        }
        if (array_reserve(&answer->body, answer->size, size + 1) < 0)
                return 0;
        memcpy(answer->body + answer->size, data, size);
        answer->size += size;
        answer->body[answer->size] = '\0';
        return size;
}

/* Only http and https, wherever the URL comes from; curl's redirects stay switched off, which could carry
 * the password to another host, and the environment has no proxy to say. */
static CURLcode curl_set_bounds(CURL *curl, const Question *question) {
        usec_t timeout = question->timeout_usec;
        usec_t connect = timeout < CONNECT_TIMEOUT_USEC ? timeout : CONNECT_TIMEOUT_USEC;
        CURLcode code;

#if LIBCURL_VERSION_NUM >= 0x075500
        code = curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
        code = curl_easy_setopt(curl, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
        if (code == CURLE_OK)
                code = curl_easy_setopt(curl, CURLOPT_PROXY, "");
        if (code == CURLE_OK)
                code = curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
        if (code == CURLE_OK)
                code = curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
        if (code == CURLE_OK)
                code = curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long) (timeout / USEC_PER_MSEC));
        if (code == CURLE_OK)
                code = curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long) (connect / USEC_PER_MSEC));
        return code;
}

static CURLcode curl_set_identity(CURL *curl, const ClientBmc *bmc, const char *password) {
        CURLcode code = CURLE_OK;

        if (!bmc->verify) {
                code = curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
                if (code == CURLE_OK)
                        code = curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
        }
        if (code == CURLE_OK && bmc->ca_file[0] != '\0')
                code = curl_easy_setopt(curl, CURLOPT_CAINFO, bmc->ca_file);
        if (code == CURLE_OK && password)
                code = curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long) CURLAUTH_BASIC);
        if (code == CURLE_OK && password)
                code = curl_easy_setopt(curl, CURLOPT_USERNAME, bmc->user);
        if (code == CURLE_OK && password)
                code = curl_easy_setopt(curl, CURLOPT_PASSWORD, password);
        return code;
}

/* 0 and *ret, with a body that may be empty · negative, and *failure says why. */
static int ask(const Question *question, const ClientBmc *bmc, const char *password, Answer *ret,
                Failure *failure) {
        CLEANUP(curl_list_done) struct curl_slist *headers = NULL;
        CLEANUP(curl_done) CURL *curl = curl_easy_init();
        CLEANUP(free_ptr) char *url = NULL;
        size_t n = strlen(bmc->url);
        CURLcode code = CURLE_OUT_OF_MEMORY;

        while (n > 0 && bmc->url[n - 1] == '/')
                n--;
        headers = curl_slist_append(NULL, "Accept: application/json");
        if (!curl || !headers || asprintf(&url, "%.*s%s", (int) n, bmc->url, question->path) < 0)
                return failure_errno(failure, -ENOMEM, "cannot ask the BMC of %s", bmc->tray);

        code = curl_set_bounds(curl, question);
        if (code == CURLE_OK)
                code = curl_set_identity(curl, bmc, password);
        if (code == CURLE_OK)
                code = curl_easy_setopt(curl, CURLOPT_URL, url);
        if (code == CURLE_OK)
                code = curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
        if (code == CURLE_OK)
                code = curl_easy_setopt(curl, CURLOPT_USERAGENT, "gpuagentctl/" VERSION);
        if (code == CURLE_OK)
                code = curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, ret->error);
        if (code == CURLE_OK)
                code = curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
        if (code == CURLE_OK)
                code = curl_easy_setopt(curl, CURLOPT_WRITEDATA, ret);
        if (code == CURLE_OK)
                code = curl_easy_perform(curl);
        if (code == CURLE_OK)
                code = curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &ret->status);
        if (ret->too_long)
                return failure_set(failure, CLI_FAILED, "the answer of the BMC of %s is longer than 1 MiB",
                                bmc->tray);
        if (code != CURLE_OK) {
                text_sanitize(ret->error);
                return failure_set(failure, CLI_FAILED, "the BMC of %s, %s: %s", bmc->tray, bmc->url,
                                ret->error[0] != '\0' ? ret->error : curl_easy_strerror(code));
        }
        return 0;
}

static int check_status(const Question *question, const Answer *answer, Failure *failure) {
        CLEANUP(free_ptr) char *message = NULL;

        if (answer->status == 200)
                return 0;
        if (answer->status == 401 || answer->status == 403)
                return failure_set(failure, CLI_DENIED,
                                "the BMC of %s refuses the user or the password (%ld)", question->tray,
                                answer->status);
        if (answer->status == 404)
                return failure_set(failure, CLI_FAILED, "the BMC of %s has no %s", question->tray,
                                question->path);
        (void) redfish_body_error(answer->body ?: "", answer->size, &message);
        return failure_set(failure, CLI_FAILED, "the BMC of %s answers %ld%s%s", question->tray,
                        answer->status, message ? ": " : "", message ?: "");
}

/* 0 and *ret (to be wiped and freed; NULL for no login) · negative, and *failure says why. */
static int password_read(const ClientBmc *bmc, char **ret, Failure *failure) {
        CLEANUP(secret_done) char *text = NULL;
        int r;

        if (bmc->user[0] == '\0') {
                *ret = NULL;
                return 0;
        }
        if (bmc->password_file[0] == '\0')
                return failure_set(failure, CLI_FAILED, "client.bmc.%s has a user, and no password-file",
                                bmc->tray);
        r = file_read(AT_FDCWD, bmc->password_file, PASSWORD_MAX, &text, NULL);
        if (r < 0)
                return failure_errno(failure, r, "cannot read the password, %s", bmc->password_file);
        text[strcspn(text, "\r\n")] = '\0';
        *ret = take_ptr(&text);
        return 0;
}

static int config_find_bmc(
                const ClientConfig *config, const char *tray, const ClientBmc **ret, Failure *failure) {
        const ClientBmc *bmc = client_config_bmc(config, tray);

        if (!bmc || bmc->url[0] == '\0')
                return failure_set(failure, CLI_FAILED,
                                "no BMC is configured for '%s': give client.bmc.%s.url in gpuagentctl.yaml",
                                tray, tray);
        *ret = bmc;
        return 0;
}

static int run(const Question *question, Failure *failure) {
        CLEANUP(client_config_free_ptr) ClientConfig *config = NULL;
        CLEANUP(secret_done) char *password = NULL;
        CLEANUP(answer_done) Answer answer = {};
        CLEANUP(free_ptr) char *message = NULL, *text = NULL;
        const ClientBmc *bmc = NULL;
        int r;

        r = client_config_load(question->config_path, &config, &message);
        if (r < 0)
                return failure_set(failure, CLI_FAILED, "%s", message ?: strerror(-r));
        r = config_find_bmc(config, question->tray, &bmc, failure);
        if (r >= 0)
                r = password_read(bmc, &password, failure);
        if (r >= 0)
                r = ask(question, bmc, password, &answer, failure);
        if (r >= 0)
                r = check_status(question, &answer, failure);
        if (r < 0)
                return r;

        r = redfish_body_format(answer.body ?: "", answer.size, question->output, &text);
        if (r == -EINVAL)
                return failure_set(failure, CLI_FAILED, "the BMC of %s answers something that is not JSON",
                                question->tray);
        if (r < 0)
                return failure_errno(failure, r, "cannot read the answer of %s", question->tray);
        if (puts(text) == EOF || fflush(stdout) == EOF)
                return failure_errno(failure, -errno, "cannot write the output");
        return 0;
}

/* CLI_DONE, or the exit code. */
static int arguments_read(int argc, char **argv, Question *ret) {
        static const struct option options[] = {
                { "config", required_argument, NULL, 'c' },
                { "timeout", required_argument, NULL, 't' },
                { "short", no_argument, NULL, 's' },
                {},
        };
        int option;

        while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0)
                switch (option) {
                case 'c': ret->config_path = optarg; break;
                case 't':
                        if (parse_duration(optarg, &ret->timeout_usec) < 0 ||
                                        ret->timeout_usec < USEC_PER_MSEC)
                                return fail_with(CLI_USAGE, "--timeout=%s: give seconds, more than 0",
                                                optarg);
                        break;
                case 's': ret->output = OUTPUT_JSON_SHORT; break;
                default: return CLI_USAGE;
                }
        if (argc - optind != 2)
                return fail_with(CLI_USAGE, "the command is: redfish TRAY PATH");
        ret->tray = argv[optind];
        ret->path = argv[optind + 1];
        if (!host_is_valid(ret->tray) || strchr(ret->tray, '@'))
                return fail_with(CLI_USAGE, "'%s' is no name of a tray", ret->tray);
        if (!path_is_valid(ret->path))
                return fail_with(CLI_USAGE, "'%s' is no path of Redfish, such as /redfish/v1", ret->path);
        return CLI_DONE;
}

int main(int argc, char **argv) {
        CLEANUP(failure_done) Failure failure = {};
        Question question = { .timeout_usec = TIMEOUT_USEC, .output = OUTPUT_JSON_PRETTY };
        int r;

        r = arguments_read(argc, argv, &question);
        if (r != CLI_DONE)
                return r;
        if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
                return fail_with(CLI_FAILED, "cannot start libcurl");
        r = run(&question, &failure);
        curl_global_cleanup();
        return r < 0 ? failure_report(&failure) : CLI_DONE;
}
