/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * out.c - see out.h.
 */
#include "common/out.h"
#include "common/app.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int
open_fd(const char *path, bool *created)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	*created = fd >= 0;
	if (fd < 0 && errno == EEXIST)
		fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) /* a link to nothing yet */
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	return fd;
}

int
app_out_open(struct app_out *out, const char *option, const char *path)
{
	int fd;

	*out = (struct app_out){.option = option, .path = path};
	if (path == NULL)
		return APP_OK;
	fd = open_fd(path, &out->created);
	if (fd >= 0)
		out->file = fdopen(fd, "w");
	if (out->file != NULL)
		return APP_OK;
	app_error("%s: cannot write '%s': %s", option, path, strerror(errno));
	if (fd >= 0)
		close(fd);
	if (out->created)
		unlink(path);
	return APP_USAGE;
}

bool
app_out_same(const struct app_out *a, const struct app_out *b)
{
	struct stat x, y;

	if (a->file == NULL || b->file == NULL || fstat(fileno(a->file), &x) != 0 ||
		fstat(fileno(b->file), &y) != 0)
		return false;
	return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int
app_out_begin(struct app_out *out)
{
	out->created = false;
	/* A pipe or a terminal cannot be cut, and need not. */
	return ftruncate(fileno(out->file), 0) == 0 || errno == EINVAL ? 0 : errno;
}

int
app_out_end(struct app_out *out, int error)
{
	if (error == 0 && ferror(out->file))
		error = EIO;
	errno = EIO;
	if (fclose(out->file) != 0 && (error == 0 || error == EIO))
		error = errno;
	out->file = NULL;
	if (error == 0)
		return APP_OK;
	app_error("%s: cannot write '%s': %s", out->option, out->path, strerror(error));
	return APP_FAILED;
}

void
app_out_drop(struct app_out *out)
{
	if (out->file == NULL)
		return;
	if (out->created)
		unlink(out->path);
	fclose(out->file);
	out->file = NULL;
}
