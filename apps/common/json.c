/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * json.c - see json.h.
 */
#include "common/json.h"
#include "common/app.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

int
app_json_open(struct app_json *json, const char *path)
{
	bool to_stdout = path != NULL && strcmp(path, "-") == 0;
	int rc = app_out_open(&json->file, "--json", to_stdout ? NULL : path);

	json->out = to_stdout ? stdout : json->file.file;
	return rc;
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
	errno = 0;
	if (json_dumpf(o, out, JSON_INDENT(2)) != 0 || fputc('\n', out) == EOF || fflush(out) != 0)
		return errno != 0 ? errno : EIO;
	return 0;
}

int
app_json_write(struct app_json *json, json_t *o)
{
	bool to_stdout = json->out == stdout;
	int error = to_stdout ? 0 : app_out_begin(&json->file);

	if (error == 0)
		error = put(json->out, o);
	json_decref(o);
	json->out = NULL;
	if (!to_stdout)
		return app_out_end(&json->file, error);
	if (error == 0)
		return APP_OK;
	app_error("--json: cannot write '-': %s", strerror(error));
	return APP_FAILED;
}

void
app_json_close(struct app_json *json)
{
	app_out_drop(&json->file);
	json->out = NULL;
}

json_t *
app_json_string(const char *text)
{
	json_t *o = text == NULL ? json_null() : json_string(text);
	char *plain;

	if (o != NULL)
		return o;
	plain = strdup(text);
	if (plain == NULL)
		return json_null();
	for (char *p = plain; *p != '\0'; p++)
		*p = (*p & 0x80) != 0 ? '?' : *p;
	o = json_string(plain);
	free(plain);
	return o;
}

json_t *
app_json_real(double value)
{
	return value < 0 ? json_null() : json_real(value);
}

void
app_json_put(json_t *o, const char *key, uint64_t count)
{
	json_object_set_new(o, key, json_integer((json_int_t)count));
}

void
app_json_put_real(json_t *o, const char *key, double value)
{
	json_object_set_new(o, key, app_json_real(value));
}

void
app_json_put_arguments(json_t *o, int argc, char **argv)
{
	json_t *args = json_array();

	for (int i = 0; i < argc; i++)
		json_array_append_new(args, app_json_string(argv[i] == NULL ? "--" : argv[i]));
	json_object_set_new(o, "arguments", args);
}

void
app_json_put_machine(json_t *o)
{
	struct utsname name;
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	uname(&name);
	app_json_put(o, "cpus", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
	json_object_set_new(o, "kernel", json_string(name.release));
	json_object_set_new(o, "host", app_json_string(host));
}
