// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * A PMU as exclusive as perf's intel_pt; it counts nothing. The world has events of tasks that the
 * kernel does not know: their rules are here.
 */
#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/perf_event.h>

#include "world.h"

static atomic_t of_processors = ATOMIC_INIT(0); /* events; less than 0: the world's tasks */

bool model_pmu_add_task(void)
{
	return atomic_dec_unless_positive(&of_processors);
}

void model_pmu_remove_task(void)
{
	atomic_inc(&of_processors);
}

static void pmu_destroy_event(struct perf_event *event)
{
	atomic_dec(&of_processors);
}

static int pmu_init_event(struct perf_event *event)
{
	if (event->attr.type != event->pmu->type)
		return -ENOENT;
	if (event->cpu < 0)
		return 0;
	if (!atomic_inc_unless_negative(&of_processors))
		return -EBUSY;
	event->destroy = pmu_destroy_event;
	return 0;
}

static int pmu_add_event(struct perf_event *event, int flags)
{
	return 0;
}

static void pmu_ignore_event(struct perf_event *event, int flags)
{
}

static void pmu_read_event(struct perf_event *event)
{
}

static struct pmu model_intel_pt = {
	.capabilities = PERF_PMU_CAP_EXCLUSIVE,
	.task_ctx_nr = perf_sw_context,
	.module = THIS_MODULE,
	.event_init = pmu_init_event,
	.add = pmu_add_event,
	.del = pmu_ignore_event,
	.start = pmu_ignore_event,
	.stop = pmu_ignore_event,
	.read = pmu_read_event,
};

static int set_pmu(const char *text, const struct kernel_param *parameter)
{
	if (*text == '1')
		return perf_pmu_register(&model_intel_pt, "intel_pt", -1);
	perf_pmu_unregister(&model_intel_pt);
	return 0;
}

static const struct kernel_param_ops pmu_ops = { .set = set_pmu };
module_param_cb(model_pmu, &pmu_ops, NULL, 0200);
MODULE_PARM_DESC(model_pmu, "1, at load: perf has the PMU intel_pt; 0, before unload: no longer");
