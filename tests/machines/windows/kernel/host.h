/* SPDX-License-Identifier: MIT */
/*
 * Services of the system below the shims and the model: Windows' user space in Wine (host_windows.c),
 * or POSIX (host_posix.c). Types are those of plain C, so that either can be compiled with its own headers.
 */
#ifndef PTKIT_TESTS_WINDOWS_HOST_H
#define PTKIT_TESTS_WINDOWS_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOST_PAGE_BYTES ((uint64_t)4096)
#define HOST_RUN_BYTES ((uint64_t)65536) /* what can be mapped: Windows' allocation granularity */
#define HOST_NO_CPU UINT32_MAX

typedef void (*host_function)(void* context);

/* Memory of the machine, of zeros: runs that host_map() can show at other addresses, too. Null: there is
 * none. */
void* host_make_memory(uint64_t bytes);
/* The runs that begin at these offsets, one after the other. Null: it failed. */
void* host_map(const uint64_t* offsets, uint32_t count);
void host_unmap(void* address, uint32_t count);
/* Whether accesses are mistakes from now on; only sanitizers see them. */
void host_forbid(const void* address, size_t bytes, bool forbidden);

void* host_allocate(size_t bytes); /* of zeros */
void host_free(void* address);

/* A lock that its holder must not take again. */
void* host_make_lock(void);
void host_take(void* lock);
void host_release(void* lock);

/* An event that one waiter resets. */
void* host_make_event(void);
void host_set(void* event);
void host_end_event(void* event);
bool host_wait(void* event, uint32_t most_ms); /* false: it was not set in time */

void* host_begin_thread(host_function function, void* context);
void host_join(void* thread);
void host_yield(void);

/* The processor of the model that the thread is bound to; HOST_NO_CPU at first. */
uint32_t host_cpu(void);
void host_bind(uint32_t cpu);

uint32_t host_thread(void); /* a number of the thread */

uint64_t host_time_ms(void); /* since some time */

/* Settings of the model when the driver is loaded; false, or 0 bytes: there are none. */
bool host_write_setup(const void* bytes, uint32_t count);
uint32_t host_read_setup(void* bytes, uint32_t room);

/* Adds a line to what tests read after the unload. */
void host_report(const char* line);

#endif /* PTKIT_TESTS_WINDOWS_HOST_H */
