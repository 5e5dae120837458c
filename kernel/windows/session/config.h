/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Turns a session's configuration into registers, and checks it. */
#ifndef PTKIT_WINDOWS_CONFIG_H
#define PTKIT_WINDOWS_CONFIG_H

#include <ntddk.h>

#include <stdbool.h>

#include "common/pt_config.h"
#include "ptkit/ptkit_windows.h"

/* Abilities of driver and processors. */
void ptkit_limits_make(struct pt_config_limits *limits);

/*
 * Sets `state`, which is zero, for everything but output and CR3_MATCH, and finds the module. A
 * PTKIT_REASON_*, with windows->config.refused.
 */
uint32_t ptkit_make_state(struct ptkit_windows_config *windows, struct pt_state *state);
/* Whether the configuration has a processor. */
bool ptkit_config_has_cpu(const struct ptkit_windows_config *config, uint32_t cpu);
/* CR3 of the process, as far as its code is traced: user code or kernel code. */
uint32_t ptkit_find_cr3(const struct ptkit_config *config, uint64_t *cr3);

#endif /* PTKIT_WINDOWS_CONFIG_H */
