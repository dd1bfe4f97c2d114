/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * json.h - where --json writes, see out.h; "-" is standard output. Main thread only.
 */
#ifndef CORQ_APP_JSON_H
#define CORQ_APP_JSON_H

#include "common/out.h"

#include <jansson.h>
#include <stdint.h>

struct app_json {
	struct app_out file; /* if it is not standard output */
	FILE *out;           /* NULL: no JSON wanted */
};

/* path: NULL none, "-" standard output. 0, or an exit code (the error line is out). */
int app_json_open(struct app_json *json, const char *path);
/* Text for people goes here: standard output, unless that is the JSON's. */
FILE *app_json_text(const struct app_json *json);
/* Writes o and takes it. 0, or an exit code (the error line is out). */
int app_json_write(struct app_json *json, json_t *o);
/* Takes an empty file away that was made for nothing. */
void app_json_close(struct app_json *json);
/* A string of text that may be anything, as arguments and names of files: what is no UTF-8 becomes
 * question marks. NULL gives null. */
json_t *app_json_string(const char *text);
/* A figure; below 0 it was not measured, which is null. */
json_t *app_json_real(double value);
void app_json_put(json_t *o, const char *key, uint64_t count);
void app_json_put_real(json_t *o, const char *key, double value);
/* The command line; the "--" that app_device_split cut out is in it. */
void app_json_put_arguments(json_t *o, int argc, char **argv);
/* "cpus", "kernel" and "host" of this machine. */
void app_json_put_machine(json_t *o);

#endif
