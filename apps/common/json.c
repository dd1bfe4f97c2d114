/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * json.c - see json.h.
 */
#include "common/json.h"
#include "common/app.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int
app_json_open(struct app_json *json, const char *path)
{
	int fd;

	memset(json, 0, sizeof(*json));
	if (path == NULL)
		return APP_OK;
	json->path = path;
	if (strcmp(path, "-") == 0) {
		json->out = stdout;
		return APP_OK;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	json->created = fd >= 0;
	if (fd < 0 && errno == EEXIST)
		fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0)
		json->out = fdopen(fd, "w");
	if (json->out != NULL)
		return APP_OK;
	app_error("--json: cannot write '%s': %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return APP_USAGE;
}

FILE *
app_json_text(const struct app_json *json)
{
	return json->out == stdout ? stderr : stdout;
}

/* 0 or an errno. */
static int
put(FILE *out, const json_t *o)
{
	/* A pipe or a terminal cannot be cut, and need not. */
	if (out != stdout && ftruncate(fileno(out), 0) != 0 && errno != EINVAL)
		return errno;
	errno = 0;
	if (json_dumpf(o, out, JSON_INDENT(2)) != 0 || fputc('\n', out) == EOF || fflush(out) != 0)
		return errno != 0 ? errno : EIO;
	return 0;
}

int
app_json_write(struct app_json *json, json_t *o)
{
	int error = put(json->out, o);

	json_decref(o);
	json->created = false;
	if (json->out != stdout && fclose(json->out) != 0 && error == 0)
		error = errno;
	json->out = NULL;
	if (error == 0)
		return APP_OK;
	app_error("--json: cannot write '%s': %s", json->path, strerror(error));
	return APP_FAILED;
}

void
app_json_close(struct app_json *json)
{
	if (json->out == NULL)
		return;
	if (json->created)
		unlink(json->path);
	if (json->out != stdout)
		fclose(json->out);
	json->out = NULL;
}
