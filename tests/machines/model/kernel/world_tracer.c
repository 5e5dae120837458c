// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * perf's intel_pt with an event of a task. Like arch/x86/events/intel/pt.c it keeps copies of
 * OUTPUT_BASE, OUTPUT_MASK_PTRS and ADDRn of the processor, writes those that differ, and sets
 * TraceEn without a look; at the end it reads output registers back. Its table stays where it is:
 * memory that is freed is allocated again. With world_looks it is another tracer, which reserves
 * nothing and looks at TraceEn.
 */
#include <linux/gfp.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "ptkit/rtit_regs.h"
#include "world.h"

#define TRACE_EN BIT_ULL(PT_CTL_TRACE_EN)
#define CTL (BIT_ULL(PT_CTL_TOPA) | BIT_ULL(PT_CTL_USER) | BIT_ULL(PT_CTL_BRANCH_EN) | \
	     (u64)PT_ADDR_CFG_FILTER << PT_CTL_ADDR0_CFG_SHIFT)
#define RANGE_BEGIN 0x401000
#define RANGE_END 0x401fff

static bool world_looks;
module_param(world_looks, bool, 0644);
MODULE_PARM_DESC(world_looks, "the tracer reserves nothing, and does not trace while TraceEn is set");

static unsigned int world_tasks;
module_param(world_tasks, uint, 0444);
MODULE_PARM_DESC(world_tasks, "how often a task was traced; other times perf refused the event");

static unsigned int world_faults;
module_param(world_faults, uint, 0444);
MODULE_PARM_DESC(world_faults, "accesses of perf's intel_pt that have faulted");

static unsigned int world_misplaced;
module_param(world_misplaced, uint, 0444);
MODULE_PARM_DESC(world_misplaced, "bytes of tasks that are not where perf's intel_pt reads them");

static u64 *table; /* of one region */
static u8 *region;
static bool task_runs;
static u64 position; /* of the task's next byte */

/* Copies of registers. */
static struct {
	u64 base;
	u64 mask_ptrs;
	u64 range[2];
} copies;

bool world_task_runs(void)
{
	return task_runs;
}

bool world_task_owns(u64 base)
{
	return table && base == virt_to_phys(table);
}

static void write_msr(u32 msr, u64 value)
{
	world_faults += !!model_machine.ops.write(model_machine.ops.ctx, msr, value);
}

static u64 read_msr(u32 msr)
{
	u64 value = 0;

	world_faults += !!model_machine.ops.read(model_machine.ops.ctx, msr, &value);
	return value;
}

static void write_if_new(u32 msr, u64 *copy, u64 value)
{
	if (*copy == value)
		return;
	write_msr(msr, value);
	*copy = value;
}

static void begin_task(void)
{
	write_if_new(PT_MSR_RTIT_OUTPUT_BASE, &copies.base, virt_to_phys(table));
	write_if_new(PT_MSR_RTIT_OUTPUT_MASK_PTRS, &copies.mask_ptrs,
		     position << PT_OUTPUT_OFFSET_SHIFT | PT_OUTPUT_MASK_LOWEST);
	write_msr(PT_MSR_RTIT_STATUS, 0);
	write_if_new(PT_MSR_RTIT_ADDR0_A, &copies.range[0], RANGE_BEGIN);
	write_if_new(PT_MSR_RTIT_ADDR0_A + 1, &copies.range[1], RANGE_END);
	write_msr(PT_MSR_RTIT_CTL, CTL | TRACE_EN);
}

static void end_task(void)
{
	write_msr(PT_MSR_RTIT_CTL, CTL);
	copies.base = read_msr(PT_MSR_RTIT_OUTPUT_BASE);
	copies.mask_ptrs = read_msr(PT_MSR_RTIT_OUTPUT_MASK_PTRS);
}

static bool range_is_loaded(void)
{
	return read_msr(PT_MSR_RTIT_ADDR0_A) == RANGE_BEGIN &&
	       read_msr(PT_MSR_RTIT_ADDR0_A + 1) == RANGE_END;
}

/* All bytes are there, and no other byte was changed. */
static void check_region(unsigned int bytes)
{
	u64 i;

	for (i = 0; i < PAGE_SIZE; i++) {
		bool belongs = i >= position && i < position + bytes;

		world_misplaced += belongs != !!region[i];
	}
	memset(region, 0, PAGE_SIZE);
	position = (position + bytes) % (PAGE_SIZE / 2);
}

/* Another tracer is not switched to within a request of the driver, and it sees TraceEn. */
static bool may_trace(void)
{
	if (!READ_ONCE(world_looks))
		return model_pmu_add_task();
	return !model_this_unit()->in_access && !(read_msr(PT_MSR_RTIT_CTL) & TRACE_EN);
}

void world_run_task(unsigned int bytes)
{
	if (!table || !may_trace())
		return;
	world_tasks++;
	begin_task();
	task_runs = true;
	world_execute(bytes);
	if (!range_is_loaded())
		world_misplaced += bytes;
	task_runs = false;
	end_task();
	check_region(bytes);
	if (!READ_ONCE(world_looks))
		model_pmu_remove_task();
}

static void run_here(void *bytes)
{
	world_run_task(*(unsigned int *)bytes);
}

static int set_run_task(const char *text, const struct kernel_param *parameter)
{
	unsigned int bytes;
	int error = kstrtouint(text, 0, &bytes);

	return error ? error : smp_call_function_single(0, run_here, &bytes, 1);
}

static const struct kernel_param_ops run_task_ops = { .set = set_run_task };
module_param_cb(world_run_task, &run_task_ops, NULL, 0200);
MODULE_PARM_DESC(world_run_task, "written: a traced task runs once on processor 0, for so many bytes");

static int set_tracer(const char *text, const struct kernel_param *parameter)
{
	if (*text == '0') {
		free_page((unsigned long)table);
		free_page((unsigned long)region);
		table = NULL;
		region = NULL;
		return 0;
	}
	memset(&copies, 0, sizeof(copies));
	if (table)
		return 0;
	table = (u64 *)get_zeroed_page(GFP_KERNEL);
	region = (u8 *)get_zeroed_page(GFP_KERNEL);
	if (!table || !region)
		return -ENOMEM;
	table[0] = virt_to_phys(region);
	table[1] = virt_to_phys(table) | BIT(PT_TOPA_END);
	return 0;
}

static const struct kernel_param_ops tracer_ops = { .set = set_tracer };
module_param_cb(world_tracer, &tracer_ops, NULL, 0200);
MODULE_PARM_DESC(world_tracer,
		 "1: perf's intel_pt has a buffer, and no copies of registers; 0, before unload: none");
