/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crew.c - see crew.h. crew_main is the crew's threads, all else the main thread.
 */
#include "opensock/crew.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Its frames are small; 1024 stacks of the usual 8 MiB would look like a lot of memory. */
#define STACK_BYTES (256u << 10)
#define END         (-1)

struct member {
	struct opensock_crew *crew;
	uint32_t index;
};

static int
next_step(struct opensock_crew *crew, uint32_t *step)
{
	int what;

	pthread_mutex_lock(&crew->lock);
	if (++crew->idle == crew->n)
		pthread_cond_signal(&crew->done);
	while (crew->step == *step)
		pthread_cond_wait(&crew->begin, &crew->lock);
	*step = crew->step;
	what = crew->what;
	pthread_mutex_unlock(&crew->lock);
	return what;
}

static void *
crew_main(void *arg)
{
	struct member me = *(struct member *)arg;
	uint32_t step = 0;
	int what;

	free(arg);
	while ((what = next_step(me.crew, &step)) != END)
		me.crew->work(me.crew->arg, me.index, what);
	return NULL;
}

static int
start_member(struct opensock_crew *crew, uint32_t index, const pthread_attr_t *attr)
{
	struct member *me = malloc(sizeof(*me));
	int rc;

	if (me == NULL)
		return ENOMEM;
	*me = (struct member){crew, index};
	rc = pthread_create(&crew->thread[index], attr, crew_main, me);
	if (rc != 0)
		free(me);
	return rc;
}

int
opensock_crew_start(struct opensock_crew *crew, uint32_t n,
	void (*work)(void *arg, uint32_t index, int what), void *arg)
{
	pthread_attr_t attr;
	uint32_t started = 0;
	int rc = 0;

	memset(crew, 0, sizeof(*crew));
	crew->thread = calloc(n, sizeof(pthread_t));
	if (crew->thread == NULL)
		return ENOMEM;
	pthread_mutex_init(&crew->lock, NULL);
	pthread_cond_init(&crew->begin, NULL);
	pthread_cond_init(&crew->done, NULL);
	crew->work = work;
	crew->arg = arg;
	crew->n = n;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	while (started < n && (rc = start_member(crew, started, &attr)) == 0)
		started++;
	pthread_attr_destroy(&attr);
	if (rc != 0) {
		pthread_mutex_lock(&crew->lock);
		crew->n = started;
		pthread_mutex_unlock(&crew->lock);
		opensock_crew_end(crew);
	}
	return rc;
}

void
opensock_crew_begin(struct opensock_crew *crew, int what)
{
	opensock_crew_await(crew);
	pthread_mutex_lock(&crew->lock);
	crew->what = what;
	crew->idle = 0;
	crew->step++;
	pthread_cond_broadcast(&crew->begin);
	pthread_mutex_unlock(&crew->lock);
}

void
opensock_crew_await(struct opensock_crew *crew)
{
	pthread_mutex_lock(&crew->lock);
	while (crew->idle < crew->n)
		pthread_cond_wait(&crew->done, &crew->lock);
	pthread_mutex_unlock(&crew->lock);
}

void
opensock_crew_end(struct opensock_crew *crew)
{
	opensock_crew_begin(crew, END);
	for (uint32_t i = 0; i < crew->n; i++)
		pthread_join(crew->thread[i], NULL);
	pthread_cond_destroy(&crew->done);
	pthread_cond_destroy(&crew->begin);
	pthread_mutex_destroy(&crew->lock);
	free(crew->thread);
}
