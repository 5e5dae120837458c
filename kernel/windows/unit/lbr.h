/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The stack of last branch records. */
#ifndef PTKIT_WINDOWS_LBR_H
#define PTKIT_WINDOWS_LBR_H

#include <stdint.h>

#include "ptkit/ptkit_windows.h"

/* Reads the stack of lbr->cpu. A PTKIT_REASON_*; PASSIVE_LEVEL. */
uint32_t ptkit_lbr_read(struct ptkit_windows_lbr *lbr);

#endif /* PTKIT_WINDOWS_LBR_H */
