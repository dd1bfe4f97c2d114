/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c - the binary `corq`: finds the subcommand and runs it.
 *
 * Exit codes: 0 done; 1 the run failed, or its output could not be written; 2 the command line
 * makes no sense. `corq ab` also ends with the number of the socket error that stopped it, as ab
 * does.
 */
#include "common/app.h"

#include <string.h>

static const struct app *const apps[] = {&app_ab, &app_httpd, &app_opensock, &app_closetest};
#define APPS (sizeof(apps) / sizeof(apps[0]))

static const struct app *
find(const char *name)
{
	for (size_t i = 0; i < APPS; i++) {
		if (strcmp(apps[i]->name, name) == 0)
			return apps[i];
	}
	app_error("there is no subcommand '%s'; corq --help lists them", name);
	return NULL;
}

static void
usage(FILE *out)
{
	fputs("usage: corq SUBCOMMAND [options] [-- EAL arguments]\n"
	      "       corq help SUBCOMMAND\n"
	      "       corq --version\n"
	      "subcommands:\n",
		out);
	for (size_t i = 0; i < APPS; i++)
		fprintf(out, "  %-9s %s\n", apps[i]->name, apps[i]->summary);
}

static int
help(int argc, char **argv)
{
	const struct app *app;

	if (argc > 3) {
		app_error("one subcommand at a time; '%s' is left over", argv[3]);
		return APP_USAGE;
	}
	if (argc < 3) {
		usage(stdout);
		return APP_OK;
	}
	app = find(argv[2]);
	if (app == NULL)
		return APP_USAGE;
	app->usage(stdout);
	return APP_OK;
}

static int
run(int argc, char **argv)
{
	static char name[32];
	const struct app *app;

	if (argc < 2) {
		app_error("which subcommand? corq --help lists them");
		return APP_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
		strcmp(argv[1], "help") == 0)
		return help(argc, argv);
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		puts("corq " CORQ_VERSION);
		return APP_OK;
	}
	app = find(argv[1]);
	if (app == NULL)
		return APP_USAGE;
	snprintf(name, sizeof(name), "corq %s", app->name);
	app_set_name(name);
	return app->run(argc - 1, argv + 1);
}

int
main(int argc, char **argv)
{
	app_guard_streams();
	return app_end(run(argc, argv));
}
