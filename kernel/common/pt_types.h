/* SPDX-License-Identifier: MIT */
/* Types of fixed width, wherever this is compiled. */
#ifndef PTKIT_COMMON_PT_TYPES_H
#define PTKIT_COMMON_PT_TYPES_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#endif

#define PT_BIT(position) ((uint64_t)1 << (position))

/* Accesses of what another processor may access meanwhile: once, and as a whole. */
#define PT_READ_ONCE(place) __atomic_load_n(&(place), __ATOMIC_RELAXED)
#define PT_WRITE_ONCE(place, value) __atomic_store_n(&(place), (value), __ATOMIC_RELAXED)

#endif /* PTKIT_COMMON_PT_TYPES_H */
