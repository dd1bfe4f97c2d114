/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.c - see options.h. Letters mean what they mean in ab 2.4; what is new has a long name.
 */
#include "ab/options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	OPT_HELP = APP_OPT_OWN,
	OPT_VERSION,
	OPT_SIZE,
	OPT_ONE_CORE,
	OPT_HALF_OPEN,
	OPT_PAUSE_MS,
	OPT_PAUSE_AT,
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
	{NULL, 0, NULL, 0},
};

void
ab_options_usage(FILE *out)
{
	fputs("usage: corq ab [options] [http://host[:port]/path] [-- EAL arguments]\n"
	      "Without --dev and URL it loads its own server over the loop device.\n"
	      "ab's options:\n"
	      "  -n REQUESTS   how many (1)\n"
	      "  -c SLOTS      how many at a time (1)\n"
	      "  -t SECONDS    at most so long; implies -n 50000 as in ab, so put -n after it\n"
	      "  -s SECONDS    wait so long for each response (30)\n"
	      "  -k            keep-alive\n"
	      "  -r            go on after receive errors\n"
	      "  -l            responses may differ in length\n"
	      "  -p FILE       POST the file; -T TYPE its content type (text/plain)\n"
	      "  -m METHOD     instead of GET\n"
	      "  -H HEADER     add a header line, or replace Host, User-Agent, Accept\n"
	      "  -q            no progress lines\n"
	      "  -v LEVEL      2: the request, response headers, warnings; 3: response codes too\n"
	      "load:\n"
	      "  --close POLICY  who closes first: first (we), after-peer (default),\n"
	      "                  abort-if-empty, rst\n"
	      "  --half-open N   SYNs outstanding on a core, at most (256)\n"
	      "  --pause-ms M    stop our cores for M ms, as a busy machine would, with\n"
	      "  --pause-at S    so many seconds after the first connect\n"
	      "  --size BYTES    loop: the page that the embedded server has (100)\n"
	      "report:\n"
	      "  --json FILE     the figures as JSON too; - is standard output\n",
		out);
	app_device_usage(out, true);
}

static int
read_body(struct ab_options *opts, const char *path)
{
	struct stat st;
	size_t at = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		app_error("-p: cannot read '%s': %s", path,
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
		app_error("-p: cannot read '%s': %s", path,
			opts->body == NULL ? "not enough memory" : "it ended early");
		return APP_FAILED;
	}
	return APP_OK;
}

static int
add_header(struct ab_options *opts, const char *line)
{
	size_t have = opts->headers == NULL ? 0 : strlen(opts->headers);
	char *grown;

	if (strpbrk(line, "\r\n") != NULL || strchr(line, ':') == NULL) {
		app_error("-H: '%s' is no header line; write 'Name: value'", line);
		return APP_USAGE;
	}
	grown = realloc(opts->headers, have + strlen(line) + 3);
	if (grown == NULL) {
		app_error("not enough memory");
		return APP_FAILED;
	}
	opts->headers = grown;
	strcpy(stpcpy(grown + have, line), "\r\n");
	opts->host_given |= strncasecmp(line, "Host:", 5) == 0;
	opts->accept_given |= strncasecmp(line, "Accept:", 7) == 0;
	opts->agent_given |= strncasecmp(line, "User-Agent:", 11) == 0;
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

static int
take_number(struct ab_options *opts, int opt, const char *arg)
{
	uint64_t v = 0;
	bool ok;

	switch (opt) {
	case 'n':
		ok = app_option_u64("-n", arg, 1, 1000000000000ull, &v);
		opts->requests = v;
		opts->requests_given = true;
		break;
	case 'c':
		ok = app_option_u64("-c", arg, 1, 1u << 22, &v);
		opts->concurrency = (uint32_t)v;
		break;
	case 't':
		ok = app_option_u64("-t", arg, 1, 1u << 24, &v);
		opts->time_limit_s = (uint32_t)v;
		opts->requests = 50000;
		opts->requests_given = false;
		break;
	case 's':
		ok = app_option_u64("-s", arg, 1, 86400, &v);
		opts->timeout_s = (uint32_t)v;
		break;
	case 'v':
		ok = app_option_u64("-v", arg, 0, 100, &v);
		opts->verbosity = (int)v;
		break;
	case OPT_SIZE:
		ok = app_option_u64("--size", arg, 0, 1u << 30, &v);
		opts->page_size = (uint32_t)v;
		break;
	case OPT_HALF_OPEN:
		ok = app_option_u64("--half-open", arg, 1, 1u << 20, &v);
		opts->half_open_max = (uint32_t)v;
		break;
	case OPT_PAUSE_MS:
		ok = app_option_u64("--pause-ms", arg, 1, 60000, &v);
		opts->pause_ms = (uint32_t)v;
		break;
	default:
		ok = app_option_u64("--pause-at", arg, 1, 3600, &v);
		opts->pause_at_ms = (uint32_t)v * 1000;
		break;
	}
	return ok ? APP_OK : APP_USAGE;
}

/* Exit code, or 0 to go on, or -1 when help or version is out. */
static int
take_option(struct ab_options *opts, int opt, const char *arg)
{
	int rc;

	switch (opt) {
	case 'k':
		opts->keepalive = true;
		return APP_OK;
	case 'q':
		opts->quiet = true;
		return APP_OK;
	case 'r':
		opts->recv_ok = true;
		return APP_OK;
	case 'l':
		opts->any_length = true;
		return APP_OK;
	case 'T':
		opts->content_type = arg;
		return APP_OK;
	case 'H':
		return add_header(opts, arg);
	case 'm':
		return set_method(opts, arg);
	case 'p':
		return read_body(opts, arg);
	case OPT_ONE_CORE:
		opts->device.config.loop_one_core = true;
		return APP_OK;
	case 'h':
	case OPT_HELP:
		ab_options_usage(stdout);
		return -1;
	case 'V':
	case OPT_VERSION:
		puts("corq ab " CORQ_VERSION);
		return -1;
	default:
		rc = app_device_option(&opts->device, opt, arg);
		if (rc != 0)
			return rc > 0 ? APP_OK : APP_USAGE;
		return take_number(opts, opt, arg);
	}
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
		if (app_device_is_loop(&opts->device))
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
	opts->url_given = true;
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
	if (opts->device.config.loop_one_core && !app_device_is_loop(&opts->device)) {
		app_error("--loop-one-core is for --dev loop");
		return APP_USAGE;
	}
	if ((opts->pause_ms != 0) != (opts->pause_at_ms != 0)) {
		app_error("--pause-ms and --pause-at need each other");
		return APP_USAGE;
	}
	return APP_OK;
}

int
ab_options_parse(struct ab_options *opts, int argc, char **argv)
{
	/* Every letter of ab 2.4: those that are not here yet are named, not called unknown. */
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
	opts->device.close = CORQ_CLOSE_AFTER_PEER;
	argc = app_device_split(&opts->device, argc, argv);
	optind = 1;
	opterr = 0;
	while (rc == 0 && (opt = getopt_long(argc, argv, letters, long_options, NULL)) != -1) {
		if (opt == '?' || opt == ':') {
			app_bad_option(argc, argv, opt);
			return APP_USAGE;
		}
		if (opt < 256 && strchr("bBuwixyzCAPXdSgeZfEI", opt) != NULL) {
			app_error("-%c of ab is not there yet; leave it out", opt);
			return APP_USAGE;
		}
		rc = take_option(opts, opt, optarg);
	}
	if (rc == 0)
		rc = take_url(opts, argc, argv);
	return rc != 0 ? rc : check(opts);
}
