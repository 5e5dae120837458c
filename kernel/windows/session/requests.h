/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The requests of ptkit_windows.h. */
#ifndef PTKIT_WINDOWS_REQUESTS_H
#define PTKIT_WINDOWS_REQUESTS_H

#include "session/session.h"

/* Serves a request of IRP_MJ_DEVICE_CONTROL, up to its completion. */
NTSTATUS ptkit_serve_request(struct ptkit_session *session, PIRP irp);

#endif /* PTKIT_WINDOWS_REQUESTS_H */
