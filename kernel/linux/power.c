// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Suspend. All processors but one are taken offline for it, and come back afterwards, as at any
 * other time (units.c). The last one loses its registers without that: tracing stops there as the
 * very last thing, and goes on as one of the first. All tasks are frozen then, so nobody makes
 * requests.
 */
#include <linux/sched.h>
#include <linux/syscore_ops.h>

#include "ptkit.h"

static struct ptkit_trace *suspended;

/* Both on that processor, interrupts off. */
static int suspend(void)
{
	suspended = ptkit_unit_owner();
	if (suspended)
		ptkit_unit_leave(suspended);
	return 0;
}

static void resume(void)
{
	if (suspended)
		ptkit_unit_enter(suspended, current);
	suspended = NULL;
}

static struct syscore_ops operations = {
	.suspend = suspend,
	.resume = resume,
};

void ptkit_power_init(void)
{
	register_syscore_ops(&operations);
}

void ptkit_power_exit(void)
{
	unregister_syscore_ops(&operations);
}
