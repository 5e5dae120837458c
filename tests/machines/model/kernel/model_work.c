// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Counts what the handlers of an interrupt do: an NMI must not take long, whatever the size. */
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>

#include <asm/nmi.h>

#include "model.h"
#include "unit/units.h"

struct work {
	unsigned int accesses; /* of registers */
	unsigned int looked_at; /* tables of regions, and their entries */
};

static struct work most_work;
module_param_named(model_most_accesses, most_work.accesses, uint, 0644);
MODULE_PARM_DESC(model_most_accesses, "most accesses of registers in one interrupt");
module_param_named(model_most_entries, most_work.looked_at, uint, 0644);
MODULE_PARM_DESC(model_most_entries, "most tables and entries that one interrupt looked at");

static DEFINE_PER_CPU(unsigned int, accesses_here);
static DEFINE_PER_CPU(struct work, work_before);

void model_count_access(void)
{
	this_cpu_inc(accesses_here);
}

static struct work work_here(void)
{
	const struct ptkit_trace *trace = ptkit_unit_owner();
	struct work work = { .accesses = this_cpu_read(accesses_here) };

	if (trace)
		work.looked_at = trace->pt.memory.topa.looked_at;
	return work;
}

static int begin_interrupt(unsigned int command, struct pt_regs *registers)
{
	*this_cpu_ptr(&work_before) = work_here();
	return NMI_DONE;
}

static int end_interrupt(unsigned int command, struct pt_regs *registers)
{
	const struct work *before = this_cpu_ptr(&work_before);
	struct work after = work_here();

	most_work.accesses = max(most_work.accesses, after.accesses - before->accesses);
	most_work.looked_at = max(most_work.looked_at, after.looked_at - before->looked_at);
	return NMI_DONE;
}

/* Before and after the handlers of the driver. */
static int set_counting(const char *text, const struct kernel_param *parameter)
{
	int error;

	if (*text == '0') {
		unregister_nmi_handler(NMI_LOCAL, "ptkit_begin");
		unregister_nmi_handler(NMI_LOCAL, "ptkit_end");
		return 0;
	}
	error = register_nmi_handler(NMI_LOCAL, begin_interrupt, NMI_FLAG_FIRST, "ptkit_begin");
	if (error)
		return error;
	return register_nmi_handler(NMI_LOCAL, end_interrupt, 0, "ptkit_end");
}

static const struct kernel_param_ops counting_ops = { .set = set_counting };
module_param_cb(model_counts_work, &counting_ops, NULL, 0200);
MODULE_PARM_DESC(model_counts_work, "1, later 0: count what interrupts do");
