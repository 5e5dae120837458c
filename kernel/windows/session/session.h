/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* A session: an open handle, with its state (session.c). */
#ifndef PTKIT_WINDOWS_SESSION_H
#define PTKIT_WINDOWS_SESSION_H

#include "machine/waiter.h"
#include "ptkit/ptkit_windows.h"
#include "sideband/sideband.h"
#include "unit/trace.h"

enum ptkit_session_state {
	PTKIT_SESSION_OPEN,
	PTKIT_SESSION_CONFIGURED, /* has traces and a ring */
	PTKIT_SESSION_STARTED, /* ... and units, and listens */
	PTKIT_SESSION_STOPPING, /* a unit could not be stopped */
};

struct ptkit_session {
	KMUTEX lock; /* one request at a time */
	enum ptkit_session_state state;
	struct ptkit_windows_config config;
	struct pt_state registers; /* without those of output */
	struct ptkit_trace *traces;
	uint32_t count;
	uint64_t charged; /* bytes of buffers and ring */
	struct ptkit_sideband sideband;
	struct ptkit_waiter waiter;
	struct ptkit_windows_refusal refusal; /* of the last request that was refused */
};

void ptkit_session_init(struct ptkit_session *session);

/*
 * Requests that change the state. The caller holds the lock. They return a PTKIT_REASON_*;
 * ptkit_session_start() sets `cpu` to the processor concerned.
 */
uint32_t ptkit_session_configure(struct ptkit_session *session,
				 struct ptkit_windows_config *config);
uint32_t ptkit_session_start(struct ptkit_session *session, uint32_t *cpu);
uint32_t ptkit_session_stop(struct ptkit_session *session);
/* Back to OPEN from any state. */
void ptkit_session_close(struct ptkit_session *session);

bool ptkit_session_is_started(const struct ptkit_session *session);
/* Null: the session does not have the processor. */
struct ptkit_trace *ptkit_session_trace(const struct ptkit_session *session, uint32_t cpu);

#endif /* PTKIT_WINDOWS_SESSION_H */
