// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The states of a session. Each state owns one resource more than the state to its left. Only the
 * transition to the left releases that resource:
 *
 *            traces, rings      list of followers    list of sidebands    units
 *             (make_all)      (begin_following)     (ptkit_sideband_start) (ptkit_units_start)
 *      OPEN ----------> CONFIGURED ----------> FOLLOWING ----------> LISTENING -----> STARTED
 *           <----------            <----------           <----------           <-----
 *             free_all         end_following        ptkit_sideband_stop   ^   pt_units_stop
 *                                                                         |      |
 *                                                                         +-- STOPPING
 *
 *   PTKIT_CONFIGURE  OPEN to CONFIGURED, or OPEN if it fails
 *   PTKIT_START      CONFIGURED to STARTED; if it fails, back to CONFIGURED, or to STOPPING
 *   PTKIT_STOP       STARTED or STOPPING to CONFIGURED, or to STOPPING
 *   close()          any state to OPEN
 *
 * A request passes FOLLOWING and LISTENING, but never ends there. In STOPPING the unit of a
 * processor could not be stopped: some traces are started, none is wanted, and PTKIT_STOP can be
 * tried again. close() cannot be tried again: it gives such units up, and never frees their
 * buffers.
 *
 * A step that fails changes neither the state nor the resources.
 */
#include <linux/bug.h>
#include <linux/cpu.h>
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include "machine/errors.h"
#include "session/config.h"
#include "session/probes.h"
#include "session/session.h"
#include "unit/bts.h"
#include "unit/memory.h"
#include "unit/running.h"
#include "unit/tasks.h"
#include "unit/units.h"

#define TO(state) BIT(PTKIT_SESSION_##state)

/* The allowed transitions from each state. */
static const u8 transitions[] = {
	[PTKIT_SESSION_OPEN] = TO(CONFIGURED),
	[PTKIT_SESSION_CONFIGURED] = TO(OPEN) | TO(FOLLOWING),
	[PTKIT_SESSION_FOLLOWING] = TO(CONFIGURED) | TO(LISTENING),
	[PTKIT_SESSION_LISTENING] = TO(FOLLOWING) | TO(STARTED),
	[PTKIT_SESSION_STARTED] = TO(LISTENING) | TO(STOPPING),
	[PTKIT_SESSION_STOPPING] = TO(LISTENING) | TO(STOPPING),
};

static void set_state(struct ptkit_session *session, enum ptkit_session_state state)
{
	lockdep_assert_held(&session->lock);
	WARN_ON_ONCE(!(transitions[session->state] & BIT(state)));
	/* Pairs with ptkit_session_is_configured(). */
	smp_store_release(&session->state, state);
}

void ptkit_session_init(struct ptkit_session *session)
{
	mutex_init(&session->lock);
	init_waitqueue_head(&session->wait);
}

bool ptkit_session_is_configured(const struct ptkit_session *session)
{
	return smp_load_acquire(&session->state) != PTKIT_SESSION_OPEN; /* pairs with set_state() */
}

bool ptkit_session_is_started(const struct ptkit_session *session)
{
	lockdep_assert_held(&session->lock);
	return session->state == PTKIT_SESSION_STARTED;
}

/* make_all() may have failed: members that it did not set are zero. */
static void free_all(struct ptkit_session *session)
{
	unsigned int i;

	for (i = 0; i < session->count; i++)
		ptkit_trace_free(&session->traces[i]);
	ptkit_sideband_free(&session->sideband);
	kvfree(session->traces);
	session->traces = NULL;
	session->count = 0;
	if (session->follow)
		ptkit_follow_free(session->follow);
	session->follow = NULL;
	if (!session->payer)
		return;
	account_locked_vm(session->payer, session->locked_pages, false);
	mmdrop(session->payer);
	session->payer = NULL;
}

/* Buffers are in no process' resident memory, so that the OOM killer does not find them. */
static int charge(struct ptkit_session *session, u64 bytes)
{
	int error = account_locked_vm(current->mm, bytes >> PAGE_SHIFT, true);

	if (error)
		return error;
	session->payer = current->mm;
	session->locked_pages = bytes >> PAGE_SHIFT;
	mmgrab(session->payer);
	return 0;
}

static int add_trace(struct ptkit_session *session, const struct ptkit_config *config,
		     unsigned int cpu)
{
	struct ptkit_trace *trace = &session->traces[session->count];
	int node = config->target == PTKIT_TARGET_TASK ? NUMA_NO_NODE : cpu_to_node(cpu);
	int error = ptkit_memory_make(&trace->pt.memory, config, node);

	if (error)
		return error;
	ptkit_trace_init(trace, cpu, session->follow);
	trace->roams = config->target == PTKIT_TARGET_TASK;
	trace->pt.ring = config->mode == PTKIT_MODE_RING;
	trace->pt.wakes_up = config->wake_up_bytes;
	trace->interrupts = trace->pt.wakes_up;
	trace->wait = &session->wait;
	session->count++;
	if (config->output != PTKIT_OUTPUT_BTS)
		return 0;
	trace->interrupts = !trace->pt.ring;
	return ptkit_bts_make(trace, config);
}

static int make_traces(struct ptkit_session *session, const struct ptkit_config *config)
{
	cpumask_var_t cpus;
	unsigned int cpu;
	int error;

	if (!zalloc_cpumask_var(&cpus, GFP_KERNEL))
		return -ENOMEM;
	cpus_read_lock();
	if (config->target == PTKIT_TARGET_ALL)
		cpumask_copy(cpus, cpu_online_mask);
	else
		cpumask_set_cpu(config->cpu, cpus); /* 0 with a task */
	cpus_read_unlock();
	error = charge(session,
		       cpumask_weight(cpus) * (config->buffer_bytes + config->sideband_bytes));
	session->traces =
		kvcalloc(cpumask_weight(cpus), sizeof(*session->traces), GFP_KERNEL_ACCOUNT);
	if (!session->traces)
		error = -ENOMEM;
	for_each_cpu(cpu, cpus) {
		if (!error)
			error = add_trace(session, config, cpu);
	}
	if (!error && config->sideband_bytes)
		error = ptkit_sideband_make(&session->sideband, session->follow, cpus,
					    config->sideband_bytes, &session->wait);
	free_cpumask_var(cpus);
	return error;
}

static int make_all(struct ptkit_session *session, const struct ptkit_config *config)
{
	struct ptkit_follow *follow = ptkit_follow_make(config);
	int error;

	if (IS_ERR(follow))
		return PTR_ERR(follow);
	session->follow = follow;
	error = make_traces(session, config);
	if (error)
		free_all(session);
	return error;
}

int ptkit_session_configure(struct ptkit_session *session, struct ptkit_config *config)
{
	int error;

	if (session->state != PTKIT_SESSION_OPEN)
		return -EBUSY;
	memset(&session->registers, 0, sizeof(session->registers));
	error = ptkit_make_state(config, &session->registers);
	if (!error)
		error = make_all(session, config);
	if (!error)
		set_state(session, PTKIT_SESSION_CONFIGURED);
	return error;
}

static unsigned int probes_of(const struct ptkit_session *session)
{
	const struct ptkit_follow *follow = session->follow;
	unsigned int wanted = 0;

	if (session->sideband.rings)
		wanted |= PTKIT_ON_SWITCH | PTKIT_ON_FORK | PTKIT_ON_EXEC | PTKIT_ON_EXIT;
	if (session->traces->pt.bts)
		wanted |= PTKIT_ON_SWITCH | PTKIT_ON_EXEC;
	if (follow)
		wanted |= follow->switches ? PTKIT_ON_SWITCH : PTKIT_ON_EXEC;
	if (follow && follow->with_children)
		wanted |= PTKIT_ON_FORK | PTKIT_ON_FREE;
	return wanted;
}

/* CONFIGURED to FOLLOWING. */
static int begin_following(struct ptkit_session *session)
{
	struct ptkit_trace *first = session->traces;
	int error = ptkit_probes_begin(probes_of(session));

	if (error)
		return error;
	if (session->follow)
		ptkit_tasks_begin(session->follow, first->roams ? first : NULL);
	set_state(session, PTKIT_SESSION_FOLLOWING);
	return 0;
}

static void end_following(struct ptkit_session *session)
{
	if (session->follow)
		ptkit_tasks_end(session->follow);
	ptkit_probes_end(probes_of(session));
	if (session->follow)
		ptkit_follow_forget(session->follow);
	set_state(session, PTKIT_SESSION_CONFIGURED);
}

/* FOLLOWING to LISTENING. The probe of exec() is registered, so no page tables are missed. */
static int begin_listening(struct ptkit_session *session)
{
	int error = 0;

	if (session->follow)
		error = ptkit_follow_find(session->follow);
	if (error)
		return error;
	ptkit_sideband_start(&session->sideband);
	set_state(session, PTKIT_SESSION_LISTENING);
	return 0;
}

static void end_listening(struct ptkit_session *session)
{
	ptkit_sideband_stop(&session->sideband);
	set_state(session, PTKIT_SESSION_FOLLOWING);
}

/* LISTENING to STARTED, even if some units could not be started. */
static int begin_tracing(struct ptkit_session *session)
{
	set_state(session, PTKIT_SESSION_STARTED);
	return ptkit_units_start(session->traces, session->count, &session->registers);
}

/* STARTED or STOPPING to LISTENING, or to STOPPING if a unit could not be stopped. */
static void end_tracing(struct ptkit_session *session)
{
	bool any = pt_units_any_started(&ptkit_units, &session->traces->pt, session->count);

	set_state(session, any ? PTKIT_SESSION_STOPPING : PTKIT_SESSION_LISTENING);
}

/* The only way back to CONFIGURED; a unit that could not be stopped blocks it. */
static void wind_down(struct ptkit_session *session)
{
	if (session->state == PTKIT_SESSION_LISTENING)
		end_listening(session);
	if (session->state == PTKIT_SESSION_FOLLOWING)
		end_following(session);
}

int ptkit_session_start(struct ptkit_session *session)
{
	int error;

	if (session->state != PTKIT_SESSION_CONFIGURED)
		return -EBUSY;
	error = begin_following(session);
	if (!error)
		error = begin_listening(session);
	if (!error) {
		error = begin_tracing(session);
		if (error)
			end_tracing(session);
	}
	if (error)
		wind_down(session);
	return error;
}

static bool owns_units(const struct ptkit_session *session)
{
	return session->state == PTKIT_SESSION_STARTED || session->state == PTKIT_SESSION_STOPPING;
}

int ptkit_session_stop(struct ptkit_session *session)
{
	int error;

	if (!owns_units(session))
		return -EINVAL;
	error = ptkit_errno(pt_units_stop(&ptkit_units, &session->traces->pt, session->count));
	end_tracing(session);
	wind_down(session);
	return error;
}

void ptkit_session_close(struct ptkit_session *session)
{
	if (owns_units(session)) {
		pt_units_give_up(&ptkit_units, &session->traces->pt, session->count);
		end_tracing(session);
		wind_down(session);
	}
	if (session->state == PTKIT_SESSION_CONFIGURED) {
		free_all(session);
		set_state(session, PTKIT_SESSION_OPEN);
	}
}
