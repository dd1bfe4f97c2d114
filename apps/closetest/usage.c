/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage.c - `corq closetest --help`. Main thread.
 */
#include "closetest/options.h"

static const char head[] =
	"usage: corq closetest [options] [URL] [-- EAL arguments]\n"
	"How many TIME_WAITs does a loop of connect and close leave, and when do its ports end? A\n"
	"client connects and closes, again and again, and sends nothing. For each block of 50 it\n"
	"prints how many TIME_WAITs there are (of both ends, where both are here), and the time;\n"
	"then a summary. Without options: on the loop device, 250 connections for each part and\n"
	"policy. (In brackets: what holds without the option.)\n"
	"experiment:\n"
	"  -n N                connections of each part and policy (250)\n"
	"  -c N                so many at a time (1), to 1024\n"
	"  --block N           connections of a block (50)\n"
	"  --parts LIST        extern, simple-close, proper-close (the latter two; with a URL "
	"all)\n"
	"      extern          to the server of URL\n"
	"      simple-close    the server closes what it has accepted\n"
	"      proper-close    the server closes when it reads the end\n"
	"  --close LIST        how our server closes (first,abort-if-empty); a summary for each:\n"
	"      first           FIN at once\n"
	"      after-peer      when it reads the end, also in simple-close\n"
	"      abort-if-empty  RST, since nothing was exchanged: no TIME_WAIT\n"
	"      rst             RST, always\n"
	"  --client HOW        how the client closes, the same words (first: right after connect,\n"
	"                      its FIN rides on the ACK of the SYN-ACK)\n"
	"  --rounds N          each part so often, with the TIME_WAITs of the rounds before (1)\n"
	"  --backend WHOSE     corq (default); kernel: plain sockets on 127.0.0.1, COUNT is that "
	"of\n"
	"                      this network namespace\n"
	"  --timeout SECONDS   for the SYN-ACK, and with --client after-peer for the FIN (5)\n"
	"  URL                 http://host[:port]/ of extern. On devices other than loop "
	"simple-close\n"
	"                      is at its port too, and proper-close at the next one: the peer "
	"closes\n"
	"                      as it does, --close has no say\n"
	"report:\n"
	"  -q                  the summary only\n"
	"  --json FILE         the figures as JSON too; - is standard output, and text then goes "
	"to\n"
	"                      standard error\n"
	"  -h, --help          this text\n"
	"  -V, --version       the version\n";

static const char tail[] =
	"exit codes: 0 every connection came about; 1 some did not, or interrupted; 2 bad options\n"
	"examples:\n"
	"  corq closetest\n"
	"  corq closetest -q -n 100000 --rounds 2 --timewait reuse\n"
	"  corq closetest --backend kernel\n"
	"  corq closetest --dev veth:eth1 --ip 10.0.0.2/24 --parts extern http://10.0.0.1/\n";

void
closetest_usage(FILE *out)
{
	fputs(head, out);
	app_device_usage(out, true);
	fputs(tail, out);
}
