/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Configurations: which of them the driver accepts, and the registers that they stand for. */
#ifndef PTKIT_LINUX_CONFIG_H
#define PTKIT_LINUX_CONFIG_H

#include "common/pt_config.h"
#include "ptkit/ptkit_ioctl.h"

/* Abilities of driver and processors. */
void ptkit_limits_make(struct pt_config_limits *limits);

/*
 * Checks a configuration, and sets the registers except those of output and CR3_MATCH. On -EINVAL
 * and -EOPNOTSUPP config->refused is set.
 */
int ptkit_make_state(struct ptkit_config *config, struct pt_state *state);

#endif /* PTKIT_LINUX_CONFIG_H */
