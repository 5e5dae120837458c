// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The reservation of a processor's trace unit: an event of perf's PMU intel_pt that is never
 * enabled. Such a PMU is exclusive: perf refuses the event while it has others on that processor or
 * of any task, and refuses those others while it has this event. perf removes the events of a
 * processor that goes offline, so the reservation is made again when it comes back.
 */
#include <linux/cpumask.h>
#include <linux/device.h>
#include <linux/err.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>

#include "unit/reserve.h"

struct reservation {
	struct perf_event *event;
	unsigned int users;
};

static DEFINE_PER_CPU(struct reservation, reservations);
static u32 pmu_type; /* 0: no PMU to reserve */

struct perf_event *ptkit_make_event(u32 type, u64 config, unsigned int cpu)
{
	struct perf_event_attr attr = {
		.type = type,
		.config = config,
		.size = sizeof(attr),
		.disabled = 1,
	};
	struct perf_event *event = perf_event_create_kernel_counter(&attr, cpu, NULL, NULL, NULL);

	return IS_ERR(event) ? NULL : event;
}

/* The kernel exports no look-up of PMUs. All of them are devices of one bus. */
void ptkit_reserve_init(void)
{
	struct perf_event *any = ptkit_make_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY,
						  cpumask_first(cpu_online_mask));
	struct device *device = NULL;

	pmu_type = 0;
	if (!any)
		return;
	if (any->pmu->dev)
		device = bus_find_device_by_name(any->pmu->dev->bus, NULL, "intel_pt");
	if (device)
		pmu_type = ((struct pmu *)dev_get_drvdata(device))->type;
	put_device(device);
	perf_event_release_kernel(any);
}

bool ptkit_reserve_needed(void)
{
	return pmu_type;
}

void ptkit_reserve_renew(unsigned int cpu)
{
	struct reservation *one = per_cpu_ptr(&reservations, cpu);

	if (pmu_type && one->users && !one->event)
		one->event = ptkit_make_event(pmu_type, 0, cpu);
}

void ptkit_reserve_drop(unsigned int cpu)
{
	struct reservation *one = per_cpu_ptr(&reservations, cpu);

	if (one->event)
		perf_event_release_kernel(one->event);
	one->event = NULL;
}

void ptkit_reserve(unsigned int cpu)
{
	per_cpu(reservations.users, cpu)++;
	if (cpu_online(cpu))
		ptkit_reserve_renew(cpu);
}

void ptkit_unreserve(unsigned int cpu)
{
	if (!--per_cpu(reservations.users, cpu))
		ptkit_reserve_drop(cpu);
}

bool ptkit_is_refused(unsigned int cpu)
{
	return pmu_type && !per_cpu(reservations.event, cpu);
}
