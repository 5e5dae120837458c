/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Error codes of kernel/common as errno. */
#ifndef PTKIT_LINUX_ERRORS_H
#define PTKIT_LINUX_ERRORS_H

#include <linux/errno.h>

#include "common/pt_ops.h"

static inline int ptkit_errno(int error)
{
	switch (error) {
	case 0:
		return 0;
	case PT_E_BUSY:
	case PT_E_OWNED:
		return -EBUSY;
	case PT_E_INVALID:
		return -EINVAL;
	case PT_E_UNSUPPORTED:
		return -EOPNOTSUPP;
	default:
		return -EIO;
	}
}

#endif /* PTKIT_LINUX_ERRORS_H */
