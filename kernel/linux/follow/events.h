/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Tracepoints of the kernel, and the probes that their users register. */
#ifndef PTKIT_LINUX_EVENTS_H
#define PTKIT_LINUX_EVENTS_H

#include <linux/tracepoint.h>
#include <linux/types.h>

/* A tracepoint of a user, and the probe that is called there. */
struct ptkit_event {
	const char *name;
	void *probe;
	struct tracepoint *tracepoint; /* null: the kernel has none of that name */
	unsigned int users; /* ptkit_events_begin() without ptkit_events_end() */
};

/* The events of one user. */
struct ptkit_events {
	struct ptkit_event *events;
	unsigned int count; /* at most 32 */
	/* Where several users have probes at a tracepoint, the highest priority comes first. */
	int priority;
};

/* Looks the tracepoints up. False: the kernel lacks one of them. */
bool ptkit_events_find(const struct ptkit_events *events);
/* `wanted` has a bit for each number of an event, which was found. */
int ptkit_events_begin(const struct ptkit_events *events, unsigned int wanted);
/* Waits until all probes that run have returned. */
void ptkit_events_end(const struct ptkit_events *events, unsigned int wanted);
/* Whether any probe is registered. */
bool ptkit_events_any(void);

#endif /* PTKIT_LINUX_EVENTS_H */
