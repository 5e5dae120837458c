// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Under page-table isolation the page tables of user code do not map the buffer. The kernel's
 * cpu_entry_area is mapped there, but perf uses it.
 *
 * perf writes DS_AREA when it creates the first hardware event, and never clears it. So the value
 * of DS_AREA does not show whether perf uses it. The driver creates a hardware event that never
 * counts: no later event is the first one. Precise events use the DS area, too. While perf has any,
 * the driver does not use it.
 */
#include <linux/errno.h>
#include <linux/kmemleak.h>
#include <linux/perf_event.h>
#include <linux/pid_namespace.h>
#include <linux/slab.h>

#include "common/pt_branches.h"
#include "unit/bts.h"
#include "unit/reserve.h"

struct branches {
	struct pt_bts pt;
	struct pid_namespace *ns; /* numbers the threads of marks */
	struct perf_event *event; /* null: perf has no hardware events */
};

static struct branches *branches_of(const struct ptkit_trace *trace)
{
	return container_of(trace->pt.bts, struct branches, pt);
}

int ptkit_bts_make(struct ptkit_trace *trace, const struct ptkit_config *config)
{
	struct branches *branches = kzalloc(sizeof(*branches), GFP_KERNEL_ACCOUNT);

	if (!branches)
		return -ENOMEM;
	pt_branches_init(&trace->pt, &branches->pt, config);
	branches->ns = get_pid_ns(task_active_pid_ns(current));
	branches->event =
		ptkit_make_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, trace->cpu);
	return 0;
}

void ptkit_bts_free(struct ptkit_trace *trace)
{
	struct branches *branches = branches_of(trace);

	if (!trace->pt.bts)
		return;
	if (branches->event)
		perf_event_release_kernel(branches->event);
	put_pid_ns(branches->ns);
	kfree(branches);
	trace->pt.bts = NULL;
}

void ptkit_bts_abandon(const struct ptkit_trace *trace)
{
	kmemleak_ignore(trace->pt.bts);
}

void ptkit_bts_set_thread(struct ptkit_trace *trace, struct task_struct *task)
{
	struct branches *branches = branches_of(trace);

	branches->pt.thread.pid = task_tgid_nr_ns(task, branches->ns);
	branches->pt.thread.tid = task_pid_nr_ns(task, branches->ns);
}
