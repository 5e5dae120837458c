// SPDX-License-Identifier: GPL-2.0 OR MIT
#include "session/session.h"

#include "common/pt_branches.h"
#include "machine/machine.h"
#include "machine/pool.h"
#include "machine/reasons.h"
#include "session/config.h"
#include "sideband/system.h"
#include "unit/memory.h"
#include "unit/units.h"

/* All sessions together take a quarter of the memory at most: none of theirs is ever paged out. */
#define MOST_OF_MEMORY 4

static volatile LONG64 charged;

void ptkit_session_init(struct ptkit_session *session)
{
	KeInitializeMutex(&session->lock, 0);
	ptkit_waiter_init(&session->waiter);
}

static bool any_runs(const struct ptkit_session *session)
{
	uint32_t i;

	for (i = 0; i < session->count; i++) {
		if (session->traces[i].pt.running)
			return true;
	}
	return false;
}

static bool charge(struct ptkit_session *session, uint64_t bytes)
{
	uint64_t all = (uint64_t)InterlockedAdd64(&charged, (LONG64)bytes);

	session->charged = bytes;
	return all <= ptkit_physical_bytes() / MOST_OF_MEMORY;
}

static void pay_back(struct ptkit_session *session)
{
	InterlockedAdd64(&charged, -(LONG64)session->charged);
	session->charged = 0;
}

/* A trace that could not be stopped is never freed. */
static void free_all(struct ptkit_session *session)
{
	bool keep = any_runs(session);
	uint32_t i;

	for (i = 0; i < session->count; i++)
		ptkit_trace_free(&session->traces[i]);
	if (!keep)
		ptkit_free(session->traces);
	session->traces = NULL;
	session->count = 0;
	ptkit_ring_free(&session->sideband.ring);
	pay_back(session);
}

static uint32_t count_cpus(const struct ptkit_windows_config *config)
{
	uint32_t count = 0;
	uint32_t cpu;

	for (cpu = 0; cpu < ptkit_machine.cpu_count(); cpu++)
		count += ptkit_config_has_cpu(config, cpu);
	return count;
}

static uint32_t add_trace(struct ptkit_session *session, const struct ptkit_config *config,
			  uint32_t cpu)
{
	struct ptkit_trace *trace = &session->traces[session->count];
	struct pt_bts *bts;

	if (!ptkit_memory_make(trace, config))
		return PTKIT_REASON_MEMORY;
	ptkit_trace_init(trace, cpu, &session->waiter);
	trace->pt.ring = config->mode == PTKIT_MODE_RING;
	trace->pt.wakes_up = config->wake_up_bytes;
	trace->event_bytes = config->wake_up_bytes / 2;
	session->count++;
	if (config->output != PTKIT_OUTPUT_BTS)
		return PTKIT_REASON_NONE;
	bts = ptkit_allocate(sizeof(*bts));
	if (!bts)
		return PTKIT_REASON_MEMORY;
	pt_branches_init(&trace->pt, bts, config);
	return PTKIT_REASON_NONE;
}

static uint32_t make_traces(struct ptkit_session *session)
{
	const struct ptkit_config *config = &session->config.config;
	uint32_t count = count_cpus(&session->config);
	uint32_t reason = PTKIT_REASON_NONE;
	uint32_t cpu;

	if (!charge(session, count * config->buffer_bytes + config->sideband_bytes))
		return PTKIT_REASON_MEMORY;
	session->traces = ptkit_allocate(count * sizeof(*session->traces));
	if (!session->traces)
		return PTKIT_REASON_MEMORY;
	for (cpu = 0; cpu < ptkit_machine.cpu_count() && !reason; cpu++) {
		if (ptkit_config_has_cpu(&session->config, cpu))
			reason = add_trace(session, config, cpu);
	}
	return reason;
}

static uint32_t make_all(struct ptkit_session *session)
{
	const struct ptkit_config *config = &session->config.config;
	struct ptkit_sideband *sideband = &session->sideband;
	uint32_t reason = make_traces(session);

	sideband->process = (HANDLE)(ULONG_PTR)config->process;
	sideband->waiter = &session->waiter;
	if (!reason && config->sideband_bytes &&
	    !ptkit_ring_make(&sideband->ring, config->sideband_bytes))
		reason = PTKIT_REASON_MEMORY;
	if (reason)
		free_all(session);
	return reason;
}

uint32_t ptkit_session_configure(struct ptkit_session *session, struct ptkit_windows_config *config)
{
	uint32_t reason;

	if (session->state != PTKIT_SESSION_OPEN)
		return PTKIT_REASON_STATE;
	RtlZeroMemory(&session->registers, sizeof(session->registers));
	reason = ptkit_make_state(config, &session->registers);
	if (reason)
		return reason;
	session->config = *config;
	reason = make_all(session);
	if (!reason)
		session->state = PTKIT_SESSION_CONFIGURED;
	return reason;
}

/* STARTED or STOPPING to CONFIGURED, or to STOPPING if a unit could not be stopped. */
static void end_tracing(struct ptkit_session *session)
{
	bool any = pt_units_any_started(&ptkit_units, &session->traces->pt, session->count);

	KeFlushQueuedDpcs(); /* ticks of the traces */
	session->state = any ? PTKIT_SESSION_STOPPING : PTKIT_SESSION_CONFIGURED;
	if (!any)
		ptkit_sideband_stop(&session->sideband);
}

uint32_t ptkit_session_start(struct ptkit_session *session, uint32_t *cpu)
{
	const struct ptkit_config *config = &session->config.config;
	uint32_t reason = PTKIT_REASON_NONE;

	if (session->state != PTKIT_SESSION_CONFIGURED)
		return PTKIT_REASON_STATE;
	if (config->process)
		reason = ptkit_find_cr3(config, &session->registers.cr3_match);
	if (reason)
		return reason;
	session->state = PTKIT_SESSION_STARTED;
	ptkit_waiter_reset(&session->waiter);
	ptkit_sideband_start(&session->sideband);
	reason = ptkit_units_start(session->traces, session->count, &session->registers, cpu);
	if (reason)
		end_tracing(session);
	return reason;
}

static bool owns_units(const struct ptkit_session *session)
{
	return session->state == PTKIT_SESSION_STARTED || session->state == PTKIT_SESSION_STOPPING;
}

uint32_t ptkit_session_stop(struct ptkit_session *session)
{
	uint32_t reason;

	if (!owns_units(session))
		return PTKIT_REASON_STATE;
	reason = ptkit_reason(pt_units_stop(&ptkit_units, &session->traces->pt, session->count));
	end_tracing(session);
	ptkit_report(&session->waiter, PTKIT_EVENT_STOPPED);
	return reason;
}

void ptkit_session_close(struct ptkit_session *session)
{
	if (owns_units(session)) {
		pt_units_give_up(&ptkit_units, &session->traces->pt, session->count);
		end_tracing(session);
	}
	ptkit_waiter_end(&session->waiter);
	if (session->state == PTKIT_SESSION_CONFIGURED)
		free_all(session);
	session->state = PTKIT_SESSION_OPEN;
}

bool ptkit_session_is_started(const struct ptkit_session *session)
{
	return session->state == PTKIT_SESSION_STARTED;
}

struct ptkit_trace *ptkit_session_trace(const struct ptkit_session *session, uint32_t cpu)
{
	uint32_t i;

	for (i = 0; i < session->count; i++) {
		if (session->traces[i].cpu == cpu)
			return &session->traces[i];
	}
	return NULL;
}
