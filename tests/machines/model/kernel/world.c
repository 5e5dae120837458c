// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The driver's accesses to the model, and operations of other users in between. Insertion points are numbered
 * from 0 on, which is before the first access. world_losses says where the unit has dropped bytes
 * that the driver wants: the truth for what the driver reports.
 */
#include <linux/atomic.h>
#include <linux/hardirq.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "ptkit/rtit_regs.h"
#include "unit/units.h"
#include "world.h"

#define TRACE_EN BIT_ULL(PT_CTL_TRACE_EN)

static unsigned int world_neighbour;
module_param(world_neighbour, uint, 0644);
MODULE_PARM_DESC(world_neighbour, "enum world_neighbour: the one that comes at world_point");

static unsigned int world_lasts;
module_param(world_lasts, uint, 0644);
MODULE_PARM_DESC(world_lasts, "insertion points until VMXOFF");

static unsigned int world_bytes;
module_param(world_bytes, uint, 0644);
MODULE_PARM_DESC(world_bytes,
		 "what the unit writes in perf's handler, of perf's traced task, of the driver's own code");

unsigned int world_bytes_of_neighbour(void)
{
	return READ_ONCE(world_bytes);
}

static atomic_t points_left = ATOMIC_INIT(-1); /* until the neighbour comes; -1: it was here */
static atomic_t points_to_end = ATOMIC_INIT(-1); /* until it goes */

static unsigned int world_accesses;
module_param(world_accesses, uint, 0444);
MODULE_PARM_DESC(world_accesses, "accesses of the driver since world_point was written");

static unsigned int world_stretches;
module_param(world_stretches, uint, 0444);
MODULE_PARM_DESC(world_stretches, "stretches of traced code since then");

static unsigned int world_idle;
module_param(world_idle, uint, 0444);
MODULE_PARM_DESC(world_idle, "bytes dropped since then with room in the buffer, after an interrupt");

static unsigned int world_strays;
module_param(world_strays, uint, 0444);
MODULE_PARM_DESC(world_strays, "bytes that would have gone to the memory of another user");

static u64 stream_bytes; /* written to the driver's buffer since then */

static struct {
	u64 offset; /* in these bytes */
	unsigned int bytes;
} losses[16];

static unsigned int loss_count;

static void add_loss(unsigned int bytes)
{
	unsigned int i = loss_count;

	if (i && losses[i - 1].offset == stream_bytes) {
		losses[i - 1].bytes += bytes;
	} else if (i < ARRAY_SIZE(losses)) {
		losses[i].offset = stream_bytes;
		losses[i].bytes = bytes;
		loss_count++;
	}
}

static int get_losses(char *text, const struct kernel_param *parameter)
{
	unsigned int i;
	int length = 0;

	for (i = 0; i < loss_count; i++)
		length += sysfs_emit_at(text, length, "%llu %u\n", losses[i].offset,
					losses[i].bytes);
	return length;
}

static const struct kernel_param_ops losses_ops = { .get = get_losses };
module_param_cb(world_losses, &losses_ops, NULL, 0444);
MODULE_PARM_DESC(world_losses, "lines: an offset in the driver's stream, and how many bytes it misses");

static int get_written(char *text, const struct kernel_param *parameter)
{
	return sysfs_emit(text, "%llu\n", stream_bytes);
}

static const struct kernel_param_ops written_ops = { .get = get_written };
module_param_cb(world_written, &written_ops, NULL, 0444);
MODULE_PARM_DESC(world_written, "bytes of the driver's stream");

static bool has_room(const struct ptkit_trace *owner)
{
	u64 tail = READ_ONCE(owner->pt.tail);

	return stream_bytes < tail - tail % PAGE_SIZE + owner->pt.memory.bytes;
}

/* The driver's own code, and code that interrupts it, may come while TraceEn is clear. */
static bool is_wanted(const struct model_unit *unit, const struct ptkit_trace *owner)
{
	if (!owner || !READ_ONCE(owner->pt.wanted))
		return false;
	return (!in_nmi() && !unit->in_access) || unit->status & BIT(PT_STATUS_STOPPED) ||
	       unit->cleared_by_vmxon;
}

static void note_dropped(const struct model_unit *unit, unsigned int bytes)
{
	const struct ptkit_trace *owner = ptkit_unit_owner();

	if (!bytes || !is_wanted(unit, owner))
		return;
	add_loss(bytes);
	if (unit->status & BIT(PT_STATUS_STOPPED) && unit->noticeable && !in_nmi() &&
	    !unit->in_access && has_room(owner))
		world_idle += bytes;
}

static bool is_drivers(const struct model_unit *unit)
{
	struct ptkit_trace *owner = ptkit_unit_owner();

	return owner && pt_memory_owns(&owner->pt.memory, unit->base);
}

/* Returns how many bytes were not written. */
static unsigned int write_packets(struct model_unit *unit, unsigned int bytes)
{
	bool task_runs = world_task_runs();
	u64 next_value = *unit->written;
	unsigned int left;

	if (!(unit->ctl & TRACE_EN))
		return bytes;
	if (task_runs ? !world_task_owns(unit->base) : !is_drivers(unit)) {
		world_strays += bytes;
		return bytes;
	}
	left = model_write_packets(unit, bytes);
	if (task_runs)
		*unit->written = next_value; /* of the driver's stream */
	else
		stream_bytes += bytes - left;
	return left;
}

void world_execute(unsigned int bytes)
{
	struct model_unit *unit = model_this_unit();
	unsigned int left = write_packets(unit, bytes);

	if (left != bytes && !in_nmi())
		unit->noticeable = false;
	if (!world_task_runs())
		note_dropped(unit, left);
	model_tick(unit);
}

static void leave(void)
{
	world_vmxoff();
}

static void come(void)
{
	switch (READ_ONCE(world_neighbour)) {
	case WORLD_COUNTER:
		world_overflow();
		break;
	case WORLD_PERF_TRACE:
		world_run_task(world_bytes_of_neighbour());
		break;
	case WORLD_VMX:
		world_vmxon();
		atomic_set(&points_to_end, READ_ONCE(world_lasts));
		if (!atomic_read(&points_to_end))
			leave();
		break;
	case WORLD_FIRMWARE:
		model_this_unit()->global_status |= BIT_ULL(PT_PERF_GLOBAL_TRACE_TOPA_PMI);
		break;
	case WORLD_CODE:
		world_execute(world_bytes_of_neighbour());
		break;
	default:
		break;
	}
}

static void pass_point(void)
{
	if (!atomic_dec_return(&points_to_end))
		leave();
	if (!atomic_dec_return(&points_left))
		come();
}

static void begin_access(void)
{
	model_this_unit()->in_access++;
}

static void end_access(void)
{
	if (!smp_processor_id()) {
		world_accesses++;
		pass_point();
	}
	model_this_unit()->in_access--;
}

static int world_write(void *ctx, u32 msr, u64 value)
{
	int error;

	begin_access();
	error = model_machine.ops.write(model_machine.ops.ctx, msr, value);
	end_access();
	return error;
}

static int world_read(void *ctx, u32 msr, u64 *value)
{
	int error;

	begin_access();
	error = model_machine.ops.read(model_machine.ops.ctx, msr, value);
	end_access();
	return error;
}

static void world_cpuid(u32 leaf, u32 subleaf, u32 words[4])
{
	model_machine.cpuid(leaf, subleaf, words);
}

static void world_arm_interrupt(void)
{
	begin_access();
	model_machine.arm_interrupt();
	world_was_unmasked();
	end_access();
}

static u64 world_late_ticks(void)
{
	return model_machine.late_ticks();
}

const struct ptkit_machine ptkit_machine = {
	.cpuid = world_cpuid,
	.arm_interrupt = world_arm_interrupt,
	.late_ticks = world_late_ticks,
	.ops = {
		.write = world_write,
		.read = world_read,
	},
};

static void begin_here(void *point)
{
	world_accesses = 0;
	world_stretches = 0;
	world_idle = 0;
	world_strays = 0;
	stream_bytes = 0;
	loss_count = 0;
	model_this_unit()->noticeable = false;
	atomic_set(&points_to_end, -1);
	atomic_set(&points_left, *(int *)point + 1);
	if (*(int *)point >= 0)
		pass_point();
}

static int set_point(const char *text, const struct kernel_param *parameter)
{
	int point;
	int error = kstrtoint(text, 0, &point);

	return error ? error : smp_call_function_single(0, begin_here, &point, 1);
}

static int get_point(char *text, const struct kernel_param *parameter)
{
	return sysfs_emit(text, "%d\n", max(atomic_read(&points_left), 0));
}

static const struct kernel_param_ops point_ops = { .set = set_point, .get = get_point };
module_param_cb(world_point, &point_ops, NULL, 0644);
MODULE_PARM_DESC(world_point,
		 "written: where the neighbour comes, -1: nowhere; counts begin. Read: points until then");

static void execute_here(void *bytes)
{
	world_stretches++;
	world_execute(*(unsigned int *)bytes);
	pass_point();
}

static int set_execute(const char *text, const struct kernel_param *parameter)
{
	unsigned int bytes;
	int error = kstrtouint(text, 0, &bytes);

	return error ? error : smp_call_function_single(0, execute_here, &bytes, 1);
}

static const struct kernel_param_ops execute_ops = { .set = set_execute };
module_param_cb(world_execute, &execute_ops, NULL, 0200);
MODULE_PARM_DESC(world_execute, "written: traced code is executed on processor 0, for so many bytes");

static void leave_here(void *unused)
{
	leave();
}

static int set_leave(const char *text, const struct kernel_param *parameter)
{
	return smp_call_function_single(0, leave_here, NULL, 1);
}

static const struct kernel_param_ops leave_ops = { .set = set_leave };
module_param_cb(world_leave, &leave_ops, NULL, 0200);
MODULE_PARM_DESC(world_leave, "written: the neighbour goes");
