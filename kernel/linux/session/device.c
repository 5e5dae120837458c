// SPDX-License-Identifier: GPL-2.0 OR MIT
/* /dev/ptkit: an open file is a session; see ptkit/ptkit_ioctl.h. */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <asm/tsc.h>

#include "common/pt_buffer.h"
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

/*
 * A newer program may pass a longer structure. The bytes that this driver does not know are zero.
 */
static int copy_in(void *to, size_t known, const void __user *from, unsigned int command)
{
	return copy_struct_from_user(to, known, from, _IOC_SIZE(command));
}

static int copy_out(void __user *to, unsigned int command, const void *from, size_t known)
{
	size_t bytes = min_t(size_t, known, _IOC_SIZE(command));

	return copy_to_user(to, from, bytes) ? -EFAULT : 0;
}

static struct ptkit_trace *find_trace(const struct ptkit_session *session, u64 number)
{
	unsigned int i;

	for (i = 0; i < session->count; i++) {
		if (session->traces[i].number == number)
			return &session->traces[i];
	}
	return NULL;
}

static int query(void __user *argument, unsigned int command)
{
	struct pt_config_limits limits;
	struct ptkit_query query = {
		.tsc_khz = tsc_khz,
		.cpus = nr_cpu_ids,
	};

	ptkit_limits_make(&limits);
	pt_query_make(&ptkit_caps, &limits, &query);
	return copy_out(argument, command, &query, sizeof(query));
}

static int configure(struct ptkit_session *session, void __user *argument, unsigned int command)
{
	struct ptkit_config config;
	int error;

	if (ptkit_session_is_configured(session))
		return -EBUSY;
	error = copy_in(&config, sizeof(config), argument, command);
	if (error)
		return error;
	config.refused = 0;
	error = ptkit_session_configure(session, &config);
	if (error)
		return copy_out(argument, command, &config, sizeof(config)) ? -EFAULT : error;
	return 0;
}

static int describe_buffer(struct ptkit_session *session, void __user *argument,
			   unsigned int command)
{
	struct ptkit_buffer buffer;
	const struct ptkit_trace *trace;
	const struct ptkit_ring *ring;
	int error = copy_in(&buffer, sizeof(buffer), argument, command);

	if (error)
		return error;
	trace = find_trace(session, buffer.cpu);
	if (!trace || buffer.zero)
		return -EINVAL;
	ring = ptkit_sideband_ring(&session->sideband, buffer.cpu);
	buffer.data_offset = (u64)buffer.cpu << CPU_SHIFT;
	buffer.data_bytes = trace->pt.memory.bytes;
	buffer.sideband_offset = ring ? buffer.data_offset | BIT_ULL(SIDEBAND_SHIFT) : 0;
	buffer.sideband_bytes = ring ? ring->pt.bytes : 0;
	return copy_out(argument, command, &buffer, sizeof(buffer));
}

static int read_status(struct ptkit_session *session, void __user *argument, unsigned int command)
{
	struct ptkit_status status;
	struct ptkit_trace *trace;
	struct ptkit_ring *ring;
	int error = copy_in(&status, sizeof(status), argument, command);

	if (error)
		return error;
	trace = find_trace(session, status.cpu);
	if (!trace || status.zero)
		return -EINVAL;
	ptkit_units_status(trace, &status);
	ring = ptkit_sideband_ring(&session->sideband, status.cpu);
	status.sideband_head = 0;
	status.sideband_tail = 0;
	status.sideband_lost = 0;
	if (ring)
		pt_ring_status(&ring->pt, &status);
	return copy_out(argument, command, &status, sizeof(status));
}

static int consume(struct ptkit_session *session, void __user *argument, unsigned int command)
{
	struct ptkit_consume consume;
	struct ptkit_trace *trace;
	struct ptkit_ring *ring;
	int error = copy_in(&consume, sizeof(consume), argument, command);

	if (error)
		return error;
	trace = find_trace(session, consume.cpu);
	ring = ptkit_sideband_ring(&session->sideband, consume.cpu);
	if (!trace || consume.zero || (consume.sideband_tail && !ring))
		return -EINVAL;
	if (consume.tail)
		error = ptkit_units_consume(trace, consume.tail);
	if (!error && consume.sideband_tail)
		error = ptkit_errno(pt_ring_consume(&ring->pt, consume.sideband_tail));
	return error;
}

static int copy_newest(const struct ptkit_trace *trace, const struct ptkit_status *status,
		       struct ptkit_snapshot *snapshot)
{
	const struct pt_memory *memory = &trace->pt.memory;
	bool lapped = status->flags & PTKIT_STATUS_LAPPED;
	struct pt_piece pieces[2];
	void __user *to = u64_to_user_ptr(snapshot->address);
	u32 count;
	u32 i;

	snapshot->bytes = min(snapshot->bytes, lapped ? memory->used : status->position);
	count = pt_newest_pieces(memory->used, status->position, snapshot->bytes, pieces);
	for (i = 0; i < count; i++) {
		int error = ptkit_memory_copy(memory, pieces[i].offset, pieces[i].bytes, to);

		if (error)
			return error;
		to += pieces[i].bytes;
	}
	return 0;
}

static int take_snapshot(struct ptkit_session *session, void __user *argument, unsigned int command)
{
	struct ptkit_snapshot snapshot;
	struct ptkit_status status = {};
	struct ptkit_trace *trace;
	bool wanted;
	int error = copy_in(&snapshot, sizeof(snapshot), argument, command);

	if (error)
		return error;
	trace = find_trace(session, snapshot.cpu);
	if (!trace || !ptkit_session_is_started(session) || trace->pt.wakes_up)
		return -EINVAL;
	wanted = trace->pt.wanted;
	error = ptkit_units_pause(trace, 1);
	ptkit_units_status(trace, &status);
	snapshot.flags = status.flags;
	snapshot.position = status.position;
	if (!error)
		error = copy_newest(trace, &status, &snapshot);
	if (wanted) {
		int failed = ptkit_units_resume(trace, 1, false);

		error = error ? error : failed;
	}
	return error ? error : copy_out(argument, command, &snapshot, sizeof(snapshot));
}

static int pause(struct ptkit_session *session)
{
	if (!ptkit_session_is_started(session))
		return -EINVAL;
	return ptkit_units_pause(session->traces, session->count);
}

static int resume(struct ptkit_session *session)
{
	if (!ptkit_session_is_started(session))
		return -EINVAL;
	return ptkit_units_resume(session->traces, session->count, true);
}

static int control(struct ptkit_session *session, unsigned int command)
{
	int error;

	if (_IOC_SIZE(command))
		return -ENOTTY;
	switch (_IOC_NR(command)) {
	case _IOC_NR(PTKIT_START):
		return ptkit_session_start(session);
	case _IOC_NR(PTKIT_RESUME):
		return resume(session);
	case _IOC_NR(PTKIT_STOP):
		error = ptkit_session_stop(session);
		break;
	case _IOC_NR(PTKIT_PAUSE):
		error = pause(session);
		break;
	default:
		return -ENOTTY;
	}
	wake_up_interruptible(&session->wait);
	return error;
}

static long do_ioctl(struct ptkit_session *session, void __user *argument, unsigned int command)
{
	switch (_IOC_NR(command)) {
	case _IOC_NR(PTKIT_QUERY):
		return query(argument, command);
	case _IOC_NR(PTKIT_CONFIGURE):
		return configure(session, argument, command);
	default:
		break;
	}
	if (!ptkit_session_is_configured(session))
		return -EINVAL;
	switch (_IOC_NR(command)) {
	case _IOC_NR(PTKIT_BUFFER):
		return describe_buffer(session, argument, command);
	case _IOC_NR(PTKIT_STATUS):
		return read_status(session, argument, command);
	case _IOC_NR(PTKIT_CONSUME):
		return consume(session, argument, command);
	case _IOC_NR(PTKIT_SNAPSHOT):
		return take_snapshot(session, argument, command);
	default:
		return control(session, command);
	}
}

/* The file may have been passed on to a process with fewer rights than its opener. */
static bool is_permitted(unsigned int command)
{
	bool asks = _IOC_NR(command) == _IOC_NR(PTKIT_CONFIGURE) ||
		    _IOC_NR(command) == _IOC_NR(PTKIT_START);

	return !asks || perfmon_capable();
}

static long ptkit_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	struct ptkit_session *session = file->private_data;
	long done;

	if (_IOC_TYPE(command) != PTKIT_IOCTL_TYPE)
		return -ENOTTY;
	if (!is_permitted(command))
		return -EPERM;
	if (mutex_lock_interruptible(&session->lock))
		return -ERESTARTSYS;
	done = do_ioctl(session, (void __user *)argument, command);
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
