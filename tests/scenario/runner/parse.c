/* SPDX-License-Identifier: BSD-3-Clause */
/* parse.c - the statements of a script: lines, times, blocks, includes. See script.h. */
#include "script.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX   48
#define PARAMS_MAX  16
#define INCLUDE_MAX 4

struct block {
	struct block *next;
	_Alignas(16) uint8_t bytes[];
};

struct param {
	char name[32], value[64];
};

struct parser {
	struct script *script;
	char *err;
	size_t err_len;
	bool failed;
	const char *file;
	int line;
	const char *text; /* where the file's text is read */
	struct param params[PARAMS_MAX];
	unsigned n_params;
	unsigned depth; /* of includes */
	char *text_of_line;
};

void *
parser_alloc(struct parser *p, size_t n)
{
	struct block *b = calloc(1, sizeof(*b) + n);

	if (b == NULL)
		abort();
	b->next = p->script->arena;
	p->script->arena = b;
	return b->bytes;
}

static char *
copy_text(struct parser *p, const char *s, size_t n)
{
	char *t = parser_alloc(p, n + 1);

	memcpy(t, s, n);
	return t;
}

bool
parser_fail(struct parser *p, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (p->failed)
		return false;
	p->failed = true;
	n = snprintf(p->err, p->err_len, "%s:%d: ", p->file, p->line);
	if (n < 0 || (size_t)n >= p->err_len)
		return false;
	va_start(ap, fmt);
	vsnprintf(p->err + n, p->err_len - (size_t)n, fmt, ap);
	va_end(ap);
	return false;
}

/* ---- lines and words ---- */

/* The next line without comment, with $names replaced, or NULL at the end. */
static char *
next_line(struct parser *p)
{
	const char *s = p->text, *end = strchr(s, '\n');
	size_t n = end ? (size_t)(end - s) : strlen(s), out = 0;
	char *line;

	if (*s == '\0')
		return NULL;
	p->text = end ? end + 1 : s + n;
	p->line++;
	if (p->script->title == NULL && n > 1 && s[0] == '#') {
		p->script->title = copy_text(p, s + 1, n - 1);
		while (isspace((unsigned char)*p->script->title))
			p->script->title++;
	}
	line = parser_alloc(p, n + PARAMS_MAX * sizeof(p->params[0].value) + 1);
	for (size_t i = 0; i < n && s[i] != '#'; i++) {
		size_t len = 0;
		unsigned k;

		if (s[i] != '$') {
			line[out++] = s[i];
			continue;
		}
		while (i + 1 + len < n &&
			(isalnum((unsigned char)s[i + 1 + len]) || s[i + 1 + len] == '_'))
			len++;
		for (k = 0; k < p->n_params; k++)
			if (strlen(p->params[k].name) == len &&
				!memcmp(p->params[k].name, s + i + 1, len))
				break;
		if (k == p->n_params || out + strlen(p->params[k].value) >
						n + PARAMS_MAX * sizeof(p->params[0].value)) {
			parser_fail(p, "no parameter '%.*s'", (int)len + 1, s + i);
			return NULL;
		}
		out += (size_t)sprintf(line + out, "%s", p->params[k].value);
		i += len;
	}
	while (out != 0 && isspace((unsigned char)line[out - 1]))
		out--;
	line[out] = '\0';
	return line;
}

/* Words are separated by blanks; <...> is one word, whatever is in it. */
static unsigned
split(struct parser *p, char *line, char **words)
{
	unsigned n = 0;

	for (;;) {
		char *end;

		while (isspace((unsigned char)*line))
			line++;
		if (*line == '\0')
			return n;
		if (n == WORDS_MAX) {
			parser_fail(p, "line too long");
			return 0;
		}
		words[n++] = line;
		end = line;
		if (*line == '<' && line[1] != '=') {
			end = strchr(line, '>');
			if (end == NULL) {
				parser_fail(p, "'<' without '>'");
				return 0;
			}
			end++;
		} else {
			while (*end != '\0' && !isspace((unsigned char)*end))
				end++;
		}
		if (*end == '\0')
			return n;
		*end = '\0';
		line = end + 1;
	}
}

/* ---- statements ---- */

static bool parse_list(struct parser *p, struct stmt **link, bool in_block);

static const struct {
	const char *verb;
	enum stmt_kind kind;
	unsigned min, max; /* words */
	bool block;
} verbs[] = {
	{"option", STMT_OPTION, 2, 2, false},
	{"flow", STMT_FLOW, 1, 7, false},
	{"inject", STMT_INJECT, 1, WORDS_MAX, false},
	{"expect", STMT_EXPECT, 1, WORDS_MAX, false},
	{"call", STMT_CALL, 1, STMT_WORDS_MAX + 2, false},
	{"event", STMT_EVENT, 1, 2, false},
	{"no_event", STMT_NO_EVENT, 1, 1, false},
	{"state", STMT_STATE, 1, 1, false},
	{"field", STMT_FIELD, 2, 2, false},
	{"counter", STMT_COUNTER, 2, 2, false},
	{"batch", STMT_BATCH, 0, 0, true},
	{"on", STMT_ON, 1, 1, true},
	{"repeat", STMT_REPEAT, 1, 1, true},
	{"wait", STMT_WAIT, 0, 1, false},
	{"device", STMT_DEVICE, 2, 2, false},
	{"drain", STMT_DRAIN, 0, 1, false},
	{"rebase", STMT_REBASE, 0, 0, false},
};

/* `= VALUE` at the end of a call. */
static bool
parse_result(struct parser *p, struct stmt *st, char **words, unsigned *n)
{
	if (*n < 3 || strcmp(words[*n - 2], "=") != 0)
		return true;
	if (!parse_errno(words[*n - 1], &st->value.lo))
		*n -= parse_value(p, words[*n - 1], &st->value) ? 2 : 0;
	else {
		st->value.kind = VALUE_RANGE;
		st->value.hi = st->value.lo;
		*n -= 2;
	}
	return !p->failed;
}

static bool
parse_expect_none(struct parser *p, struct stmt *st, char **words, unsigned n)
{
	st->kind = STMT_EXPECT_NONE;
	if (n != 3 || strcmp(words[1], "for") != 0)
		return parser_fail(p, "write 'expect none for DURATION'");
	return parse_duration(p, words[2], &st->dur_ns);
}

static bool
parse_words(struct parser *p, struct stmt *st, char **words, unsigned n)
{
	int64_t v;

	switch (st->kind) {
	case STMT_INJECT:
	case STMT_EXPECT:
		if (st->kind == STMT_EXPECT && !strcmp(words[0], "none"))
			return parse_expect_none(p, st, words, n);
		st->packet = parser_alloc(p, sizeof(*st->packet));
		return parse_packet(p, words, n, st->kind == STMT_INJECT, st->packet);
	case STMT_CALL:
		if (!parse_result(p, st, words, &n))
			return false;
		break;
	case STMT_WAIT:
	case STMT_DRAIN:
		return n == 0 || parse_duration(p, words[0], &st->dur_ns);
	case STMT_REPEAT:
		if (!parse_number(p, words[0], &v) || v < 1)
			return parser_fail(p, "repeat wants a count");
		st->count = (unsigned)v;
		return true;
	case STMT_EVENT:
		if (n == 2 && parse_errno(words[1], &st->value.lo)) {
			st->value.kind = VALUE_RANGE;
			st->value.hi = st->value.lo;
		} else if (n == 2 && !parse_value(p, words[1], &st->value)) {
			return false;
		}
		break;
	case STMT_FIELD:
	case STMT_COUNTER:
		if (!parse_value(p, words[1], &st->value))
			return false;
		break;
	default:
		break;
	}
	if (n > STMT_WORDS_MAX)
		return parser_fail(p, "too many words");
	for (unsigned i = 0; i < n; i++)
		st->words[i] = copy_text(p, words[i], strlen(words[i]));
	st->n_words = n;
	return true;
}

static bool
parse_stmt(struct parser *p, char **words, unsigned n, struct stmt *st)
{
	unsigned i = 0, k;
	bool block = n > 0 && !strcmp(words[n - 1], "{");

	st->file = p->file;
	st->line = p->line;
	st->text = p->text_of_line;
	st->tol_ns = st->until_ns = -1;
	if (isdigit((unsigned char)*words[0]) || *words[0] == '+') {
		if (!parse_time(p, words[0], st))
			return false;
		i = 1;
	}
	if (block)
		n--;
	if (i >= n)
		return parser_fail(p, "a time alone says nothing (use wait)");
	for (k = 0; k < sizeof(verbs) / sizeof(verbs[0]); k++)
		if (!strcmp(verbs[k].verb, words[i]))
			break;
	if (k == sizeof(verbs) / sizeof(verbs[0]))
		return parser_fail(p, "unknown statement '%s'", words[i]);
	st->kind = verbs[k].kind;
	i++;
	if (n - i < verbs[k].min || n - i > verbs[k].max)
		return parser_fail(p, "'%s' wants %u to %u words, not %u", verbs[k].verb,
			verbs[k].min, verbs[k].max, n - i);
	if (block != verbs[k].block)
		return parser_fail(
			p, "'%s' %s a block", verbs[k].verb, verbs[k].block ? "wants" : "has not");
	if (st->until_ns >= 0 && st->kind != STMT_EXPECT)
		return parser_fail(p, "only expect takes a range of time");
	if (!parse_words(p, st, words + i, n - i))
		return false;
	return !block || parse_list(p, &st->body, true);
}

/* ---- files ---- */

static char *
read_file(struct parser *p, const char *path)
{
	FILE *f = fopen(path, "rb");
	char *text;
	long n;

	if (f == NULL) {
		parser_fail(p, "%s: %s", path, strerror(errno));
		return NULL;
	}
	fseek(f, 0, SEEK_END);
	n = ftell(f);
	rewind(f);
	text = parser_alloc(p, (size_t)(n < 0 ? 0 : n) + 1);
	if (n > 0 && fread(text, 1, (size_t)n, f) != (size_t)n)
		parser_fail(p, "%s: cannot be read", path);
	fclose(f);
	return p->failed ? NULL : text;
}

static bool
set_param(struct parser *p, const char *name, size_t len, const char *value, bool keep)
{
	struct param *m = p->params;

	if (len >= sizeof(m->name) || strlen(value) >= sizeof(m->value))
		return parser_fail(p, "parameter too long");
	while (m < p->params + p->n_params &&
		(strlen(m->name) != len || memcmp(m->name, name, len) != 0))
		m++;
	if (m < p->params + p->n_params && keep)
		return true;
	if (m == p->params + PARAMS_MAX)
		return parser_fail(p, "too many parameters");
	if (m == p->params + p->n_params)
		p->n_params++;
	snprintf(m->name, sizeof(m->name), "%.*s", (int)len, name);
	snprintf(m->value, sizeof(m->value), "%s", value);
	return true;
}

/* include FILE [name=value ...]: its statements stand here; $name in it is replaced. */
static bool
parse_include(struct parser *p, char **words, unsigned n, struct stmt **link)
{
	struct parser sub = *p;
	const char *slash = strrchr(p->file, '/');
	char path[512];
	bool ok;

	if (n < 2)
		return parser_fail(p, "include what?");
	if (p->depth == INCLUDE_MAX)
		return parser_fail(p, "includes too deep");
	snprintf(path, sizeof(path), "%.*s%s", slash ? (int)(slash - p->file + 1) : 0, p->file,
		words[1]);
	sub.n_params = 0;
	sub.depth++;
	for (unsigned i = 2; i < n; i++) {
		const char *eq = strchr(words[i], '=');

		if (eq == NULL)
			return parser_fail(p, "'%s' is not name=value", words[i]);
		if (!set_param(&sub, words[i], (size_t)(eq - words[i]), eq + 1, false))
			goto out;
	}
	sub.text = read_file(&sub, path);
	if (sub.text == NULL)
		goto out;
	sub.file = copy_text(p, path, strlen(path));
	sub.line = 0;
	parse_list(&sub, link, false);
out:
	ok = !sub.failed;
	p->failed = sub.failed;
	return ok;
}

static bool
parse_list(struct parser *p, struct stmt **link, bool in_block)
{
	char *words[WORDS_MAX], *line;

	while (!p->failed && (line = next_line(p)) != NULL) {
		unsigned n;

		p->text_of_line = copy_text(p, line, strlen(line));
		while (isspace((unsigned char)*p->text_of_line))
			p->text_of_line++;
		n = split(p, line, words);
		if (p->failed)
			return false;
		if (n == 0)
			continue;
		if (n == 1 && !strcmp(words[0], "}"))
			return in_block || parser_fail(p, "'}' without a block");
		if (!strcmp(words[0], "include")) {
			if (!parse_include(p, words, n, link))
				return false;
		} else if (!strcmp(words[0], "param") && n == 3) {
			if (!set_param(p, words[1], strlen(words[1]), words[2], true))
				return false;
			continue;
		} else {
			*link = parser_alloc(p, sizeof(**link));
			if (!parse_stmt(p, words, n, *link))
				return false;
		}
		while (*link != NULL)
			link = &(*link)->next;
	}
	if (!p->failed && in_block)
		parser_fail(p, "the block does not end");
	return !p->failed;
}

static struct script *
parse_text(struct script *s, const char *name, const char *text, char *err, size_t err_len)
{
	struct parser p = {.script = s, .err = err, .err_len = err_len, .file = name};

	if (text == NULL)
		text = read_file(&p, name);
	s->name = copy_text(&p, name, strlen(name));
	p.file = s->name;
	p.text = text;
	if (text == NULL || !parse_list(&p, &s->first, false)) {
		script_free(s);
		return NULL;
	}
	if (s->title == NULL)
		s->title = s->name;
	return s;
}

struct script *
script_parse(const char *name, const char *text, char *err, size_t err_len)
{
	struct script *s = calloc(1, sizeof(*s));

	if (s == NULL)
		abort();
	return parse_text(s, name, text, err, err_len);
}

struct script *
script_load(const char *path, char *err, size_t err_len)
{
	return script_parse(path, NULL, err, err_len);
}

void
script_free(struct script *s)
{
	struct block *b, *next;

	if (s == NULL)
		return;
	for (b = s->arena; b != NULL; b = next) {
		next = b->next;
		free(b);
	}
	free(s);
}
