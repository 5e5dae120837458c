/* SPDX-License-Identifier: MIT */
/*
 * Requests to the Linux driver through /dev/ptkit. An open file is a session. A program configures
 * it once, then starts and stops it any number of times. Its buffers live until the file is closed
 * and unmapped.
 *
 * The number of a request contains the size of its structure. The driver accepts a shorter structure
 * of an older program; the missing fields are zero. It accepts a longer structure of a newer program if
 * all fields that the driver does not know are zero, and returns E2BIG otherwise. A reserved value
 * gives EINVAL. A feature that this driver or processor lacks gives EOPNOTSUPP; PTKIT_QUERY lists the
 * features.
 */
#ifndef PTKIT_IOCTL_H
#define PTKIT_IOCTL_H

#ifdef __KERNEL__
#include <linux/ioctl.h>
#else
#include <sys/ioctl.h>
#endif

#include "ptkit_abi.h"

#define PTKIT_DEVICE "/dev/ptkit"

#define PTKIT_IOCTL_TYPE 0xbe

#define PTKIT_QUERY _IOR(PTKIT_IOCTL_TYPE, 0, struct ptkit_query)
/* EBUSY: the session is configured already. */
#define PTKIT_CONFIGURE _IOWR(PTKIT_IOCTL_TYPE, 1, struct ptkit_config)
#define PTKIT_BUFFER _IOWR(PTKIT_IOCTL_TYPE, 2, struct ptkit_buffer)
/*
 * Begins anew, with empty buffers. EBUSY: another session has one of the processors, or another
 * tracer has set TraceEn there, or perf's intel_pt has all of them; then no processor was started.
 * Processors that perf has are not traced (PTKIT_STATUS_REFUSED) if there are others. EIO: a register's write
 * faulted. ESRCH: the process or task has ended.
 */
#define PTKIT_START _IO(PTKIT_IOCTL_TYPE, 3)
#define PTKIT_STOP _IO(PTKIT_IOCTL_TYPE, 4) /* EIO: a processor could not be stopped; try again */
/* Tracing of all processors of the session; EINVAL unless it was started. */
#define PTKIT_PAUSE _IO(PTKIT_IOCTL_TYPE, 5)
#define PTKIT_RESUME _IO(PTKIT_IOCTL_TYPE, 6)
#define PTKIT_STATUS _IOWR(PTKIT_IOCTL_TYPE, 7, struct ptkit_status)
#define PTKIT_SNAPSHOT _IOWR(PTKIT_IOCTL_TYPE, 8, struct ptkit_snapshot)
#define PTKIT_CONSUME _IOW(PTKIT_IOCTL_TYPE, 9, struct ptkit_consume)

#endif /* PTKIT_IOCTL_H */
