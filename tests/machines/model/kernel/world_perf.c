// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * A counter of perf, and its handler of interrupts. Like intel_pmu_handle_irq() it acknowledges
 * every bit of GLOBAL_STATUS that it reads until none is left, and unmasks the interrupt then.
 */
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/smp.h>
#include <linux/sysfs.h>

#include <asm/nmi.h>

#include "ptkit/rtit_regs.h"
#include "world.h"

#define COUNTER BIT_ULL(0) /* of GLOBAL_STATUS */
#define TOPA BIT_ULL(PT_PERF_GLOBAL_TRACE_TOPA_PMI)

static bool world_reraises;
module_param(world_reraises, bool, 0644);
MODULE_PARM_DESC(world_reraises, "an interrupt comes when it is unmasked while a bit is set");

static unsigned int world_overflows;
module_param(world_overflows, uint, 0444);
MODULE_PARM_DESC(world_overflows, "how often the counter has overflowed");

static unsigned int world_counted;
module_param(world_counted, uint, 0444);
MODULE_PARM_DESC(world_counted, "overflows that perf's handler has seen");

static unsigned int world_unknown;
module_param(world_unknown, uint, 0444);
MODULE_PARM_DESC(world_unknown, "NMIs that no handler has claimed");

static void masked_here(void *masked)
{
	const struct model_unit *unit = model_this_unit();

	*(bool *)masked = !model_is_armed() || unit->global_status & COUNTER;
}

static int get_masked(char *text, const struct kernel_param *parameter)
{
	bool masked = false;

	smp_call_function_single(0, masked_here, &masked, 1);
	return sysfs_emit(text, "%d\n", masked);
}

static const struct kernel_param_ops masked_ops = { .get = get_masked };
module_param_cb(world_masked, &masked_ops, NULL, 0444);
MODULE_PARM_DESC(world_masked, "whether processor 0 masks the interrupt, or has an overflow left");

void world_overflow(void)
{
	struct model_unit *unit = model_this_unit();

	world_overflows++;
	unit->global_status |= COUNTER;
	model_deliver(unit);
}

void world_was_unmasked(void)
{
	struct model_unit *unit = model_this_unit();

	if (READ_ONCE(world_reraises) && unit->global_status)
		model_deliver(unit);
}

static int handle_interrupt(unsigned int command, struct pt_regs *registers)
{
	struct model_unit *unit = model_this_unit();
	int handled = 0;
	u64 status;

	if (unit->global_status & COUNTER)
		world_execute(world_bytes_of_neighbour());
	for (status = unit->global_status; status; status = unit->global_status) {
		unit->global_status &= ~status;
		world_counted += !!(status & COUNTER);
		handled += !!(status & COUNTER) + !!(status & TOPA);
	}
	model_machine.arm_interrupt();
	world_was_unmasked();
	return handled;
}

static int claim_unknown(unsigned int command, struct pt_regs *registers)
{
	world_unknown++;
	return NMI_HANDLED;
}

static void unmask_here(void *unused)
{
	model_machine.arm_interrupt();
}

/* perf's counters are in use: its handler is registered before those of the driver. */
static int set_perf(const char *text, const struct kernel_param *parameter)
{
	int error;

	if (*text == '0') {
		unregister_nmi_handler(NMI_UNKNOWN, "world_unknown");
		unregister_nmi_handler(NMI_LOCAL, "world_perf");
		return 0;
	}
	error = register_nmi_handler(NMI_LOCAL, handle_interrupt, 0, "world_perf");
	if (error)
		return error;
	on_each_cpu(unmask_here, NULL, 1);
	return register_nmi_handler(NMI_UNKNOWN, claim_unknown, 0, "world_unknown");
}

static const struct kernel_param_ops perf_ops = { .set = set_perf };
module_param_cb(world_perf, &perf_ops, NULL, 0200);
MODULE_PARM_DESC(world_perf, "1, at load: perf has counters; 0, before unload: no longer");
