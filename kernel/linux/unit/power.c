// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Suspend takes all processors but one offline, and resume takes them online again; units.c handles
 * that. The last processor loses its registers without going offline. Tracing stops there as the
 * last step of suspend, and continues as one of the first steps of resume. All tasks are frozen
 * meanwhile, so no task makes requests.
 */
#include <linux/sched.h>

#include "machine/compat.h"
#include "unit/power.h"
#include "unit/units.h"

static struct ptkit_trace *suspended;

/* Both run on the last processor, with interrupts off. */
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
