/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage.c - `corq opensock --help`: each option with its default and its trap. Main thread.
 */
#include "opensock/options.h"

static const char text[] =
	"usage: corq opensock [options]\n"
	"How fast can threads open and close sockets while many are open? COUNT sockets are "
	"opened\n"
	"first, COUNT / THREADS by each thread; then each thread loops socket() and close() for\n"
	"SECONDS. No packet is sent, and no device, privilege or huge page is needed.\n"
	"Without options: -t 1 -n 1000 -l 10. (In brackets: what holds without the option.)\n"
	"as opensock of the Linux discussion on descriptors, 2015:\n"
	"  -t THREADS        how many (1), 1 to 1024\n"
	"  -n COUNT          sockets open before the loop (1000); 0: none. corq: at most 67108864 "
	"in\n"
	"                    all and 16777216 a thread, less what the loop itself needs\n"
	"  -l SECONDS        time of the loop (10), 1 to 86400; with --backend both: of each\n"
	"  -f                a thread gets any free handle, not the lowest. The kernel has no "
	"such\n"
	"                    flag: it goes on to give the lowest\n"
	"what is measured:\n"
	"  --backend WHOSE   corq (default), kernel, or both: turns alternate in one run, five "
	"each,\n"
	"                    and the ratio is printed. `Lowest` is per lane in corq (a lane is a\n"
	"                    thread's) and per process in the kernel\n"
	"  --kernel-n COUNT  -n of the kernel's side (as -n, but no more than RLIMIT_NOFILE, "
	"whose\n"
	"                    hard limit is used, and half of the free memory at 4 KiB a socket\n"
	"                    allow; what was used is printed)\n"
	"  --kernel-fill HOW socket (default), or dup: the kernel's table is filled with "
	"duplicates\n"
	"                    of one socket a thread, which occupy it without a socket's memory\n"
	"  --order ORDER     what is closed in the loop: lifo (default), the one just opened; "
	"fifo,\n"
	"                    the thread's oldest; random, any of the thread's. The last two need\n"
	"                    open handles: -n at least THREADS\n"
	"  --holes           scatter free slots: each thread opens 64 + a 1024th of its share "
	"more,\n"
	"                    then closes as many at random\n"
	"  --cross PERCENT   so many of the handles are closed by the next thread (0), to which "
	"they\n"
	"                    go through a ring of 4096 (kernel: 64); needs -t 2 at least\n"
	"report:\n"
	"  --json FILE       the figures as JSON too; - is standard output, and text then goes to\n"
	"                    standard error\n"
	"  -h, --help        this text\n"
	"  -V, --version     the version\n"
	"output:\n"
	"  count=COUNT (check/increase ulimit -n)\n"
	"  total = N         pairs of open and close, all threads, corq's if there are both\n"
	"  After a blank line, `key: value`. An operation is one socket() and one close(); its\n"
	"  cycles (of the TSC) are timed in batches of 64, and what another thread does to the\n"
	"  batch, or the scheduler, is in them. bytes_per_handle is the growth of resident memory\n"
	"  by attaching and opening, divided by the handles open; with few of them it is pages.\n"
	"exit codes: 0 done; 1 failed, interrupted, or handles that do not add up; 2 bad options\n"
	"examples:\n"
	"  corq opensock -t 16 -n 10000000 -l 10 --backend both\n"
	"  corq opensock -t 2 -n 1000000 -l 5 --cross 50 --order random --holes -f\n";

void
opensock_usage(FILE *out)
{
	fputs(text, out);
}
