/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* /dev/ptkit: each open file is a session. */
#ifndef PTKIT_LINUX_DEVICE_H
#define PTKIT_LINUX_DEVICE_H

#include <linux/fs.h>

extern const struct file_operations ptkit_file_operations;

#endif /* PTKIT_LINUX_DEVICE_H */
