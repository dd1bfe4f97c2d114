/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * json.h - where --json writes. The file is opened before the run, so that a name that cannot be
 * written is known at once; what it held stays until the figures are there. Main thread only.
 */
#ifndef CORQ_APP_JSON_H
#define CORQ_APP_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct app_json {
	const char *path;
	FILE *out;    /* NULL: no JSON wanted */
	bool created; /* the file was not there before, and nothing is written yet */
};

/* path: NULL none, "-" standard output. 0, or an exit code (the error line is out). */
int app_json_open(struct app_json *json, const char *path);
/* Text for people goes here: standard output, unless that is the JSON's. */
FILE *app_json_text(const struct app_json *json);
/* Writes o and takes it. 0, or an exit code (the error line is out). */
int app_json_write(struct app_json *json, json_t *o);
/* Takes an empty file away that was made for nothing. */
void app_json_close(struct app_json *json);

#endif
