// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Tracepoints are found by name, as their symbols are not exported. A probe is registered only
 * while its user needs it.
 *
 * From Linux 7.0 on probes may run with preemption on: those that read lists of RCU, or the number of
 * the processor, disable it. A probe of sched_switch runs before the switch, with
 * interrupts off and the runqueue locked: only an irq_work may wake up a task there.
 */
#include <linux/errno.h>
#include <linux/mutex.h>
#include <linux/string.h>

#include "follow/events.h"

static DEFINE_MUTEX(events_lock);
static unsigned int registered; /* probes */

static void note_tracepoint(struct tracepoint *tracepoint, void *context)
{
	const struct ptkit_events *events = context;
	unsigned int i;

	for (i = 0; i < events->count; i++) {
		if (!strcmp(tracepoint->name, events->events[i].name))
			events->events[i].tracepoint = tracepoint;
	}
}

bool ptkit_events_find(const struct ptkit_events *events)
{
	unsigned int i;

	for_each_kernel_tracepoint(note_tracepoint, (void *)events);
	for (i = 0; i < events->count; i++) {
		if (!events->events[i].tracepoint)
			return false;
	}
	return true;
}

static int begin(const struct ptkit_events *events, struct ptkit_event *event)
{
	int error;

	if (!event->users) {
		error = tracepoint_probe_register_prio(event->tracepoint, event->probe, NULL,
						       events->priority);
		if (error)
			return error;
		registered++;
	}
	event->users++;
	return 0;
}

static void end(struct ptkit_event *event)
{
	if (--event->users)
		return;
	tracepoint_probe_unregister(event->tracepoint, event->probe, NULL);
	registered--;
}

static void end_all(const struct ptkit_events *events, unsigned int wanted)
{
	unsigned int i;

	for (i = 0; i < events->count; i++) {
		if (wanted & BIT(i))
			end(&events->events[i]);
	}
}

int ptkit_events_begin(const struct ptkit_events *events, unsigned int wanted)
{
	unsigned int begun = 0;
	unsigned int i;
	int error = 0;

	mutex_lock(&events_lock);
	for (i = 0; i < events->count && !error; i++) {
		if (!(wanted & BIT(i)))
			continue;
		error = begin(events, &events->events[i]);
		if (!error)
			begun |= BIT(i);
	}
	if (error)
		end_all(events, begun);
	mutex_unlock(&events_lock);
	return error;
}

void ptkit_events_end(const struct ptkit_events *events, unsigned int wanted)
{
	mutex_lock(&events_lock);
	end_all(events, wanted);
	mutex_unlock(&events_lock);
	tracepoint_synchronize_unregister();
}

bool ptkit_events_any(void)
{
	return READ_ONCE(registered);
}
