/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Configurations: which of them the driver accepts, and the registers that they stand for. */
#ifndef PTKIT_LINUX_CONFIG_H
#define PTKIT_LINUX_CONFIG_H

#include <linux/sizes.h>
#include <linux/types.h>

#include "common/pt_sequence.h"
#include "machine/caps.h"
#include "ptkit/ptkit_ioctl.h"

#define PTKIT_MOST_BYTES ((u64)SZ_1G * 4) /* of a buffer */

/* The largest buffer of PTKIT_OUTPUT_SINGLE_RANGE that errata permit. */
u64 ptkit_most_single_bytes(const struct ptkit_caps *caps);
/* Bits PTKIT_FEATURE_*. */
u64 ptkit_features(const struct ptkit_caps *caps);

/*
 * Checks a configuration, and sets the registers except those of output and CR3_MATCH. On -EINVAL
 * and -EOPNOTSUPP config->refused is set.
 */
int ptkit_make_state(const struct ptkit_caps *caps, struct ptkit_config *config,
		     struct pt_state *state);

#endif /* PTKIT_LINUX_CONFIG_H */
