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
#define PT_READ_ONCE(object) __atomic_load_n(&(object), __ATOMIC_RELAXED)
#define PT_WRITE_ONCE(object, value) __atomic_store_n(&(object), (value), __ATOMIC_RELAXED)
/* A load that sees the stored value sees all stores before it. */
#define PT_LOAD_ACQUIRE(object) __atomic_load_n(&(object), __ATOMIC_ACQUIRE)
#define PT_STORE_RELEASE(object, value) __atomic_store_n(&(object), (value), __ATOMIC_RELEASE)

#endif /* PTKIT_COMMON_PT_TYPES_H */
