// SPDX-License-Identifier: GPL-2.0 OR MIT
#include <ntifs.h>

#include "session/requests.h"

#include "common/pt_lbr.h"
#include "common/pt_topa.h"
#include "machine/caps.h"
#include "machine/machine.h"
#include "machine/reasons.h"
#include "session/config.h"
#include "unit/memory.h"
#include "unit/running.h"
#include "unit/units.h"

/* A request while it is served. */
struct call {
	const void *in;
	void *out; /* the same memory with METHOD_BUFFERED */
	uint64_t room; /* of the output */
	uint64_t written; /* to it */
	uint32_t field; /* when it is refused */
	uint32_t cpu;
};

static uint32_t refuse_field(struct call *call, uint64_t offset)
{
	call->field = (uint32_t)offset;
	return PTKIT_REASON_FIELD;
}

static uint32_t query(struct ptkit_session *session, struct call *call)
{
	struct ptkit_windows_query *answer = call->out;
	struct pt_config_limits limits;

	UNREFERENCED_PARAMETER(session);
	ptkit_limits_make(&limits);
	pt_query_make(&ptkit_machine_caps.caps, &limits, &answer->query);
	answer->query.tsc_khz = ptkit_machine_caps.tsc_khz;
	answer->query.cpus = ptkit_machine.cpu_count();
	answer->system = ptkit_machine_caps.system;
	if (ptkit_has_interrupts())
		answer->system |= PTKIT_SYSTEM_INTERRUPTS;
	if (ptkit_re_arms())
		answer->system |= PTKIT_SYSTEM_RE_ARMS;
	answer->reason = ptkit_machine_caps.reason;
	return PTKIT_REASON_NONE;
}

static uint32_t configure(struct ptkit_session *session, struct call *call)
{
	struct ptkit_windows_config *config = call->out;
	uint32_t reason;

	config->config.refused = 0;
	reason = ptkit_session_configure(session, config);
	call->field = config->config.refused;
	return reason;
}

static uint32_t describe_buffer(struct ptkit_session *session, struct call *call)
{
	struct ptkit_windows_buffer *buffer = call->out;
	const struct ptkit_trace *trace = ptkit_session_trace(session, buffer->cpu);
	PROCESSOR_NUMBER number;

	if (!trace)
		return refuse_field(call, FIELD_OFFSET(struct ptkit_windows_buffer, cpu));
	number = ptkit_machine.cpu_number(buffer->cpu);
	buffer->group = number.Group;
	buffer->number = number.Number;
	buffer->zero = 0;
	buffer->data_bytes = trace->pt.memory.used;
	buffer->sideband_bytes =
		session->sideband.ring.pt.data ? session->sideband.ring.pt.bytes : 0;
	return PTKIT_REASON_NONE;
}

static uint32_t start(struct ptkit_session *session, struct call *call)
{
	return ptkit_session_start(session, &call->cpu);
}

static uint32_t stop(struct ptkit_session *session, struct call *call)
{
	UNREFERENCED_PARAMETER(call);
	return ptkit_session_stop(session);
}

static uint32_t pause(struct ptkit_session *session, struct call *call)
{
	struct pt_trace *traces = &session->traces->pt;

	UNREFERENCED_PARAMETER(call);
	return ptkit_reason(pt_units_pause(&ptkit_units, traces, session->count));
}

static uint32_t resume(struct ptkit_session *session, struct call *call)
{
	struct pt_trace *traces = &session->traces->pt;

	UNREFERENCED_PARAMETER(call);
	return ptkit_reason(pt_units_resume(&ptkit_units, traces, session->count, true));
}

static uint32_t read_status(struct ptkit_session *session, struct call *call)
{
	struct ptkit_status *status = call->out;
	uint32_t cpu = status->cpu;
	struct ptkit_trace *trace = ptkit_session_trace(session, cpu);

	if (!trace)
		return refuse_field(call, FIELD_OFFSET(struct ptkit_status, cpu));
	if (status->zero)
		return refuse_field(call, FIELD_OFFSET(struct ptkit_status, zero));
	RtlZeroMemory(status, sizeof(*status));
	status->cpu = cpu;
	ptkit_units_status(trace, status);
	if (session->sideband.ring.pt.data)
		pt_ring_status(&session->sideband.ring.pt, status);
	return PTKIT_REASON_NONE;
}

static uint32_t consume(struct ptkit_session *session, struct call *call)
{
	const struct ptkit_consume *consume = call->in;
	struct ptkit_trace *trace = ptkit_session_trace(session, consume->cpu);
	struct pt_ring *ring = &session->sideband.ring.pt;
	uint32_t reason = PTKIT_REASON_NONE;

	if (!trace)
		return refuse_field(call, FIELD_OFFSET(struct ptkit_consume, cpu));
	if (consume->zero)
		return refuse_field(call, FIELD_OFFSET(struct ptkit_consume, zero));
	call->cpu = consume->cpu;
	if (consume->tail)
		reason = ptkit_reason(pt_units_consume(&ptkit_units, &trace->pt, consume->tail));
	if (reason) {
		call->field = FIELD_OFFSET(struct ptkit_consume, tail);
		return reason;
	}
	if (consume->sideband_tail &&
	    (!ring->data || pt_ring_consume(ring, consume->sideband_tail)))
		return refuse_field(call, FIELD_OFFSET(struct ptkit_consume, sideband_tail));
	return PTKIT_REASON_NONE;
}

static uint32_t check_read(const struct ptkit_windows_read *read, uint64_t size, struct call *call)
{
	if (read->offset >= size)
		return refuse_field(call, FIELD_OFFSET(struct ptkit_windows_read, offset));
	if (read->bytes > size || read->bytes > call->room)
		return refuse_field(call, FIELD_OFFSET(struct ptkit_windows_read, bytes));
	call->written = read->bytes;
	return PTKIT_REASON_NONE;
}

static uint32_t read_sideband(struct ptkit_session *session, struct call *call)
{
	const struct ptkit_windows_read *read = call->in;
	const struct ptkit_ring *ring = &session->sideband.ring;
	uint32_t reason;

	if (!ring->pt.data)
		return refuse_field(call, FIELD_OFFSET(struct ptkit_windows_read, what));
	if (read->cpu)
		return refuse_field(call, FIELD_OFFSET(struct ptkit_windows_read, cpu));
	reason = check_read(read, ring->pt.bytes, call);
	if (!reason && read->bytes)
		ptkit_ring_read(ring, read->offset, read->bytes, call->out);
	return reason;
}

static uint32_t read_bytes(struct ptkit_session *session, struct call *call)
{
	const struct ptkit_windows_read *read = call->in;
	const struct ptkit_trace *trace = ptkit_session_trace(session, read->cpu);
	uint32_t reason;

	if (read->what == PTKIT_READ_SIDEBAND)
		return read_sideband(session, call);
	if (read->what != PTKIT_READ_DATA)
		return refuse_field(call, FIELD_OFFSET(struct ptkit_windows_read, what));
	if (!trace)
		return refuse_field(call, FIELD_OFFSET(struct ptkit_windows_read, cpu));
	reason = check_read(read, trace->pt.memory.used, call);
	if (!reason && read->bytes)
		ptkit_memory_copy(trace, read->offset, read->bytes, call->out);
	return reason;
}

static void copy_newest(const struct ptkit_trace *trace, const struct ptkit_status *status,
			struct call *call)
{
	uint64_t size = trace->pt.memory.used;
	struct ptkit_windows_newest *newest = call->out;
	bool lapped = status->flags & PTKIT_STATUS_LAPPED;
	uint8_t *to = (uint8_t *)(newest + 1);
	struct pt_part parts[2];
	uint32_t count;
	uint32_t i;

	newest->flags = status->flags;
	newest->zero = 0;
	newest->position = status->position;
	newest->bytes = min(call->room - sizeof(*newest), lapped ? size : status->position);
	count = pt_newest_parts(size, status->position, newest->bytes, parts);
	for (i = 0; i < count; i++) {
		ptkit_memory_copy(trace, parts[i].offset, parts[i].bytes, to);
		to += parts[i].bytes;
	}
	call->written = sizeof(*newest) + newest->bytes;
}

static uint32_t take_snapshot(struct ptkit_session *session, struct call *call)
{
	const struct ptkit_windows_snapshot *snapshot = call->in;
	struct ptkit_trace *trace = ptkit_session_trace(session, snapshot->cpu);
	struct ptkit_status status = {0};
	uint32_t reason;
	bool wanted;

	if (!trace)
		return refuse_field(call, FIELD_OFFSET(struct ptkit_windows_snapshot, cpu));
	if (snapshot->zero)
		return refuse_field(call, FIELD_OFFSET(struct ptkit_windows_snapshot, zero));
	if (trace->pt.wakes_up)
		return PTKIT_REASON_STATE;
	call->cpu = trace->cpu;
	wanted = trace->pt.wanted;
	reason = ptkit_reason(pt_units_pause(&ptkit_units, &trace->pt, 1));
	ptkit_units_status(trace, &status);
	if (!reason)
		copy_newest(trace, &status, call);
	if (wanted) {
		uint32_t failed = ptkit_reason(pt_units_resume(&ptkit_units, &trace->pt, 1, false));

		reason = reason ? reason : failed;
	}
	return reason;
}

static uint32_t describe_refusal(struct ptkit_session *session, struct call *call)
{
	struct ptkit_windows_refusal *refusal = call->out;

	*refusal = session->refusal;
	return PTKIT_REASON_NONE;
}

static void read_branches_here(void *context)
{
	pt_lbr_read(ptkit_machine.cpuid, &ptkit_machine.ops, context);
}

/* The structures of the interface and of kernel/common have the same branches. */
static uint32_t read_branches(struct ptkit_session *session, struct call *call)
{
	struct ptkit_windows_lbr *answer = call->out;
	struct pt_lbr lbr = {0};

	UNREFERENCED_PARAMETER(session);
	_Static_assert(sizeof(answer->branches) == sizeof(lbr.branches), "as many branches");
	call->cpu = answer->cpu;
	if (answer->cpu >= ptkit_machine.cpu_count())
		return refuse_field(call, FIELD_OFFSET(struct ptkit_windows_lbr, cpu));
	ptkit_machine.call(answer->cpu, read_branches_here, &lbr);
	if (!lbr.count)
		return PTKIT_REASON_UNSUPPORTED;
	answer->count = lbr.count;
	answer->architectural = lbr.architectural;
	answer->enabled = lbr.enabled;
	RtlCopyMemory(answer->branches, lbr.branches, sizeof(answer->branches));
	return PTKIT_REASON_NONE;
}

#define CONFIGURED 1 /* the session has traces */
#define STARTED 2
#define RIGHTS 4 /* asked again: the handle may have been passed on */

static const struct request {
	ULONG code;
	ULONG in; /* least size of the input, and of the output */
	ULONG out;
	ULONG needs;
	uint32_t (*serve)(struct ptkit_session *session, struct call *call);
} requests[] = {
	{PTKIT_WINDOWS_QUERY, 0, sizeof(struct ptkit_windows_query), 0, query},
	{PTKIT_WINDOWS_CONFIGURE, sizeof(struct ptkit_windows_config),
	 sizeof(struct ptkit_windows_config), RIGHTS, configure},
	{PTKIT_WINDOWS_BUFFER, sizeof(struct ptkit_windows_buffer),
	 sizeof(struct ptkit_windows_buffer), CONFIGURED, describe_buffer},
	{PTKIT_WINDOWS_START, 0, 0, CONFIGURED | RIGHTS, start},
	{PTKIT_WINDOWS_STOP, 0, 0, CONFIGURED, stop},
	{PTKIT_WINDOWS_PAUSE, 0, 0, CONFIGURED | STARTED, pause},
	{PTKIT_WINDOWS_RESUME, 0, 0, CONFIGURED | STARTED, resume},
	{PTKIT_WINDOWS_STATUS, sizeof(struct ptkit_status), sizeof(struct ptkit_status), CONFIGURED,
	 read_status},
	{PTKIT_WINDOWS_SNAPSHOT, sizeof(struct ptkit_windows_snapshot),
	 sizeof(struct ptkit_windows_newest), CONFIGURED | STARTED, take_snapshot},
	{PTKIT_WINDOWS_CONSUME, sizeof(struct ptkit_consume), 0, CONFIGURED, consume},
	{PTKIT_WINDOWS_READ, sizeof(struct ptkit_windows_read), 0, CONFIGURED, read_bytes},
	{PTKIT_WINDOWS_REFUSAL, 0, sizeof(struct ptkit_windows_refusal), 0, describe_refusal},
	{PTKIT_WINDOWS_LBR, sizeof(struct ptkit_windows_lbr), sizeof(struct ptkit_windows_lbr),
	 RIGHTS, read_branches},
};

static NTSTATUS status_of(uint32_t reason)
{
	switch (reason) {
	case PTKIT_REASON_NONE:
		return STATUS_SUCCESS;
	case PTKIT_REASON_NO_PT:
	case PTKIT_REASON_HYPERVISOR:
	case PTKIT_REASON_VBS:
	case PTKIT_REASON_UNSUPPORTED:
	case PTKIT_REASON_TABLES:
		return STATUS_NOT_SUPPORTED;
	case PTKIT_REASON_FIELD:
		return STATUS_INVALID_PARAMETER;
	case PTKIT_REASON_OWNER:
	case PTKIT_REASON_SESSION:
	case PTKIT_REASON_INTERRUPT:
	case PTKIT_REASON_WAITS:
		return STATUS_DEVICE_BUSY;
	case PTKIT_REASON_STATE:
		return STATUS_INVALID_DEVICE_STATE;
	case PTKIT_REASON_NO_PROCESS:
	case PTKIT_REASON_NO_MODULE:
		return STATUS_NOT_FOUND;
	case PTKIT_REASON_MEMORY:
		return STATUS_INSUFFICIENT_RESOURCES;
	case PTKIT_REASON_RIGHTS:
		return STATUS_PRIVILEGE_NOT_HELD;
	case PTKIT_REASON_SIZE:
		return STATUS_INFO_LENGTH_MISMATCH;
	case PTKIT_REASON_REQUEST:
		return STATUS_INVALID_DEVICE_REQUEST;
	default:
		return STATUS_IO_DEVICE_ERROR;
	}
}

static const struct request *find_request(ULONG code)
{
	ULONG i;

	for (i = 0; i < RTL_NUMBER_OF(requests); i++) {
		if (requests[i].code == code)
			return &requests[i];
	}
	return NULL;
}

/* A newer program's structure may be longer, if what the driver does not know is zero. */
static bool is_zero_after(const uint8_t *bytes, ULONG known, ULONG given)
{
	ULONG i;

	for (i = known; i < given; i++) {
		if (bytes[i])
			return false;
	}
	return true;
}

static uint32_t check_sizes(const struct request *request, PIRP irp, ULONG in, ULONG out)
{
	const uint8_t *given = irp->AssociatedIrp.SystemBuffer;

	if (in < request->in || out < request->out)
		return PTKIT_REASON_SIZE;
	return is_zero_after(given, request->in, in) ? PTKIT_REASON_NONE : PTKIT_REASON_SIZE;
}

static uint32_t check_needs(const struct ptkit_session *session, ULONG needs, KPROCESSOR_MODE mode)
{
	LUID profile = {.LowPart = SE_SYSTEM_PROFILE_PRIVILEGE};

	if ((needs & RIGHTS) && !SeSinglePrivilegeCheck(profile, mode))
		return PTKIT_REASON_RIGHTS;
	if ((needs & CONFIGURED) && session->state == PTKIT_SESSION_OPEN)
		return PTKIT_REASON_STATE;
	if ((needs & STARTED) && !ptkit_session_is_started(session))
		return PTKIT_REASON_STATE;
	return PTKIT_REASON_NONE;
}

/* The output of METHOD_OUT_DIRECT is another memory than the input. False: there is none. */
static bool find_output(struct call *call, PIRP irp, ULONG code, ULONG out)
{
	call->in = irp->AssociatedIrp.SystemBuffer;
	call->out = irp->AssociatedIrp.SystemBuffer;
	call->room = out;
	if (METHOD_FROM_CTL_CODE(code) == METHOD_BUFFERED)
		return true;
	call->out = irp->MdlAddress
			    ? MmGetSystemAddressForMdlSafe(irp->MdlAddress, NormalPagePriority)
			    : NULL;
	return call->out || !out;
}

/* The caller holds the lock. */
static uint32_t serve(struct ptkit_session *session, const struct request *request, PIRP irp,
		      struct call *call)
{
	PIO_STACK_LOCATION stack = IoGetCurrentIrpStackLocation(irp);
	ULONG in = stack->Parameters.DeviceIoControl.InputBufferLength;
	ULONG out = stack->Parameters.DeviceIoControl.OutputBufferLength;
	uint32_t reason = check_sizes(request, irp, in, out);

	if (!reason)
		reason = check_needs(session, request->needs, irp->RequestorMode);
	if (!reason && !find_output(call, irp, request->code, out))
		reason = PTKIT_REASON_MEMORY;
	if (reason)
		return reason;
	if (METHOD_FROM_CTL_CODE(request->code) == METHOD_BUFFERED) {
		call->written = request->out;
		if (request->out > request->in)
			RtlZeroMemory((uint8_t *)call->out + request->in,
				      request->out - request->in);
	}
	return request->serve(session, call);
}

static NTSTATUS complete(PIRP irp, NTSTATUS status, uint64_t written)
{
	irp->IoStatus.Status = status;
	irp->IoStatus.Information = NT_SUCCESS(status) ? (ULONG_PTR)written : 0;
	IoCompleteRequest(irp, IO_NO_INCREMENT);
	return status;
}

static void lock(struct ptkit_session *session)
{
	KeWaitForSingleObject(&session->lock, Executive, KernelMode, FALSE, NULL);
}

static NTSTATUS refuse(struct ptkit_session *session, ULONG code, uint32_t reason,
		       const struct call *call)
{
	struct ptkit_windows_refusal refusal = {
		.request = code,
		.reason = reason,
		.field = call->field,
		.cpu = call->cpu,
	};

	session->refusal = refusal;
	return status_of(reason);
}

static NTSTATUS serve_wait(struct ptkit_session *session, PIRP irp)
{
	PIO_STACK_LOCATION stack = IoGetCurrentIrpStackLocation(irp);
	ULONG out = stack->Parameters.DeviceIoControl.OutputBufferLength;
	const struct call none = {0};
	NTSTATUS status;
	uint32_t reason;

	lock(session);
	reason = check_needs(session, CONFIGURED, irp->RequestorMode);
	if (!reason && out < sizeof(struct ptkit_windows_wait))
		reason = PTKIT_REASON_SIZE;
	status = reason ? status_of(reason) : ptkit_wait(&session->waiter, irp);
	if (status == STATUS_DEVICE_BUSY)
		reason = PTKIT_REASON_WAITS;
	if (reason)
		refuse(session, PTKIT_WINDOWS_WAIT, reason, &none);
	KeReleaseMutex(&session->lock, FALSE);
	/* A request that waits may be completed already. */
	if (status == STATUS_PENDING)
		return status;
	return complete(irp, status, sizeof(struct ptkit_windows_wait));
}

NTSTATUS ptkit_serve_request(struct ptkit_session *session, PIRP irp)
{
	ULONG code = IoGetCurrentIrpStackLocation(irp)->Parameters.DeviceIoControl.IoControlCode;
	const struct request *request = find_request(code);
	NTSTATUS status = STATUS_SUCCESS;
	struct call call = {0};
	uint32_t reason;

	if (code == PTKIT_WINDOWS_WAIT)
		return serve_wait(session, irp);
	lock(session);
	reason = request ? serve(session, request, irp, &call) : PTKIT_REASON_REQUEST;
	if (reason)
		status = refuse(session, code, reason, &call);
	KeReleaseMutex(&session->lock, FALSE);
	return complete(irp, status, call.written);
}
