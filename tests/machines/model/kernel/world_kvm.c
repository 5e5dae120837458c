// SPDX-License-Identifier: GPL-2.0 OR MIT
/* KVM: VMX operation, and guests that have the trace unit (pt_mode=1). */
#include <linux/moduleparam.h>
#include <linux/smp.h>

#include "ptkit/rtit_regs.h"
#include "world.h"

/* Where a processor cannot trace in VMX operation. */
void world_vmxon(void)
{
	struct model_unit *unit = model_this_unit();

	unit->cleared_by_vmxon = unit->ctl & BIT_ULL(PT_CTL_TRACE_EN);
	unit->ctl &= ~BIT_ULL(PT_CTL_TRACE_EN);
	unit->in_vmx = true;
}

void world_vmxoff(void)
{
	model_this_unit()->in_vmx = false;
}

/*
 * KVM saves the registers, clears TraceEn, and loads those of a guest. Afterwards it restores what
 * it saved, whatever the driver did meanwhile.
 */
static void enter_guest(void *saved)
{
	struct model_unit *unit = model_this_unit();

	*(struct model_unit *)saved = *unit;
	unit->ctl = 0;
	unit->base = 0xbad000;
}

static void leave_guest(void *saved)
{
	struct model_unit *unit = model_this_unit();
	const struct model_unit *before = saved;

	unit->status = before->status;
	unit->base = before->base;
	unit->mask_ptrs = before->mask_ptrs;
	unit->ctl = before->ctl;
}

static int set_guest(const char *text, const struct kernel_param *parameter)
{
	static struct model_unit saved;

	return smp_call_function_single(0, *text == '1' ? enter_guest : leave_guest, &saved, 1);
}

static const struct kernel_param_ops guest_ops = { .set = set_guest };
module_param_cb(model_guest, &guest_ops, NULL, 0200);
MODULE_PARM_DESC(model_guest, "1: processor 0 runs a guest that has the trace unit; 0: no longer");
