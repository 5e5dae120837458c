/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * State of the system at the start: memory, drivers, processes and the images that they have
 * mapped. PASSIVE_LEVEL.
 */
#ifndef PTKIT_WINDOWS_SYSTEM_H
#define PTKIT_WINDOWS_SYSTEM_H

#include <ntddk.h>

#include <stdbool.h>
#include <stdint.h>

struct ptkit_image {
	uint64_t address;
	uint64_t bytes;
	UNICODE_STRING path;
};

/* 0: unknown. */
uint64_t ptkit_physical_bytes(void);

typedef void ptkit_image_function(void *context, const struct ptkit_image *image);

/* Drivers, the kernel among them. */
void ptkit_each_driver(ptkit_image_function *function, void *context);
/* The driver with a file of this name; letters are compared without case. False: there is none. */
bool ptkit_find_driver(const char *name, uint64_t *address, uint64_t *bytes);
void ptkit_each_process(void (*function)(void *context, HANDLE pid), void *context);
void ptkit_each_image(HANDLE pid, ptkit_image_function *function, void *context);

#endif /* PTKIT_WINDOWS_SYSTEM_H */
