/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* A session: an open file, with its state (session.c). */
#ifndef PTKIT_LINUX_SESSION_H
#define PTKIT_LINUX_SESSION_H

#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "common/pt_sequence.h"
#include "follow/follow.h"
#include "ptkit/ptkit_ioctl.h"
#include "sideband/sideband.h"
#include "unit/trace.h"

enum ptkit_session_state {
	PTKIT_SESSION_OPEN,
	PTKIT_SESSION_CONFIGURED,
	PTKIT_SESSION_FOLLOWING,
	PTKIT_SESSION_LISTENING,
	PTKIT_SESSION_STARTED,
	PTKIT_SESSION_STOPPING,
};

struct ptkit_session {
	struct mutex lock; /* one request at a time */
	enum ptkit_session_state state;
	/* The transition from OPEN to CONFIGURED sets these. They do not change afterwards. */
	struct pt_state registers; /* without those of output */
	struct ptkit_follow *follow; /* null: all tasks */
	struct ptkit_trace *traces;
	unsigned int count;
	struct mm_struct *payer; /* a reference: of the process that configured; null: none */
	unsigned long locked_pages; /* charged to it, as memory that it locked */
	struct ptkit_sideband sideband;
	wait_queue_head_t wait;
};

void ptkit_session_init(struct ptkit_session *session);

/*
 * Requests that change the state. The caller holds the lock. ptkit_session_configure() sets
 * config->refused on -EINVAL and -EOPNOTSUPP.
 */
int ptkit_session_configure(struct ptkit_session *session, struct ptkit_config *config);
int ptkit_session_start(struct ptkit_session *session);
int ptkit_session_stop(struct ptkit_session *session);
/* Back to OPEN from any state. */
void ptkit_session_close(struct ptkit_session *session);

/* Whether the session owns its buffers. The caller need not hold the lock. */
bool ptkit_session_is_configured(const struct ptkit_session *session);
/* The caller holds the lock. */
bool ptkit_session_is_started(const struct ptkit_session *session);

#endif /* PTKIT_LINUX_SESSION_H */
