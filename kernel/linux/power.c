// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Suspend. All processors but one are taken offline for it, and come back afterwards, as at any
 * other time (units.c). The last one loses its registers without that: tracing stops there as the
 * very last thing, and goes on as one of the first. All tasks are frozen then, so nobody makes
 * requests.
 */
#include <linux/sched.h>

#include "compat.h"
#include "ptkit.h"

static struct ptkit_trace *suspended;

/* Both on that processor, interrupts off. */
static int suspend(PTKIT_SYSCORE_ARGUMENT)
{
	suspended = ptkit_unit_owner();
	if (suspended)
		ptkit_unit_leave(suspended);
	return 0;
}

static void resume(PTKIT_SYSCORE_ARGUMENT)
{
	if (suspended)
		ptkit_unit_enter(suspended, current);
	suspended = NULL;
}

static struct ptkit_syscore operations = {
	.ops.suspend = suspend,
	.ops.resume = resume,
};

void ptkit_power_init(void)
{
	ptkit_syscore_register(&operations);
}

void ptkit_power_exit(void)
{
	ptkit_syscore_unregister(&operations);
}
