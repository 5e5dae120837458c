/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What the parts of the module share. */
#ifndef PTKIT_LINUX_PTKIT_H
#define PTKIT_LINUX_PTKIT_H

#include <linux/irq_work.h>
#include <linux/mm_types.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "common/pt_ops.h"
#include "common/pt_sequence.h"
#include "common/pt_topa.h"
#include "ptkit/ptkit_ioctl.h"

/* The processor: the real one (machine.c), or a model of it in test builds (model.c). */
struct ptkit_machine {
	void (*cpuid)(u32 leaf, u32 subleaf, u32 words[4]); /* EAX, EBX, ECX, EDX */
	struct pt_ops ops; /* of the processor that they are called on */
	void (*arm_interrupt)(void); /* of its performance monitoring; each one disarms it */
};

extern const struct ptkit_machine ptkit_machine;

/* What this machine can do; as read when the module was loaded. */
struct ptkit_caps {
	u32 cpuid_1_eax;
	u32 cpuid_7_ebx;
	u32 cpuid_14_0[4];
	u32 cpuid_14_1[4];
	u32 cpuid_15[4];
	u8 physical_bits;
	u8 linear_bits;
	bool in_vmx; /* traces where a hypervisor runs */
	bool bts;
	bool bts_levels; /* of user code or kernel code alone */
};

/* -ENODEV without Processor Trace. */
int ptkit_read_caps(struct ptkit_caps *caps);
u64 ptkit_features(const struct ptkit_caps *caps);

/*
 * Checks a configuration, and makes registers of it, those of output excepted; cr3_match is what
 * the process' page tables have. On -EINVAL and -EOPNOTSUPP config->refused is set.
 */
int ptkit_make_state(const struct ptkit_caps *caps, struct ptkit_config *config,
		     struct pt_state *state);

#define PTKIT_REFUSE(config, field, reason)                                                        \
	((config)->refused = offsetof(struct ptkit_config, field), (reason))

/* Memory of a buffer, in the order in which it is filled. */
struct ptkit_memory {
	u64 bytes;
	u64 used; /* bytes that can be written */
	void *linear; /* with Branch Trace Store: all of it in one piece */
	struct pt_region *regions;
	u32 region_count;
	struct pt_table *tables; /* with ToPA */
	u32 table_count;
	struct pt_topa topa;
	bool single_range;
};

int ptkit_memory_make(struct ptkit_memory *memory, const struct ptkit_caps *caps,
		      const struct ptkit_config *config, int node);
void ptkit_memory_free(struct ptkit_memory *memory);
/* Never frees it: a processor may still write there. */
void ptkit_memory_abandon(const struct ptkit_memory *memory);
void ptkit_memory_clear(const struct ptkit_memory *memory);
/* Whether there is anything but zeros from a position on to the end. */
bool ptkit_memory_used_behind(const struct ptkit_memory *memory, u64 position);
int ptkit_memory_copy(const struct ptkit_memory *memory, u64 offset, u64 bytes, void __user *to);
int ptkit_memory_map(const struct ptkit_memory *memory, struct vm_area_struct *vma);
u64 ptkit_memory_region_begin(const struct ptkit_memory *memory, u64 position);
/* Registers for a position, which is 0 with a single range, and the position of registers. */
int ptkit_memory_output(const struct ptkit_memory *memory, u64 position, struct pt_state *state);
int ptkit_memory_position(struct ptkit_memory *memory, const struct pt_state *state, u64 *position);

struct ptkit_follow;
struct ptkit_bts;

/*
 * One processor's part of a session, or one task's. What tracing changes is changed on the
 * processor where it is, with interrupts off or while it is offline; the rest is guarded by the
 * lock of units.c.
 */
struct ptkit_trace {
	unsigned int number; /* what requests call it: of the processor, or 0 */
	unsigned int cpu; /* where it is; of one that roams, where it was last */
	bool roams; /* goes with a task from processor to processor */
	struct ptkit_follow *follow; /* null: whatever runs */
	struct ptkit_memory memory;
	struct ptkit_bts *bts; /* null: Processor Trace */
	struct pt_state state; /* as last loaded, or read back */
	u64 position; /* at the last stop */
	int error;
	bool started; /* the processor's unit is ours */
	/* It is to trace whenever the processor is online, and runs what is followed. */
	bool wanted;
	bool running; /* it does */
	bool ring;
	bool lapped;
	bool full;
	bool cleared; /* somebody else cleared TraceEn */
	bool interrupts; /* the processor's, when there is less room */
	bool wakes_up; /* by these; the four below are for these only */
	u64 head; /* bytes written */
	u64 tail; /* bytes given back by the reader */
	u64 limit; /* where head must stop: the STOP entry ends there */
	u64 limit_tail; /* the tail that it was made for */
	u64 stops;
	struct irq_work work; /* wakes up who waits, from an interrupt's handler */
	wait_queue_head_t *wait; /* woken up when tracing ends without anybody's wish */
};

/* bts.c; the last three are used where ptkit_run() and ptkit_halt() are. */
void ptkit_bts_read_caps(struct ptkit_caps *caps, const u32 cpuid_1[4]);
int ptkit_bts_check(const struct ptkit_caps *caps, struct ptkit_config *config);
int ptkit_bts_make(struct ptkit_trace *trace, const struct ptkit_config *config);
void ptkit_bts_free(struct ptkit_trace *trace);
void ptkit_bts_abandon(const struct ptkit_trace *trace);
int ptkit_bts_reset(struct ptkit_trace *trace);
int ptkit_bts_start(struct ptkit_trace *trace);
int ptkit_bts_stop(struct ptkit_trace *trace);
/* Whether an interrupt comes or came. */
bool ptkit_bts_pends(const struct ptkit_trace *trace);

/* running.c: on the trace's processor with interrupts off, the first two while it is nowhere. */
void ptkit_trace_init(struct ptkit_trace *trace, unsigned int number, struct ptkit_follow *follow);
/* Its buffer; one that a processor may still write to is abandoned. */
void ptkit_trace_free(struct ptkit_trace *trace);
int ptkit_trace_reset(struct ptkit_trace *trace);
int ptkit_errno(int error); /* of kernel/common */
void ptkit_run(struct ptkit_trace *trace);
void ptkit_halt(struct ptkit_trace *trace);
/* No interrupt is for it any longer. */
void ptkit_forget(const struct ptkit_trace *trace);
int ptkit_interrupts_init(void);
void ptkit_interrupts_exit(void);

int ptkit_units_init(void);
void ptkit_units_exit(void);
/*
 * Of a session's traces; the first error. `state` is that of the session, without output. None is
 * started before the first one. If it fails, and after the second one, traces whose units could not
 * be stopped are started, and no others.
 */
int ptkit_units_start(struct ptkit_trace *traces, unsigned int count, const struct pt_state *state);
int ptkit_units_stop(struct ptkit_trace *traces, unsigned int count);
bool ptkit_units_any_started(const struct ptkit_trace *traces, unsigned int count);
/* All of them are started. `restart`: also where a TraceStop range or an error had ended it. */
int ptkit_units_pause(struct ptkit_trace *traces, unsigned int count);
int ptkit_units_resume(struct ptkit_trace *traces, unsigned int count, bool restart);
/* Stops; none is started afterwards. What cannot be stopped is left running. */
void ptkit_units_give_up(struct ptkit_trace *traces, unsigned int count);
/* Whether a processor belongs to any session. */
bool ptkit_units_any_owner(void);
int ptkit_units_consume(struct ptkit_trace *trace, u64 tail);
void ptkit_units_status(struct ptkit_trace *trace, struct ptkit_status *status);

/* On this processor, interrupts off: whose its unit is, and `task` runs or no longer does. */
struct ptkit_trace *ptkit_unit_owner(void);
void ptkit_unit_enter(struct ptkit_trace *trace, const struct task_struct *task);
void ptkit_unit_leave(struct ptkit_trace *trace);

/* events.c: numbers of what the kernel tells. */
enum {
	PTKIT_EVENT_SWITCH,
	PTKIT_EVENT_FORK,
	PTKIT_EVENT_EXEC,
	PTKIT_EVENT_FREE, /* of a task that never runs again */
	PTKIT_EVENT_EXIT,
	PTKIT_EVENT_RENAME,
};

/* Take bits of these numbers. The end waits until nobody is told any longer. */
void ptkit_events_init(void);
bool ptkit_events_found(unsigned int wanted);
int ptkit_events_begin(unsigned int wanted);
void ptkit_events_end(unsigned int wanted);
/* Whether any is listened to. */
bool ptkit_events_any(void);

/* tasks.c: whom a session follows; null if it is nobody. */
bool ptkit_follow_possible(void);
/* By switching tracing on and off; otherwise the processor knows its page tables. */
bool ptkit_follow_switches(const struct ptkit_caps *caps, const struct ptkit_config *config);
struct ptkit_follow *ptkit_follow_make(const struct ptkit_caps *caps,
				       const struct ptkit_config *config);
void ptkit_follow_free(struct ptkit_follow *follow);
/*
 * Around tracing: the first one puts it on the list of those that tracepoints look at, unless it
 * fails; the second one takes it off. `roaming` is the trace that goes with a task, or null.
 */
int ptkit_follow_begin(struct ptkit_follow *follow, struct ptkit_trace *roaming);
void ptkit_follow_end(struct ptkit_follow *follow);
/* On the list, for no exec() to be missed: looks whether it is there. -ESRCH: it has ended. */
int ptkit_follow_find(struct ptkit_follow *follow);
/* Whether there is any on the list. */
bool ptkit_follow_any(void);
/* errno of what went wrong since it began. */
int ptkit_follow_error(const struct ptkit_follow *follow);
/* With preemption off. `allows`: the processor itself may look who it is. */
bool ptkit_follows(const struct ptkit_follow *follow, const struct task_struct *task);
bool ptkit_follow_allows(const struct ptkit_follow *follow, const struct task_struct *task);
u64 ptkit_follow_cr3(const struct ptkit_follow *follow);
void ptkit_tasks_switch(const struct task_struct *next);
void ptkit_tasks_fork(const struct task_struct *parent, struct task_struct *child);
void ptkit_tasks_exec(const struct task_struct *task);
void ptkit_tasks_free(const struct task_struct *task);

/* main.c: whether any session has a processor, or is on a list that tracepoints look at. */
bool ptkit_in_use(void);

void ptkit_power_init(void);
void ptkit_power_exit(void);

/* /dev/ptkit, see session.c */
extern const struct file_operations ptkit_file_operations;
extern struct ptkit_caps ptkit_caps;

#endif /* PTKIT_LINUX_PTKIT_H */
