/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage.c - `corq ab --help`: each option with its default and its trap. Main thread.
 */
#include "ab/options.h"

static const char load[] =
	"usage: corq ab [options] [http://host[:port]/path] [-- EAL arguments]\n"
	"Without --dev and URL it loads its own server over the loop device. Letters mean what "
	"they\n"
	"mean in ab 2.4; (in brackets) what holds without the option.\n"
	"load:\n"
	"  -n REQUESTS       how many in all (1)\n"
	"  -c SLOTS          how many at a time (1), at most -n and 1048576\n"
	"  -t SECONDS        at most so long; sets -n 50000 as in ab, so put -n after it\n"
	"  -s SECONDS        wait so long for each response (30); all slots silent: the run ends\n"
	"  -k                keep-alive: a connection carries many requests if the server agrees\n"
	"  -r                go on after a reset or a failed connect (the run ends with its "
	"errno)\n"
	"  -l                responses may differ in length (else they count as failed: Length)\n"
	"  -b BYTES          buffers of a connection, each way (0: 262144; at least 2304);\n"
	"                    bounds the window\n"
	"  -B ADDRESS        connect from this one of our addresses (--ip; all of them in turn)\n"
	"  --close POLICY    who closes first: first (we), after-peer (default), abort-if-empty, "
	"rst;\n"
	"                    who does keeps the TIME_WAIT\n"
	"  --half-open N     SYNs outstanding on a core, at most (256)\n"
	"  --size BYTES      loop: the page that the embedded server has (100)\n"
	"  --pause-ms M      stop our cores for M ms, as a busy machine would, with\n"
	"  --pause-at S      so many seconds after the first connect\n"
	"request:\n"
	"  -i                HEAD (GET)\n"
	"  -p FILE           POST the file\n"
	"  -u FILE           PUT the file; -i, -p, -u exclude each other and -m before them\n"
	"  -m METHOD         any other; after -p or -u it keeps the body\n"
	"  -T TYPE           content type of the body (text/plain); forms need\n"
	"                    application/x-www-form-urlencoded\n"
	"  -H 'NAME: VALUE'  a header line more, or instead of Host, User-Agent, Accept; "
	"repeatable\n"
	"  -C NAME=VALUE     a cookie; repeatable\n"
	"  -A USER:PASS      basic authorization; -P USER:PASS the same for the proxy\n"
	"  -X HOST[:PORT]    send it to this proxy (port 80), with the whole URL\n"
	"  -Z -f -E -I       TLS: refused, and https:// too; there is no TLS yet\n"
	"report:\n"
	"  -q                no progress lines on stderr (there are some above 150 requests)\n"
	"  --ab-strict       progress as ab writes it, on a terminal too\n"
	"  -v LEVEL          1: errors that -r passes; 2: request and response headers, warnings;\n"
	"                    3, 4: response codes too. Slow, and long with a high -n\n"
	"  -d                without the percentages\n"
	"  -S                times as min, avg, max, without deviation, median and warnings\n"
	"  -w                as an HTML table; -x, -y, -z ATTRIBUTES for its table, tr, td (each\n"
	"                    implies -w)\n"
	"  -e FILE           CSV: times in ms of 0 to 100 % of the requests\n"
	"  --exact-times N   exact times of so many requests (10000000, 12 bytes each); with more\n"
	"                    requests all times are from histograms, within 3.2 %\n"
	"  -g FILE           gnuplot: a line a request, sorted by total time (not by start: a "
	"plot\n"
	"                    of it is no time series); at most 100000000 requests\n"
	"  --json FILE       the figures as JSON too; - is standard output\n"
	"  -h, --help        this text\n"
	"  -V, --version     the version\n"
	"exit codes: 0 done; 1 failed, interrupted, or responses that were cut short or no HTTP;\n"
	"  2 bad options; else the error that ended it as in ab: 104 reset, 111 refused, 119 "
	"silent\n";

void
ab_options_usage(FILE *out)
{
	fputs(load, out);
	app_device_usage(out, true);
}
