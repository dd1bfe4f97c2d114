/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cpu.h - what the operating system knows of the calling thread's CPU time, and of free memory.
 */
#ifndef CORQ_APP_CPU_H
#define CORQ_APP_CPU_H

#include <stdint.h>

/* Opens the calling thread's figures; a file descriptor, to be closed, or -1. */
int app_cpu_open(void);
/* Nanoseconds that this thread has spent ready to run while others ran; -1: not known. */
int64_t app_cpu_waited(int fd);
/* Bytes that this process may still take: of the machine and of its memory cgroups; 0: not known.
 */
uint64_t app_memory_left(void);

#endif
