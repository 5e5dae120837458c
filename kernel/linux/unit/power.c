// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Suspend takes all processors but one offline, and resume takes them online again; units.c handles
 * that. The last processor loses its registers without going offline. Tracing stops there as the
 * last step of suspend, and continues as one of the first steps of resume. All tasks are frozen
 * meanwhile, so no task makes requests.
 *
 * Before kexec boots another kernel, all processors stop tracing: their buffers are its memory.
 */
#include <linux/notifier.h>
#include <linux/reboot.h>
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

static int shut_down(struct notifier_block *block, unsigned long action, void *data)
{
	ptkit_units_shut_down();
	return NOTIFY_DONE;
}

static struct notifier_block reboot = {
	.notifier_call = shut_down,
};

void ptkit_power_init(void)
{
	register_reboot_notifier(&reboot);
	ptkit_syscore_register(&operations);
}

void ptkit_power_exit(void)
{
	unregister_reboot_notifier(&reboot);
	ptkit_syscore_unregister(&operations);
}
