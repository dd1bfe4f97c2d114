/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.c - see options.h.
 */
#include "httpd/options.h"

#include <string.h>

enum {
	OPT_HELP = APP_OPT_OWN,
	OPT_VERSION,
	OPT_PORT,
	OPT_SIZE,
	OPT_NO_LIST,
	OPT_UPLOAD,
	OPT_UPLOAD_MAX,
	OPT_UPLOAD_DIGEST,
	OPT_HEADER_TIMEOUT,
	OPT_IDLE_TIMEOUT,
	OPT_SEND_TIMEOUT,
	OPT_MIN_RATE,
	OPT_MAX_REQUESTS,
	OPT_ACCESS_LOG,
	OPT_ACCESS_SAMPLE,
};

#define TIMEOUT_MAX 300 /* seconds: a connection's stamp goes round after 18 minutes */

static const struct option long_options[] = {
	APP_DEVICE_LONG,
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{"port", required_argument, NULL, OPT_PORT},
	{"size", required_argument, NULL, OPT_SIZE},
	{"no-list", no_argument, NULL, OPT_NO_LIST},
	{"upload", required_argument, NULL, OPT_UPLOAD},
	{"upload-max", required_argument, NULL, OPT_UPLOAD_MAX},
	{"upload-digest", no_argument, NULL, OPT_UPLOAD_DIGEST},
	{"header-timeout", required_argument, NULL, OPT_HEADER_TIMEOUT},
	{"idle-timeout", required_argument, NULL, OPT_IDLE_TIMEOUT},
	{"send-timeout", required_argument, NULL, OPT_SEND_TIMEOUT},
	{"min-rate", required_argument, NULL, OPT_MIN_RATE},
	{"max-requests", required_argument, NULL, OPT_MAX_REQUESTS},
	{"access-log", required_argument, NULL, OPT_ACCESS_LOG},
	{"access-sample", required_argument, NULL, OPT_ACCESS_SAMPLE},
	{NULL, 0, NULL, 0},
};

void
httpd_usage(FILE *out)
{
	fputs("usage: corq httpd --dev DEVICE --ip A/LEN [options] (--size BYTES | DIRECTORY)\n"
	      "               [-- EAL arguments]\n"
	      "Serves HTTP/1.0 and 1.1 until SIGINT, SIGTERM or SIGHUP, then prints its counts.\n"
	      "what:\n"
	      "  DIRECTORY     its files, read once at start: what changes later is not seen. "
	      "Names\n"
	      "                that start with a dot and links that lead out are left out\n"
	      "  --size BYTES  a page of so many bytes for every path\n"
	      "  --no-list     a directory without index.html is 404, not a listing\n"
	      "  --upload PREFIX     below that path POST and PUT are answered with the number of\n"
	      "                bytes received, which are not kept (elsewhere, and without: 405)\n"
	      "  --upload-max BYTES  a longer body is refused, 413 (1073741824)\n"
	      "  --upload-digest     the answer has the body's SHA-256 too\n"
	      "Ranges and conditional requests work as RFC 9110 has them; the files have strong\n"
	      "ETags, of their bytes, and Last-Modified. A page of --size has neither.\n"
	      "connections:\n"
	      "  --port PORT         listen there (80)\n"
	      "  --close POLICY      who closes first: first (we, default), after-peer,\n"
	      "                      abort-if-empty, rst\n"
	      "  --max-requests N    close after so many on a connection (0: no bound)\n"
	      "limits of patience, in seconds, 1 to 300:\n"
	      "  --header-timeout S  for a header, from its first byte: else 408 (10)\n"
	      "  --idle-timeout S    between requests: then closed (30)\n"
	      "  --send-timeout S    a client that takes too little of an answer all that time is\n"
	      "                      reset (60)\n"
	      "  --min-rate BYTES    a second, is too little: of an answer, and of a body sent to "
	      "us,\n"
	      "                      looked at every --header-timeout: else 408 (1024)\n"
	      "A core keeps 1024 headers that came in part; the oldest gives way (408). A header "
	      "has\n"
	      "8 KiB at most (431), a target 4095 bytes (414), other bodies than uploads 1 MiB "
	      "(413).\n"
	      "output:\n"
	      "  --access-log FILE   a line a request, appended: Common Log Format, then "
	      "microseconds\n"
	      "                      from its first byte to the last acknowledged byte of the "
	      "answer,\n"
	      "                      and kept, closed, cut (by us) or reset\n"
	      "  --access-sample N   only every Nth request of a core (1)\n"
	      "  --json FILE         the counts as JSON at the end; - is standard output\n",
		out);
	app_device_usage(out, false);
}

/* ---- single options ---- */

/* A path as a request would name it; its last slash goes. */
static bool
take_upload(struct httpd_command *command, const char *arg)
{
	size_t len = strlen(arg);
	ssize_t n = len <= HTTPD_URL_MAX ? httpd_path_decode(arg, len, command->upload) : -1;

	if (arg[0] != '/' || n < 0) {
		app_error("--upload: '%.64s' is no path; it begins with '/', as in /upload", arg);
		return false;
	}
	if (command->upload[n - 1] == '/')
		command->upload[n - 1] = '\0';
	command->opts.upload = command->upload;
	return true;
}

static bool
take_number(struct httpd_opts *opts, int opt, const char *arg)
{
	uint32_t port;

	switch (opt) {
	case OPT_PORT:
		if (!app_option_u32("--port", arg, 1, 65535, &port))
			return false;
		opts->port = (uint16_t)port;
		return true;
	case OPT_SIZE:
		opts->fixed = true;
		return app_option_u32("--size", arg, 0, 1u << 30, &opts->size);
	case OPT_UPLOAD_MAX:
		return app_option_u64("--upload-max", arg, 1, 1ull << 50, &opts->upload_max);
	case OPT_HEADER_TIMEOUT:
		return app_option_u32("--header-timeout", arg, 1, TIMEOUT_MAX, &opts->header_s);
	case OPT_IDLE_TIMEOUT:
		return app_option_u32("--idle-timeout", arg, 1, TIMEOUT_MAX, &opts->idle_s);
	case OPT_SEND_TIMEOUT:
		return app_option_u32("--send-timeout", arg, 1, TIMEOUT_MAX, &opts->send_s);
	case OPT_MIN_RATE:
		return app_option_u32("--min-rate", arg, 0, 1u << 30, &opts->min_rate);
	case OPT_MAX_REQUESTS:
		return app_option_u32("--max-requests", arg, 0, 1000000, &opts->max_requests);
	default:
		return app_option_u32("--access-sample", arg, 1, 1u << 30, &opts->log_every);
	}
}

static int
take_option(struct httpd_command *command, int opt, const char *arg)
{
	switch (opt) {
	case 'h':
	case OPT_HELP:
		httpd_usage(stdout);
		return -1;
	case 'V':
	case OPT_VERSION:
		puts("corq httpd " CORQ_VERSION);
		return -1;
	case OPT_NO_LIST:
		command->opts.no_list = true;
		return APP_OK;
	case OPT_UPLOAD:
		return take_upload(command, arg) ? APP_OK : APP_USAGE;
	case OPT_UPLOAD_DIGEST:
		command->opts.upload_digest = true;
		return APP_OK;
	case OPT_ACCESS_LOG:
		command->access_log = arg;
		return APP_OK;
	default:
		break;
	}
	if (opt >= APP_OPT_OWN)
		return take_number(&command->opts, opt, arg) ? APP_OK : APP_USAGE;
	return app_device_option(&command->device, opt, arg) > 0 ? APP_OK : APP_USAGE;
}

/* ---- all of them together ---- */

/* Options that do nothing without another one. */
static int
check_pairs(const struct httpd_command *command)
{
	const struct httpd_opts *opts = &command->opts;

	if (opts->upload == NULL && (opts->upload_max != 0 || opts->upload_digest)) {
		app_error("%s is for uploads; --upload PREFIX says where they are taken",
			opts->upload_max != 0 ? "--upload-max" : "--upload-digest");
		return APP_USAGE;
	}
	if (command->access_log == NULL && opts->log_every != 0) {
		app_error("--access-sample is for the access log; add --access-log FILE");
		return APP_USAGE;
	}
	if (opts->no_list && opts->fixed) {
		app_error("--no-list is for a directory; --size has no listings");
		return APP_USAGE;
	}
	return APP_OK;
}

static int
check(struct httpd_command *command, int argc, char **argv)
{
	struct httpd_opts *opts = &command->opts;

	if (argc - optind > 1) {
		app_error("one directory is enough; '%s' is left over", argv[optind + 1]);
		return APP_USAGE;
	}
	opts->dir = argc > optind ? argv[optind] : NULL;
	if (opts->fixed == (opts->dir != NULL)) {
		app_error(opts->fixed ? "--size and a directory exclude each other"
				      : "what to serve? name a directory, or --size BYTES");
		return APP_USAGE;
	}
	if (command->device.config.peer_ip != NULL) {
		app_error("--peer-ip is for the loop device, which corq httpd cannot use");
		return APP_USAGE;
	}
	if (app_device_is_loop(&command->device)) {
		app_error("the loop device has no way in; --dev says which other one, see --help "
			  "(corq ab without a URL brings its own server)");
		return APP_USAGE;
	}
	return check_pairs(command);
}

int
httpd_options_parse(struct httpd_command *command, int argc, char **argv)
{
	int opt, rc = 0;

	app_device_init(&command->device);
	command->device.close = CORQ_CLOSE_FIRST;
	command->opts.port = 80;
	command->opts.min_rate = HTTPD_MIN_RATE;
	argc = app_device_split(&command->device, argc, argv);
	while (rc == 0 && (opt = app_next_option(argc, argv, ":hV", long_options)) != -1)
		rc = opt == '?' ? APP_USAGE : take_option(command, opt, optarg);
	if (rc == 0)
		rc = check(command, argc, argv);
	command->opts.close = command->device.close;
	command->opts.max_conns = command->device.config.max_conns;
	if (command->opts.log_every == 0)
		command->opts.log_every = 1;
	return rc;
}
