/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* A session, which is an open file, and its states; see lifecycle.c. */
#ifndef PTKIT_LINUX_SESSION_H
#define PTKIT_LINUX_SESSION_H

#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "ptkit.h"
#include "sideband.h"

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
	/* From OPEN to CONFIGURED these are set; they do not change afterwards. */
	struct pt_state registers; /* without output */
	struct ptkit_follow *follow; /* null: all tasks */
	struct ptkit_trace *traces;
	unsigned int count;
	struct ptkit_sideband sideband;
	wait_queue_head_t wait;
};

void ptkit_session_init(struct ptkit_session *session);

/*
 * Requests that change the state, with the lock held. On -EINVAL and -EOPNOTSUPP of the first one
 * config->refused is set.
 */
int ptkit_session_configure(struct ptkit_session *session, struct ptkit_config *config);
int ptkit_session_start(struct ptkit_session *session);
int ptkit_session_stop(struct ptkit_session *session);
/* Back to OPEN from any state. */
void ptkit_session_close(struct ptkit_session *session);

/* Also without the lock: whether what CONFIGURED owns is there. */
bool ptkit_session_is_configured(const struct ptkit_session *session);
/* With the lock held. */
bool ptkit_session_is_started(const struct ptkit_session *session);

#endif /* PTKIT_LINUX_SESSION_H */
