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

#endif /* PTKIT_COMMON_PT_TYPES_H */
