// SPDX-License-Identifier: GPL-2.0 OR MIT
/* /dev/ptkit: an open file is a session; see ptkit/ptkit_ioctl.h. */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <asm/tsc.h>

#include "common/pt_topa.h"
#include "follow/follow.h"
#include "machine/caps.h"
#include "machine/compat.h"
#include "machine/errors.h"
#include "session/config.h"
#include "session/device.h"
#include "session/session.h"
#include "sideband/ring.h"
#include "sideband/sideband.h"
#include "unit/memory.h"
#include "unit/units.h"

/* Offsets for mmap(): the processor's number, one of its two buffers, a position in the buffer. */
#define CPU_SHIFT 41
#define SIDEBAND_SHIFT 40

/* The structure of a request. Those of a trace begin with its number. */
union argument {
	u32 cpu;
	struct ptkit_query query;
	struct ptkit_config config;
	struct ptkit_buffer buffer;
	struct ptkit_status status;
	struct ptkit_snapshot snapshot;
	struct ptkit_consume consume;
};

static struct ptkit_trace *find_trace(const struct ptkit_session *session, u64 number)
{
	unsigned int i;

	for (i = 0; i < session->count; i++) {
		if (session->traces[i].number == number)
			return &session->traces[i];
	}
	return NULL;
}

static int query(struct ptkit_session *session, struct ptkit_trace *none, union argument *argument)
{
	struct pt_config_limits limits;

	ptkit_limits_make(&limits);
	pt_query_make(&ptkit_caps, &limits, &argument->query);
	argument->query.tsc_khz = tsc_khz;
	argument->query.cpus = nr_cpu_ids;
	return 0;
}

static int configure(struct ptkit_session *session, struct ptkit_trace *none,
		     union argument *argument)
{
	argument->config.refused = 0;
	return ptkit_session_configure(session, &argument->config);
}

static int describe_buffer(struct ptkit_session *session, struct ptkit_trace *trace,
			   union argument *argument)
{
	const struct ptkit_ring *ring = ptkit_sideband_ring(&session->sideband, trace->number);
	struct ptkit_buffer *buffer = &argument->buffer;

	if (buffer->zero)
		return -EINVAL;
	buffer->data_offset = (u64)trace->number << CPU_SHIFT;
	buffer->data_bytes = trace->pt.memory.bytes;
	buffer->sideband_offset = ring ? buffer->data_offset | BIT_ULL(SIDEBAND_SHIFT) : 0;
	buffer->sideband_bytes = ring ? ring->pt.bytes : 0;
	return 0;
}

static int read_status(struct ptkit_session *session, struct ptkit_trace *trace,
		       union argument *argument)
{
	const struct ptkit_ring *ring = ptkit_sideband_ring(&session->sideband, trace->number);
	struct ptkit_status *status = &argument->status;

	if (status->zero)
		return -EINVAL;
	memset(status, 0, sizeof(*status));
	status->cpu = trace->number;
	ptkit_units_status(trace, status);
	if (ring)
		pt_ring_status(&ring->pt, status);
	return 0;
}

static int consume(struct ptkit_session *session, struct ptkit_trace *trace,
		   union argument *argument)
{
	struct ptkit_ring *ring = ptkit_sideband_ring(&session->sideband, trace->number);
	const struct ptkit_consume *consume = &argument->consume;
	int error = 0;

	if (consume->zero || (consume->sideband_tail && !ring))
		return -EINVAL;
	if (consume->tail)
		error = ptkit_errno(pt_units_consume(&ptkit_units, &trace->pt, consume->tail));
	if (!error && consume->sideband_tail)
		error = ptkit_errno(pt_ring_consume(&ring->pt, consume->sideband_tail));
	return error;
}

static int copy_newest(const struct ptkit_trace *trace, const struct ptkit_status *status,
		       struct ptkit_snapshot *snapshot)
{
	const struct pt_memory *memory = &trace->pt.memory;
	bool lapped = status->flags & PTKIT_STATUS_LAPPED;
	struct pt_part parts[2];
	void __user *to = u64_to_user_ptr(snapshot->address);
	u32 count;
	u32 i;

	snapshot->bytes = min(snapshot->bytes, lapped ? memory->used : status->position);
	count = pt_newest_parts(memory->used, status->position, snapshot->bytes, parts);
	for (i = 0; i < count; i++) {
		int error = ptkit_memory_copy(memory, parts[i].offset, parts[i].bytes, to);

		if (error)
			return error;
		to += parts[i].bytes;
	}
	return 0;
}

static int take_snapshot(struct ptkit_session *session, struct ptkit_trace *trace,
			 union argument *argument)
{
	struct ptkit_snapshot *snapshot = &argument->snapshot;
	struct ptkit_status status = {};
	bool wanted = trace->pt.wanted;
	int error;

	if (trace->pt.wakes_up)
		return -EINVAL;
	error = ptkit_errno(pt_units_pause(&ptkit_units, &trace->pt, 1));
	ptkit_units_status(trace, &status);
	snapshot->flags = status.flags;
	snapshot->position = status.position;
	if (!error)
		error = copy_newest(trace, &status, snapshot);
	if (wanted) {
		int failed = ptkit_errno(pt_units_resume(&ptkit_units, &trace->pt, 1, false));

		error = error ? error : failed;
	}
	return error;
}

static int start(struct ptkit_session *session, struct ptkit_trace *none, union argument *argument)
{
	return ptkit_session_start(session);
}

static int stop(struct ptkit_session *session, struct ptkit_trace *none, union argument *argument)
{
	int error = ptkit_session_stop(session);

	wake_up_interruptible(&session->wait);
	return error;
}

static int pause(struct ptkit_session *session, struct ptkit_trace *none, union argument *argument)
{
	int error = pt_units_pause(&ptkit_units, &session->traces->pt, session->count);

	wake_up_interruptible(&session->wait);
	return ptkit_errno(error);
}

static int resume(struct ptkit_session *session, struct ptkit_trace *none, union argument *argument)
{
	struct pt_trace *traces = &session->traces->pt;

	return ptkit_errno(pt_units_resume(&ptkit_units, traces, session->count, true));
}

#define RIGHTS BIT(0) /* asked again: the file may have been passed on */
#define CONFIGURED BIT(1) /* the session has traces */
#define STARTED BIT(2)
#define IN BIT(3)
#define OUT BIT(4)
#define REFUSAL BIT(5) /* the structure has the reason of an error */
#define OF_TRACE BIT(6)

static const struct request {
	int (*serve)(struct ptkit_session *session, struct ptkit_trace *trace,
		     union argument *argument);
	unsigned int bytes;
	unsigned int flags;
} requests[] = {
	[_IOC_NR(PTKIT_QUERY)] = {query, sizeof(struct ptkit_query), OUT},
	[_IOC_NR(PTKIT_CONFIGURE)] = {configure, sizeof(struct ptkit_config),
				      IN | REFUSAL | RIGHTS},
	[_IOC_NR(PTKIT_BUFFER)] = {describe_buffer, sizeof(struct ptkit_buffer),
				   IN | OUT | OF_TRACE | CONFIGURED},
	[_IOC_NR(PTKIT_START)] = {start, 0, CONFIGURED | RIGHTS},
	[_IOC_NR(PTKIT_STOP)] = {stop, 0, CONFIGURED},
	[_IOC_NR(PTKIT_PAUSE)] = {pause, 0, CONFIGURED | STARTED},
	[_IOC_NR(PTKIT_RESUME)] = {resume, 0, CONFIGURED | STARTED},
	[_IOC_NR(PTKIT_STATUS)] = {read_status, sizeof(struct ptkit_status),
				   IN | OUT | OF_TRACE | CONFIGURED},
	[_IOC_NR(PTKIT_SNAPSHOT)] = {take_snapshot, sizeof(struct ptkit_snapshot),
				     IN | OUT | OF_TRACE | CONFIGURED | STARTED},
	[_IOC_NR(PTKIT_CONSUME)] = {consume, sizeof(struct ptkit_consume),
				    IN | OF_TRACE | CONFIGURED},
};

static const struct request *find_request(unsigned int command)
{
	unsigned int number = _IOC_NR(command);
	const struct request *request;

	if (_IOC_TYPE(command) != PTKIT_IOCTL_TYPE || number >= ARRAY_SIZE(requests))
		return NULL;
	request = &requests[array_index_nospec(number, ARRAY_SIZE(requests))];
	return request->bytes || !_IOC_SIZE(command) ? request : NULL;
}

/* Structures of other programs may be shorter, or longer if what is not known here is zero. */
static int serve(struct ptkit_session *session, const struct request *request, size_t given,
		 void __user *user)
{
	union argument argument = {};
	struct ptkit_trace *trace = NULL;
	int error = 0;

	if ((request->flags & CONFIGURED) && !ptkit_session_is_configured(session))
		return -EINVAL;
	if ((request->flags & STARTED) && !ptkit_session_is_started(session))
		return -EINVAL;
	if (request->flags & IN)
		error = copy_struct_from_user(&argument, request->bytes, user, given);
	if (error)
		return error;
	if (request->flags & OF_TRACE) {
		trace = find_trace(session, argument.cpu);
		if (!trace)
			return -EINVAL;
	}
	error = request->serve(session, trace, &argument);
	if ((request->flags & (error ? REFUSAL : OUT)) &&
	    copy_to_user(user, &argument, min_t(size_t, request->bytes, given)))
		return -EFAULT;
	return error;
}

static long ptkit_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	const struct request *request = find_request(command);
	struct ptkit_session *session = file->private_data;
	long done;

	if (!request)
		return -ENOTTY;
	if ((request->flags & RIGHTS) && !perfmon_capable())
		return -EPERM;
	if (mutex_lock_interruptible(&session->lock))
		return -ERESTARTSYS;
	done = serve(session, request, _IOC_SIZE(command), (void __user *)argument);
	mutex_unlock(&session->lock);
	return done;
}

static int check_mapping(struct vm_area_struct *vma, u64 bytes)
{
	if (!(vma->vm_flags & VM_SHARED) || vma->vm_end - vma->vm_start > bytes)
		return -EINVAL;
	if (vma->vm_flags & VM_WRITE)
		return -EPERM;
	ptkit_vm_read_only(vma);
	return 0;
}

static int map_data(const struct ptkit_trace *trace, struct vm_area_struct *vma)
{
	int error = check_mapping(vma, trace->pt.memory.bytes);

	return error ? error : ptkit_memory_map(&trace->pt.memory, vma);
}

static int map_sideband(const struct ptkit_ring *ring, struct vm_area_struct *vma)
{
	int error = ring ? check_mapping(vma, ring->pt.bytes) : -EINVAL;

	return error ? error : ptkit_ring_map(ring, vma);
}

static int ptkit_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct ptkit_session *session = file->private_data;
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	unsigned int cpu = offset >> CPU_SHIFT;
	const struct ptkit_trace *trace;

	if (!ptkit_session_is_configured(session))
		return -EINVAL;
	trace = find_trace(session, cpu);
	if (!trace || (offset & (BIT_ULL(SIDEBAND_SHIFT) - 1)))
		return -EINVAL;
	if (offset & BIT_ULL(SIDEBAND_SHIFT))
		return map_sideband(ptkit_sideband_ring(&session->sideband, cpu), vma);
	return map_data(trace, vma);
}

/* A full buffer ends the trace, although the session is started. */
static bool ended(const struct ptkit_trace *trace)
{
	return READ_ONCE(trace->pt.full) && !trace->pt.wakes_up;
}

/*
 * POLLIN: there are bytes to read, or no byte comes before PTKIT_RESUME or PTKIT_START. POLLERR:
 * the trace of a processor has an error.
 */
static __poll_t ptkit_poll(struct file *file, poll_table *table)
{
	struct ptkit_session *session = file->private_data;
	const struct ptkit_ring *ring;
	bool readable = false;
	bool wanted = false;
	unsigned int i;

	poll_wait(file, &session->wait, table);
	if (!ptkit_session_is_configured(session))
		return EPOLLERR;
	for (i = 0; i < session->count; i++) {
		const struct ptkit_trace *trace = &session->traces[i];

		if (READ_ONCE(trace->pt.error) || ptkit_follow_error(session->follow))
			return EPOLLERR;
		wanted = wanted || (READ_ONCE(trace->pt.wanted) && !ended(trace));
		readable = readable || READ_ONCE(trace->pt.head) != READ_ONCE(trace->pt.tail);
		ring = ptkit_sideband_ring(&session->sideband, trace->number);
		readable = readable || (ring && pt_ring_is_readable(&ring->pt));
	}
	return readable || !wanted ? EPOLLIN | EPOLLRDNORM : 0;
}

static int ptkit_open(struct inode *inode, struct file *file)
{
	struct ptkit_session *session;

	if (!perfmon_capable())
		return -EPERM;
	session = kzalloc(sizeof(*session), GFP_KERNEL_ACCOUNT);
	if (!session)
		return -ENOMEM;
	ptkit_session_init(session);
	file->private_data = session;
	return 0;
}

/* The last close(): mappings hold a reference to the file, too. */
static int ptkit_release(struct inode *inode, struct file *file)
{
	struct ptkit_session *session = file->private_data;

	mutex_lock(&session->lock); /* for lockdep: no other thread has the session */
	ptkit_session_close(session);
	mutex_unlock(&session->lock);
	kfree(session);
	return 0;
}

const struct file_operations ptkit_file_operations = {
	.owner = THIS_MODULE,
	.open = ptkit_open,
	.release = ptkit_release,
	.unlocked_ioctl = ptkit_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = ptkit_mmap,
	.poll = ptkit_poll,
};
