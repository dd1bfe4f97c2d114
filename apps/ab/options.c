/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.c - see options.h. Letters mean what they mean in ab 2.4; what is new has a long name.
 */
#include "ab/options.h"
#include "ab/times.h"
#include "common/addr.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_MIN 2304 /* of a socket on Linux; no peer fills windows of a few bytes */

enum {
	OPT_HELP = APP_OPT_OWN,
	OPT_VERSION,
	OPT_SIZE,
	OPT_ONE_CORE,
	OPT_HALF_OPEN,
	OPT_PAUSE_MS,
	OPT_PAUSE_AT,
	OPT_AB_STRICT,
	OPT_EXACT,
};

static const struct option long_options[] = {
	APP_DEVICE_LONG,
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{"size", required_argument, NULL, OPT_SIZE},
	{"loop-one-core", no_argument, NULL, OPT_ONE_CORE},
	{"half-open", required_argument, NULL, OPT_HALF_OPEN},
	{"pause-ms", required_argument, NULL, OPT_PAUSE_MS},
	{"pause-at", required_argument, NULL, OPT_PAUSE_AT},
	{"ab-strict", no_argument, NULL, OPT_AB_STRICT},
	{"exact-times", required_argument, NULL, OPT_EXACT},
	{NULL, 0, NULL, 0},
};

static int
read_body(struct ab_options *opts, int letter, const char *path)
{
	struct stat st;
	size_t at = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		app_error("-%c: cannot read '%s': %s", letter, path,
			fd < 0 ? strerror(errno) : "it is no regular file");
		if (fd >= 0)
			close(fd);
		return APP_USAGE;
	}
	opts->body_len = (size_t)st.st_size;
	opts->body = malloc(opts->body_len + 1);
	while (opts->body != NULL && at < opts->body_len) {
		ssize_t n = read(fd, (char *)opts->body + at, opts->body_len - at);

		if (n <= 0)
			break;
		at += (size_t)n;
	}
	close(fd);
	if (opts->body == NULL || at < opts->body_len) {
		app_error("-%c: cannot read '%s': %s", letter, path,
			opts->body == NULL ? "not enough memory" : "it ended early");
		return APP_FAILED;
	}
	return APP_OK;
}

/* Appends between, text and after to *list. */
static int
append(char **list, const char *between, const char *text, const char *after)
{
	size_t have = *list == NULL ? 0 : strlen(*list);
	char *grown = realloc(*list, have + strlen(between) + strlen(text) + strlen(after) + 1);

	if (grown == NULL) {
		app_error("not enough memory");
		return APP_FAILED;
	}
	strcpy(stpcpy(stpcpy(grown + have, between), text), after);
	*list = grown;
	return APP_OK;
}

static int
add_header(struct ab_options *opts, const char *line)
{
	if (strpbrk(line, "\r\n") != NULL || strchr(line, ':') == NULL) {
		app_error("-H: '%s' is no header line; write 'Name: value'", line);
		return APP_USAGE;
	}
	opts->host_given |= strncasecmp(line, "Host:", 5) == 0;
	opts->accept_given |= strncasecmp(line, "Accept:", 7) == 0;
	opts->agent_given |= strncasecmp(line, "User-Agent:", 11) == 0;
	return append(&opts->headers, "", line, "\r\n");
}

static int
add_cookie(struct ab_options *opts, const char *cookie)
{
	if (strpbrk(cookie, "\r\n") != NULL || *cookie == '\0') {
		app_error("-C: a cookie is NAME=VALUE, on one line");
		return APP_USAGE;
	}
	return append(&opts->cookies, opts->cookies != NULL ? "; " : "", cookie, "");
}

static int
add_auth(struct ab_options *opts, int letter, const char *user_pass)
{
	size_t len = strlen(user_pass);
	unsigned char *text = malloc(len / 3 * 4 + 5);
	int rc;

	if (text == NULL) {
		app_error("not enough memory");
		return APP_FAILED;
	}
	EVP_EncodeBlock(text, (const unsigned char *)user_pass, (int)len);
	rc = append(&opts->auth,
		letter == 'A' ? "Authorization: Basic " : "Proxy-Authorization: Basic ",
		(char *)text, "\r\n");
	free(text);
	return rc;
}

static int
set_proxy(struct ab_options *opts, const char *arg)
{
	char text[APP_HOST_MAX + 16];
	const char *error = "it is too long";

	if (strchr(arg, '/') != NULL)
		error = "write HOST or HOST:PORT";
	else if ((size_t)snprintf(text, sizeof(text), "%s/", arg) < sizeof(text))
		error = app_url_parse(text, &opts->proxy);
	if (error == NULL && opts->proxy.bracketed)
		error = "IPv6 is not there yet";
	if (error != NULL) {
		app_error("-X: '%s': %s", arg, error);
		return APP_USAGE;
	}
	opts->proxy.path = NULL;
	opts->via_proxy = true;
	return APP_OK;
}

static int
set_bind(struct ab_options *opts, const char *arg)
{
	if (!app_addr_parse(arg, &opts->bind) || !app_addr_is_v4(&opts->bind)) {
		app_error("-B: '%s' is no IPv4 address", arg);
		return APP_USAGE;
	}
	opts->bind_given = true;
	return APP_OK;
}

/* -i, -p, -u: as in ab none of them stands after another one or after -m. */
static int
set_fixed_method(struct ab_options *opts, int letter, const char *method)
{
	if (opts->method != NULL) {
		app_error("Cannot mix %s with other methods (-%c after %s)", method, letter,
			opts->method);
		return APP_USAGE;
	}
	opts->method = method;
	return APP_OK;
}

static int
set_method(struct ab_options *opts, const char *method)
{
	for (const char *p = method; *p != '\0'; p++) {
		if ((unsigned char)*p <= ' ' || *p == '\x7f') {
			app_error("-m: '%s' is no method name", method);
			return APP_USAGE;
		}
	}
	if (*method == '\0') {
		app_error("-m: the method is empty");
		return APP_USAGE;
	}
	opts->method = method;
	return APP_OK;
}

/* -b: what is below the least that the kernel would give is raised to it. */
static bool
take_buffers(struct corq_config *config, const char *arg)
{
	uint32_t bytes;

	if (!app_option_u32("-b", arg, 0, 1u << 30, &bytes))
		return false;
	if (bytes != 0 && bytes < BUFFER_MIN)
		bytes = BUFFER_MIN;
	config->snd_buf = config->rcv_buf = bytes;
	return true;
}

static bool
take_number(struct ab_options *opts, int opt, const char *arg)
{
	switch (opt) {
	case 'n':
		return app_option_u64("-n", arg, 1, 1000000000000ull, &opts->requests);
	case 'c':
		return app_option_u32("-c", arg, 1, 1u << 20, &opts->concurrency);
	case 't':
		opts->requests = 50000;
		return app_option_u32("-t", arg, 0, 1u << 24, &opts->time_limit_s);
	case 's':
		return app_option_u32("-s", arg, 1, 86400, &opts->timeout_s);
	case 'b':
		return take_buffers(&opts->device.config, arg);
	case 'v':
		return app_option_u32("-v", arg, 0, 100, &opts->verbosity);
	case OPT_SIZE:
		return app_option_u32("--size", arg, 0, 1u << 30, &opts->page_size);
	case OPT_HALF_OPEN:
		return app_option_u32("--half-open", arg, 1, 1u << 20, &opts->half_open_max);
	case OPT_PAUSE_MS:
		return app_option_u32("--pause-ms", arg, 1, 60000, &opts->pause_ms);
	case OPT_EXACT:
		return app_option_u64("--exact-times", arg, 0, AB_RECORDS_MAX, &opts->exact_times);
	default:
		return app_option_u32("--pause-at", arg, 1, 3600, &opts->pause_at_s);
	}
}

/* What shapes the request: exit code, 0, or -1: the option is none of these. */
static int
take_request(struct ab_options *opts, int opt, const char *arg)
{
	int rc;

	switch (opt) {
	case 'T':
		opts->content_type = arg;
		return APP_OK;
	case 'H':
		return add_header(opts, arg);
	case 'C':
		return add_cookie(opts, arg);
	case 'A':
	case 'P':
		return add_auth(opts, opt, arg);
	case 'X':
		return set_proxy(opts, arg);
	case 'm':
		return set_method(opts, arg);
	case 'i':
		return set_fixed_method(opts, opt, "HEAD");
	case 'p':
	case 'u':
		rc = set_fixed_method(opts, opt, opt == 'p' ? "POST" : "PUT");
		return rc != APP_OK ? rc : read_body(opts, opt, arg);
	default:
		return -1;
	}
}

/* What shapes the report, and switches: true if the option is one of these. */
static bool
take_report(struct ab_options *opts, int opt, const char *arg)
{
	switch (opt) {
	case 'k':
		return opts->keepalive = true;
	case 'q':
		return opts->quiet = true;
	case 'r':
		return opts->recv_ok = true;
	case 'l':
		return opts->any_length = true;
	case 'd':
		return opts->no_percentages = true;
	case 'S':
		return opts->no_deviation = true;
	case 'w':
		return opts->html = true;
	case 'x':
		opts->table_attrs = arg;
		return opts->html = true;
	case 'y':
		opts->row_attrs = arg;
		return opts->html = true;
	case 'z':
		opts->cell_attrs = arg;
		return opts->html = true;
	case 'e':
		opts->csv = arg;
		return true;
	case 'g':
		opts->gnuplot = arg;
		return true;
	case OPT_AB_STRICT:
		return opts->ab_strict = true;
	case OPT_ONE_CORE:
		return opts->device.config.loop_one_core = true;
	default:
		return false;
	}
}

/* Exit code, or 0 to go on, or -1 when help or version is out. */
static int
take_option(struct ab_options *opts, int opt, const char *arg)
{
	int rc;

	switch (opt) {
	case 'B':
		return set_bind(opts, arg);
	case 'Z':
	case 'f':
	case 'E':
	case 'I':
		app_error("-%c is for TLS, which is not there yet; leave it out and use http://",
			opt);
		return APP_USAGE;
	case 'h':
	case OPT_HELP:
		ab_options_usage(stdout);
		return -1;
	case 'V':
	case OPT_VERSION:
		puts("corq ab " CORQ_VERSION);
		return -1;
	default:
		break;
	}
	if (take_report(opts, opt, arg))
		return APP_OK;
	rc = take_request(opts, opt, arg);
	if (rc >= 0)
		return rc;
	rc = app_device_option(&opts->device, opt, arg);
	if (rc != 0)
		return rc > 0 ? APP_OK : APP_USAGE;
	return take_number(opts, opt, arg) ? APP_OK : APP_USAGE;
}

static int
take_url(struct ab_options *opts, int argc, char **argv)
{
	const char *error;

	if (argc - optind > 1) {
		app_error("one URL is enough; '%s' is left over", argv[optind + 1]);
		return APP_USAGE;
	}
	if (argc == optind) {
		if (app_device_is_loop(&opts->device) && !opts->via_proxy)
			return APP_OK;
		app_error("which URL? http://host[:port]/path is missing");
		return APP_USAGE;
	}
	error = app_url_parse(argv[optind], &opts->url);
	if (error != NULL) {
		app_error("invalid URL '%s': %s", argv[optind], error);
		return APP_USAGE;
	}
	if (opts->url.bracketed) {
		app_error("invalid URL '%s': IPv6 is not there yet; use an IPv4 address",
			argv[optind]);
		return APP_USAGE;
	}
	opts->url_text = argv[optind];
	return APP_OK;
}

static int
check(const struct ab_options *opts)
{
	unsigned cores = opts->device.config.cores == 0 ? 1 : opts->device.config.cores;
	uint32_t max = opts->device.config.max_conns;

	if (opts->concurrency > opts->requests) {
		app_error("Cannot use concurrency level greater than total number of requests "
			  "(-c %u, -n %llu)",
			opts->concurrency, (unsigned long long)opts->requests);
		return APP_USAGE;
	}
	if (max != 0 && opts->concurrency / cores > max) {
		app_error("-c %u does not fit --max-conns %u on --cores %u", opts->concurrency, max,
			cores);
		return APP_USAGE;
	}
	if (opts->gnuplot != NULL && opts->requests > AB_RECORDS_MAX) {
		app_error("-g keeps a record of each request: -n %llu is above %llu; use -e",
			(unsigned long long)opts->requests, AB_RECORDS_MAX);
		return APP_USAGE;
	}
	if (opts->device.config.loop_one_core && !app_device_is_loop(&opts->device)) {
		app_error("--loop-one-core is for --dev loop");
		return APP_USAGE;
	}
	if ((opts->pause_ms != 0) != (opts->pause_at_s != 0)) {
		app_error("--pause-ms and --pause-at need each other");
		return APP_USAGE;
	}
	return APP_OK;
}

int
ab_options_parse(struct ab_options *opts, int argc, char **argv)
{
	/* Every letter of ab 2.4. */
	static const char letters[] =
		":n:c:t:s:kqv:H:m:p:T:rlhVb:B:u:wix:y:z:C:A:P:X:dSg:e:Z:f:E:I";
	int opt, rc = 0;

	memset(opts, 0, sizeof(*opts));
	app_device_init(&opts->device);
	opts->requests = 1;
	opts->concurrency = 1;
	opts->timeout_s = 30;
	opts->page_size = 100;
	opts->half_open_max = 256;
	opts->exact_times = AB_SAMPLES_MAX;
	opts->table_attrs = opts->row_attrs = "";
	opts->cell_attrs = "bgcolor=white";
	opts->device.close = CORQ_CLOSE_AFTER_PEER;
	argc = app_device_split(&opts->device, argc, argv);
	while (rc == 0 && (opt = app_next_option(argc, argv, letters, long_options)) != -1)
		rc = opt == '?' ? APP_USAGE : take_option(opts, opt, optarg);
	if (rc == 0)
		rc = take_url(opts, argc, argv);
	return rc != 0 ? rc : check(opts);
}

void
ab_options_free(struct ab_options *opts)
{
	free(opts->headers);
	free(opts->auth);
	free(opts->cookies);
	free(opts->body);
}
