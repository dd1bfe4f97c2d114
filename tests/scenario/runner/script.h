/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * script.h - a scenario as parsed: statements, segments, values. A newcomer to the runner reads
 * this first; ../README.md is the language for people who write scripts.
 *
 * parse.c makes a list of `struct stmt` from a file (parse_segment.c the segments in it), run.c
 * carries it out on a core on virtual time, wire.c turns segments into frames and back, calls.c
 * makes calls and keeps the log of callbacks. Parsing needs no core, so it has a unit test of its
 * own. One thread. Everything of a script lives until script_free.
 */
#ifndef SCENARIO_SCRIPT_H
#define SCENARIO_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A value in an expectation, or a number to send. */
enum value_kind {
	VALUE_NONE,  /* not written */
	VALUE_ANY,   /* * */
	VALUE_RANGE, /* N, >=N, <=N, N..M: lo..hi */
	VALUE_ABS,   /* @N: not relative to an initial sequence number */
	VALUE_LAST,  /* last: the newest value the other side sent (timestamps) */
	VALUE_NOW,   /* now: the virtual clock in ms (timestamps) */
};

struct value {
	enum value_kind kind;
	int64_t lo, hi;
};

enum opt_kind {
	OPT_MSS,
	OPT_WSCALE,
	OPT_SACK_OK,
	OPT_SACK,
	OPT_TS,
	OPT_NOP,
	OPT_EOL,
	OPT_RAW
};

#define OPT_SACK_MAX 5
#define OPT_RAW_MAX  40

struct opt {
	enum opt_kind kind;
	struct value v[2];              /* MSS, WSCALE: v[0]; TS: val, ecr */
	uint32_t sack[OPT_SACK_MAX][2]; /* relative to the receiver of the option */
	unsigned n;                     /* SACK blocks, or raw bytes */
	uint8_t raw[OPT_RAW_MAX];
};

#define SEG_OPTS_MAX 20

/* A TCP segment as written. */
struct segment {
	bool any_flags, any_psh;
	uint8_t flags; /* as on the wire */
	struct value seq, ack, win, urg;
	struct value len; /* payload bytes; with VALUE_ANY only in an expectation */
	bool has_opts, any_opts;
	unsigned n_opts;
	struct opt opts[SEG_OPTS_MAX];
	/* injected only */
	bool bad_tcp_csum, bad_ip_csum, csum_partial;
	int hlen;              /* data offset in words, -1: right */
	int ip_len;            /* IP total length, -1: right */
	int fill;              /* payload byte, -1: the stream's pattern */
	int ttl, ecn;          /* -1: 64, 0 */
	int sport, dport;      /* -1: the flow's */
	char src[48], dst[48]; /* "": the flow's */
	uint8_t dmac[6];
	bool has_dmac;
	unsigned n_split; /* parts of the frame chain */
	uint16_t split[8];
	uint16_t rx_flags; /* enum corq_frame_flag of the device */
};

enum packet_kind {
	PACKET_TCP,
	PACKET_ARP,
	PACKET_ICMP,
	PACKET_BYTES,
	PACKET_ANY
};

struct packet_spec {
	enum packet_kind kind;
	struct segment tcp;
	/* arp OP target [from A] [mac M] */
	uint16_t arp_op;
	char arp_target[48], arp_sender[48];
	uint8_t arp_mac[6];
	bool has_arp_mac;
	/* icmp TYPE CODE */
	uint8_t icmp_type, icmp_code;
	uint16_t icmp_mtu;
	struct value icmp_quote; /* sequence number quoted, relative */
	bool icmp_foreign;       /* the quote names another local port */
	unsigned icmp_len;       /* echo payload */
	/* bytes HEX */
	uint8_t *bytes;
	size_t n_bytes;
};

enum stmt_kind {
	STMT_OPTION,
	STMT_FLOW,
	STMT_INJECT,
	STMT_EXPECT,
	STMT_EXPECT_NONE,
	STMT_CALL,
	STMT_EVENT,
	STMT_NO_EVENT,
	STMT_STATE,
	STMT_FIELD,
	STMT_COUNTER,
	STMT_BATCH,
	STMT_ON,
	STMT_REPEAT,
	STMT_WAIT,
	STMT_DEVICE,
	STMT_DRAIN,
	STMT_REBASE,
};

#define STMT_WORDS_MAX 8

struct stmt {
	struct stmt *next;
	struct stmt *body; /* BATCH, ON, REPEAT */
	enum stmt_kind kind;
	const char *file;
	int line;
	char *text; /* as written, for messages */

	/* when: `+a..b` or `+a` or `a`; tol is the allowed difference, -1: the default */
	bool has_time, relative;
	int64_t at_ns, until_ns; /* until_ns >= at_ns: any moment in between; -1: no range */
	int64_t tol_ns;

	struct packet_spec *packet; /* INJECT, EXPECT */
	unsigned n_words;           /* what follows the verb, else */
	char *words[STMT_WORDS_MAX];
	struct value value; /* CALL: the result asked for; EVENT, FIELD, COUNTER */
	int64_t dur_ns;     /* EXPECT_NONE, WAIT */
	unsigned count;     /* REPEAT */
};

struct script {
	struct stmt *first;
	char *name;  /* path as given */
	char *title; /* first comment line, without its mark */
	void *arena; /* all memory of the script */
};

/* NULL with a message "file:line: what" in err when the file cannot be read or understood. */
struct script *script_load(const char *path, char *err, size_t err_len);
/* The same from text; includes are looked for beside `name`. */
struct script *script_parse(const char *name, const char *text, char *err, size_t err_len);
void script_free(struct script *s);

/* ---- between parse.c, parse_value.c and parse_segment.c ---- */

struct parser;

/* Memory that lives as long as the script; zeroed. */
void *parser_alloc(struct parser *p, size_t n);
/* Records an error of the present line; returns false so that it can be returned. */
bool parser_fail(struct parser *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

bool parse_value(struct parser *p, const char *word, struct value *out);
bool parse_number(struct parser *p, const char *word, int64_t *out);
/* A number with a unit: ns us ms s d; without one it is seconds. */
bool parse_duration(struct parser *p, const char *s, int64_t *ns);
/* [+]T, [+]T..T, either with ~TOLERANCE, into the statement. Changes word. */
bool parse_time(struct parser *p, char *word, struct stmt *st);
bool parse_packet(struct parser *p, char **words, unsigned n, bool inject, struct packet_spec *out);
/* errno names with or without '-', or a number. */
bool parse_errno(const char *word, int64_t *out);

#endif
