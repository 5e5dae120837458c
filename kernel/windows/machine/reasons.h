/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Error codes of kernel/common as reasons. */
#ifndef PTKIT_WINDOWS_REASONS_H
#define PTKIT_WINDOWS_REASONS_H

#include "common/pt_ops.h"
#include "machine/caps.h"
#include "ptkit/ptkit_windows.h"

static inline uint32_t ptkit_reason(int error)
{
	switch (error) {
	case 0:
		return PTKIT_REASON_NONE;
	case PT_E_BUSY:
	case PT_E_FOREIGN:
		return PTKIT_REASON_OWNER;
	case PT_E_OWNED:
		return PTKIT_REASON_SESSION;
	case PT_E_INVALID:
		return PTKIT_REASON_FIELD;
	case PT_E_UNSUPPORTED:
		return PTKIT_REASON_UNSUPPORTED;
	case PT_E_UNIT:
		/* Hyper-V of Windows 10 2004 and later sets STATUS.Error where TraceEn is written.
		 */
		return ptkit_machine_caps.system & PTKIT_SYSTEM_HYPERVISOR ? PTKIT_REASON_DENIED
									   : PTKIT_REASON_ERROR;
	default:
		return PTKIT_REASON_FAULT;
	}
}

#endif /* PTKIT_WINDOWS_REASONS_H */
