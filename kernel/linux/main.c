// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Loads and unloads the module, and registers the device. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bug.h>
#include <linux/init.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/rcupdate.h>

#include "machine/caps.h"
#include "main.h"
#include "ptkit/ptkit_ioctl.h"
#include "session/device.h"
#include "session/probes.h"
#include "sideband/sideband.h"
#include "unit/power.h"
#include "unit/tasks.h"
#include "unit/units.h"

/* A rule of udev may let a group open the file; ptkit_open() checks the capabilities, too. */
static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "ptkit",
	.mode = 0600,
	.fops = &ptkit_file_operations,
};

bool ptkit_in_use(void)
{
	return ptkit_units_any_owner() || ptkit_sideband_any() || ptkit_tasks_any() ||
	       ptkit_probes_any();
}

static int __init ptkit_init(void)
{
	int error;

	/* Probes of tracepoints allocate memory, and must not sleep. */
	if (IS_ENABLED(CONFIG_PREEMPT_RT)) {
		pr_err("not with PREEMPT_RT: boot a kernel without it\n");
		return -EOPNOTSUPP;
	}
	error = ptkit_read_caps(&ptkit_caps);
	if (error)
		return error;
	ptkit_probes_init();
	error = ptkit_units_init();
	if (error)
		return error;
	error = ptkit_sideband_init();
	if (error)
		goto units;
	ptkit_power_init();
	error = misc_register(&device);
	if (error)
		goto others;
	pr_info("ABI %u, CPUID 14H EBX %#x ECX %#x\n", PTKIT_ABI, ptkit_caps.cpuid_14_0[1],
		ptkit_caps.cpuid_14_0[2]);
	return 0;
others:
	ptkit_power_exit();
	ptkit_sideband_exit();
units:
	ptkit_units_exit();
	return error;
}

static void __exit ptkit_exit(void)
{
	misc_deregister(&device);
	WARN_ON(ptkit_in_use());
	ptkit_power_exit();
	ptkit_sideband_exit();
	ptkit_units_exit();
	rcu_barrier(); /* free_child() of follow.c */
}

module_init(ptkit_init);
module_exit(ptkit_exit);

MODULE_DESCRIPTION("Intel Processor Trace without perf");
MODULE_AUTHOR("ptkit contributors");
MODULE_LICENSE("Dual MIT/GPL");
MODULE_VERSION("0.1.0");
