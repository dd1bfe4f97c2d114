/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c - runner [-v] [--list] [--check] [--pcap-dir DIR] FILE|DIRECTORY ...
 *
 * Each script runs in a process of its own with a time limit, so that a core that dies or never
 * ends a turn fails one script. Exit: 0 all held (or --help), 1 some did not, 2 usage or a script
 * that cannot be read. --list prints name and rule, --check only reads them.
 */
#include "world.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <dirent.h>

#define LIMIT_S 60

static struct {
	bool verbose, list, check;
	const char *pcap_dir;
	char **files;
	size_t n, cap;
} run;

static void
add_file(const char *path)
{
	if (run.n == run.cap) {
		run.cap = run.cap ? 2 * run.cap : 64;
		run.files = realloc(run.files, run.cap * sizeof(*run.files));
		if (run.files == NULL)
			abort();
	}
	run.files[run.n++] = strdup(path);
}

static bool
ends_in_scn(const char *name)
{
	size_t n = strlen(name);

	return n > 4 && !strcmp(name + n - 4, ".scn");
}

static bool
add_path(const char *path)
{
	struct dirent **names;
	struct stat st;
	int n;

	if (stat(path, &st) != 0) {
		fprintf(stderr, "runner: %s: %s\n", path, strerror(errno));
		return false;
	}
	if (!S_ISDIR(st.st_mode)) {
		add_file(path);
		return true;
	}
	n = scandir(path, &names, NULL, versionsort);
	for (int i = 0; i < n; i++) {
		char sub[1024];

		snprintf(sub, sizeof(sub), "%s/%s", path, names[i]->d_name);
		if (names[i]->d_name[0] != '.' && stat(sub, &st) == 0) {
			if (S_ISDIR(st.st_mode))
				add_path(sub);
			else if (ends_in_scn(sub))
				add_file(sub);
		}
		free(names[i]);
	}
	free(names);
	return true;
}

/* The engine's own assertions end here: say what led to them. */
static void
on_signal(int sig)
{
	signal(sig, SIG_DFL);
	world_dump_now();
	raise(sig);
}

static int
run_here(const char *path)
{
	char err[512];
	struct script *s = script_load(path, err, sizeof(err));
	int rc = 0;

	if (s == NULL) {
		fprintf(stderr, "%s\n", err);
		return 2;
	}
	if (run.list)
		printf("%s: %s\n", path, s->title);
	else if (!run.check) {
		signal(SIGABRT, on_signal);
		signal(SIGALRM, on_signal);
		alarm(LIMIT_S);
		rc = world_run(s, run.verbose, run.pcap_dir) ? 0 : 1;
		alarm(0);
	}
	script_free(s);
	return rc;
}

static int
run_child(const char *path)
{
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return 2;
	if (pid == 0) {
		int rc = run_here(path);

		fflush(stdout);
		exit(rc);
	}
	if (waitpid(pid, &status, 0) < 0)
		return 2;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	printf("%s: ended by signal %d (%s)\n", path, WTERMSIG(status),
		strsignal(WTERMSIG(status)));
	return 1;
}

static void
usage(FILE *out, const char *name)
{
	fprintf(out,
		"usage: %s [-v] [--list] [--check] [--pcap-dir DIR] "
		"FILE|DIRECTORY ...\n",
		name);
}

static bool
parse_args(int argc, char **argv)
{
	static const struct option longs[] = {{"list", no_argument, NULL, 'l'},
		{"check", no_argument, NULL, 'c'}, {"pcap-dir", required_argument, NULL, 'p'},
		{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	int c;

	run.pcap_dir = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
	while ((c = getopt_long(argc, argv, "vh", longs, NULL)) != -1) {
		if (c == 'v')
			run.verbose = true;
		else if (c == 'l')
			run.list = true;
		else if (c == 'c')
			run.check = true;
		else if (c == 'p')
			run.pcap_dir = optarg;
		else if (c == 'h') {
			usage(stdout, argv[0]);
			exit(0);
		} else
			return false;
	}
	for (int i = optind; i < argc; i++)
		if (!add_path(argv[i]))
			return false;
	return run.n != 0;
}

int
main(int argc, char **argv)
{
	size_t bad = 0;
	int worst = 0;

	if (!parse_args(argc, argv)) {
		usage(stderr, argv[0]);
		return 2;
	}
	for (size_t i = 0; i < run.n; i++) {
		int rc = run.n == 1 ? run_here(run.files[i]) : run_child(run.files[i]);

		if (rc != 0)
			bad++;
		if (rc > worst)
			worst = rc;
		if (!run.list)
			printf("%s %s\n", rc == 0 ? "pass" : "FAIL", run.files[i]);
		free(run.files[i]);
	}
	if (run.n > 1 && !run.list)
		printf("%zu scripts, %zu failed\n", run.n, bad);
	free(run.files);
	return worst;
}
