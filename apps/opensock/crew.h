/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crew.h - threads that all do one thing at a time, as the main thread says: opensock_crew_begin
 * names it, opensock_crew_await waits asleep until all have done it. So the main thread alone knows
 * the course of a run, and when a step begins every thread is there.
 */
#ifndef CORQ_OPENSOCK_CREW_H
#define CORQ_OPENSOCK_CREW_H

#include <pthread.h>
#include <stdint.h>

struct opensock_crew {
	pthread_mutex_t lock;
	pthread_cond_t begin, done;
	uint32_t n, idle; /* threads; of those, waiting for a step */
	uint32_t step;    /* how many steps were begun */
	int what;
	void (*work)(void *arg, uint32_t index, int what);
	void *arg;
	pthread_t *thread;
};

/* Starts n threads. work(arg, index, what) is called on each for each step. 0 or an errno: none is
 * left then. */
int opensock_crew_start(struct opensock_crew *crew, uint32_t n,
	void (*work)(void *arg, uint32_t index, int what), void *arg);
void opensock_crew_begin(struct opensock_crew *crew, int what);
void opensock_crew_await(struct opensock_crew *crew);
void opensock_crew_end(struct opensock_crew *crew);

#endif
