/* SPDX-License-Identifier: MIT */
/*
 * Structures and values of requests to the drivers. ptkit_ioctl.h has the requests of the Linux
 * driver, ptkit_windows.h those of the Windows driver, and where it differs.
 *
 * Structures have fields of fixed width with natural alignment. Fields called `zero` must be zero.
 */
#ifndef PTKIT_ABI_H
#define PTKIT_ABI_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdint.h>
#endif

#define PTKIT_ABI 2 /* raised when a field changes its meaning; new fields at the end do not */

/* ptkit_query.features: supported by both the driver and the processor. */
#define PTKIT_FEATURE_TOPA (1ULL << 0)         /* PTKIT_OUTPUT_TOPA */
#define PTKIT_FEATURE_SINGLE_RANGE (1ULL << 1) /* PTKIT_OUTPUT_SINGLE_RANGE */
#define PTKIT_FEATURE_PROCESS (1ULL << 2)      /* ptkit_config.process, for user or kernel code */
#define PTKIT_FEATURE_PROCESS_BOTH (1ULL << 3) /* ... for both at once */
#define PTKIT_FEATURE_TASK (1ULL << 4)         /* PTKIT_TARGET_TASK */
#define PTKIT_FEATURE_WAKE_UP (1ULL << 5)      /* ptkit_config.wake_up_bytes */
#define PTKIT_FEATURE_SIDEBAND (1ULL << 6)     /* ptkit_config.sideband_bytes */
#define PTKIT_FEATURE_CHILDREN (1ULL << 7)     /* PTKIT_TRACE_CHILDREN */
#define PTKIT_FEATURE_BTS (1ULL << 8)          /* PTKIT_OUTPUT_BTS */
#define PTKIT_FEATURE_VMX (1ULL << 9)          /* tracing goes on where a hypervisor runs (VMXON) */
/* The driver reserves trace units against perf's PMU intel_pt. Without it no such PMU is registered. */
#define PTKIT_FEATURE_RESERVES (1ULL << 10)

struct ptkit_query {
  uint32_t abi;            /* PTKIT_ABI of the driver */
  uint32_t driver_version; /* major << 16 | minor << 8 | patch */
  uint64_t features;       /* PTKIT_FEATURE_* */
  uint32_t cpuid_1_eax;    /* family, model, stepping */
  uint32_t cpuid_7_ebx;
  uint32_t cpuid_14_0[4]; /* EAX, EBX, ECX, EDX */
  uint32_t cpuid_14_1[4];
  uint32_t cpuid_15[4];
  uint32_t physical_bits;     /* of addresses */
  uint32_t tsc_khz;           /* frequency of the time stamp counter, as the kernel measured it; 0:
                                 unknown */
  uint32_t cpus;              /* numbers of processors are below this one */
  uint32_t nominal_ratio;     /* of the TSC to 100 MHz, from PLATFORM_INFO; 0: unknown */
  uint64_t most_bytes;        /* of a buffer of each processor */
  uint64_t most_single_bytes; /* with PTKIT_OUTPUT_SINGLE_RANGE: errata permit no more */
};

/* ptkit_config.target */
#define PTKIT_TARGET_ALL 0 /* every processor that is online when the session is configured */
#define PTKIT_TARGET_CPU 1 /* ptkit_config.cpu */
/*
 * ptkit_config.task, on each processor that it runs on. The one buffer has the number of processor
 * 0. On a processor that another session or tracer uses, the task is not traced: ptkit_status.error
 * is -EBUSY then, and tracing stays off until PTKIT_RESUME.
 */
#define PTKIT_TARGET_TASK 2

/* ptkit_config.output */
#define PTKIT_OUTPUT_TOPA 0         /* a table of regions, each of contiguous memory */
#define PTKIT_OUTPUT_SINGLE_RANGE 1 /* contiguous memory; needs PTKIT_MODE_RING */
/*
 * Branch Trace Store instead of Processor Trace: records of 24 bytes (from, to, flags), as many as
 * fit, from the beginning of the buffer. Marks (struct ptkit_branch_mark) are among them. With
 * wake-ups the buffer is filled again and again, and a record may wrap at its end. Accepted flags are
 * USER, KERNEL (at least one of the two), BRANCHES and CHILDREN; ranges and a task are not accepted.
 */
#define PTKIT_OUTPUT_BTS 2

/* ptkit_config.mode */
#define PTKIT_MODE_FULL 0 /* nothing is overwritten: tracing stops when the buffer is full */
#define PTKIT_MODE_RING 1 /* the newest bytes are kept */

/* ptkit_config.flags: what is traced, and which packets are written. */
#define PTKIT_TRACE_USER (1ULL << 0)        /* code with CPL > 0 */
#define PTKIT_TRACE_KERNEL (1ULL << 1)      /* code with CPL 0 */
#define PTKIT_TRACE_BRANCHES (1ULL << 2)    /* COFI packets; FUP, TIP and TNT among them */
#define PTKIT_TRACE_TSC (1ULL << 3)         /* TSC packets */
#define PTKIT_TRACE_MTC (1ULL << 4)         /* MTC packets, every 2^mtc_freq core crystal clocks */
#define PTKIT_TRACE_CYC (1ULL << 5)         /* CYC packets, see cyc_thresh */
#define PTKIT_TRACE_PTWRITE (1ULL << 6)     /* PTW packets */
#define PTKIT_TRACE_PTWRITE_FUP (1ULL << 7) /* with a FUP each; needs PTKIT_TRACE_PTWRITE */
#define PTKIT_TRACE_POWER (1ULL << 8)       /* power event packets */
#define PTKIT_TRACE_EVENTS (1ULL << 9)      /* event trace: CFE and EVD packets */
#define PTKIT_TRACE_NO_RETC (1ULL << 10)    /* every near return as TIP */
#define PTKIT_TRACE_NO_TNT (1ULL << 11)     /* no TNT packets */
/* With ptkit_config.process: its children since PTKIT_START, and their children, are traced, too. */
#define PTKIT_TRACE_CHILDREN (1ULL << 12)

/* ptkit_range.action */
#define PTKIT_RANGE_FILTER 1 /* code in the range is traced (in one of such ranges) */
#define PTKIT_RANGE_STOP 2   /* tracing stops when code in the range is executed */

#define PTKIT_MOST_RANGES 4
#define PTKIT_MOST_SIDEBAND_BYTES (1ULL << 26)

struct ptkit_range {
  uint64_t first;  /* linear address, of the first byte */
  uint64_t last;   /* of the last byte: that one belongs to the range */
  uint32_t action; /* PTKIT_RANGE_* */
  uint32_t zero;
};

struct ptkit_config {
  uint32_t target; /* PTKIT_TARGET_* */
  uint32_t cpu;    /* with PTKIT_TARGET_CPU, otherwise zero */
  int32_t task;    /* thread, as the caller numbers it; with PTKIT_TARGET_TASK, otherwise zero */
  /*
   * Only while a thread of this process runs, also after its exec(); 0: any. User code or kernel
   * code alone is chosen by CR3 where the processor can; both at once, and children, by switching
   * tracing on and off with the scheduler.
   */
  int32_t process;
  uint32_t output;         /* PTKIT_OUTPUT_* */
  uint32_t mode;           /* PTKIT_MODE_* */
  uint64_t buffer_bytes;   /* of each processor; a multiple of 4096, for a single range a power
                              of two */
  uint64_t sideband_bytes; /* of each processor's sideband ring, a power of two from 4096 to
                              PTKIT_MOST_SIDEBAND_BYTES; 0: none */
  /*
   * A power of two from 4096 on, at most a quarter of buffer_bytes; 0: none. The buffer is filled
   * again and again as PTKIT_CONSUME makes room, and poll() returns at least as often as so many
   * bytes were written. With PTKIT_MODE_FULL, and PTKIT_OUTPUT_TOPA or PTKIT_OUTPUT_BTS.
   */
  uint64_t wake_up_bytes;
  uint64_t flags;      /* PTKIT_TRACE_*; of USER and KERNEL at least one */
  uint8_t mtc_freq;    /* MTCFreq, with PTKIT_TRACE_MTC, otherwise zero */
  uint8_t cyc_thresh;  /* CycThresh, with PTKIT_TRACE_CYC, otherwise zero */
  uint8_t psb_freq;    /* PSBFreq */
  uint8_t range_count; /* of ranges[]; the others are zero */
  uint32_t refused;    /* out, on EINVAL and EOPNOTSUPP: offset of the field that was refused */
  struct ptkit_range ranges[PTKIT_MOST_RANGES];
};

/*
 * Where the processor begins or ends to store branches: at context switches, at exec(), at a stop or
 * pause, and where the driver lays out the buffer anew. Has the size of a record of a branch, and no
 * branch has these values: `from` is 0, and a TSC is larger than the flags of a branch.
 */
struct ptkit_branch_mark {
  uint64_t from; /* 0 */
  /*
   * The thread of the branches that follow, as in struct ptkit_record. Negative: the branches of the thread
   * (~pid, ~tid) end.
   */
  int32_t pid;
  int32_t tid;
  uint64_t tsc;
};

/* Where a processor's buffers can be mapped: PROT_READ, MAP_SHARED, from their beginning. */
struct ptkit_buffer {
  uint32_t cpu; /* in */
  uint32_t zero;
  uint64_t data_offset; /* for mmap() */
  uint64_t data_bytes;
  uint64_t sideband_offset;
  uint64_t sideband_bytes; /* 0: there is none */
};

/* ptkit_status.flags */
#define PTKIT_STATUS_STARTED (1U << 0) /* PTKIT_START was given, and not yet PTKIT_STOP */
#define PTKIT_STATUS_RUNNING (1U << 1) /* the driver has set TraceEn; `position` is of the last stop */
#define PTKIT_STATUS_LAPPED (1U << 2)  /* the ring has wrapped: the whole buffer is trace */
#define PTKIT_STATUS_FULL (1U << 3)    /* tracing ended, or waits for PTKIT_CONSUME: no room is left */
#define PTKIT_STATUS_OFFLINE (1U << 4) /* the processor is offline; tracing continues when it is online */
/*
 * Since PTKIT_START, TraceEn was found clear at a stop or pause, and the driver had not cleared it:
 * VMXON without PTKIT_FEATURE_VMX did, or another tracer.
 */
#define PTKIT_STATUS_CLEARED (1U << 5)
#define PTKIT_STATUS_REFUSED (1U << 6) /* perf's intel_pt has the trace unit: nothing is traced */

struct ptkit_status {
  uint32_t cpu;         /* in */
  uint32_t flags;       /* PTKIT_STATUS_* */
  uint64_t position;    /* of the next byte in the buffer */
  uint64_t rtit_status; /* IA32_RTIT_STATUS when tracing was last stopped */
  int32_t error;        /* errno, negative, of what ended tracing on this processor until
                           PTKIT_RESUME; 0: nothing. -ENOMEM: some children are missing */
  uint32_t zero;
  uint64_t head;          /* with wake-ups: bytes written since PTKIT_START, as far as they can be read */
  uint64_t tail;          /* bytes that PTKIT_CONSUME consumed */
  uint64_t stops;         /* how often the buffer was full up to the reader: packets are missing there */
  uint64_t sideband_head; /* bytes written since PTKIT_START, in whole records */
  uint64_t sideband_tail; /* bytes that PTKIT_CONSUME consumed */
  uint64_t sideband_lost; /* records that found no room */
  uint64_t stopped_at[2]; /* `head` at the last of these stops, and at the one before it */
  uint64_t clears;        /* how often TraceEn was found clear: PTKIT_STATUS_CLEARED */
  uint64_t cleared_at;    /* `head` there, the last time; without wake-ups `position` */
};

/* Consumes the bytes before a tail: the driver may overwrite them. */
struct ptkit_consume {
  uint32_t cpu;
  uint32_t zero;
  uint64_t tail;          /* from the last one to ptkit_status.head; the byte's offset is tail % data_bytes;
                             0: as before */
  uint64_t sideband_tail; /* the same for the sideband ring */
};

/*
 * Sideband: records of context switches, page tables, threads and modules, from PTKIT_START to
 * PTKIT_STOP. Executable mappings and names are not among them: perf's dummy events have these. Each
 * processor has a ring for the records of what happens on that processor. With a process or a task, the
 * ring has records of its threads and of modules; otherwise of all threads. Each ring begins with a
 * SWITCH to the thread that runs then; a SPACE record may precede it. The size of a record is a
 * multiple of 8 bytes; a record may wrap at the end of the ring. No record is overwritten: records that
 * find no room are dropped, and a LOST record precedes the next record. poll() returns when a quarter
 * of a ring was written.
 */
#define PTKIT_RECORD_SWITCH 1 /* the thread runs on this processor; pid, tid -1: it is not followed */
/*
 * Process or thread (pid, tid) began: struct ptkit_record_fork. With PTKIT_TARGET_TASK: threads that the
 * task began, which are not traced.
 */
#define PTKIT_RECORD_FORK 2
#define PTKIT_RECORD_EXEC 3   /* the new program is mapped: struct ptkit_record_space */
#define PTKIT_RECORD_EXIT 4   /* of a thread: struct ptkit_record_exit */
#define PTKIT_RECORD_SPACE 5  /* of the followed process at PTKIT_START: struct ptkit_record_space */
#define PTKIT_RECORD_LOST 7   /* records before this one: struct ptkit_record_lost */
#define PTKIT_RECORD_MODULE 8 /* a module of the kernel came: struct ptkit_record_module */
#define PTKIT_RECORD_MODULE_GONE 9

/* The beginning of each record. */
struct ptkit_record {
  uint16_t type; /* PTKIT_RECORD_* */
  uint16_t size; /* with this */
  uint32_t cpu;
  uint64_t tsc;
  int32_t pid; /* in the namespace of the session's opener; 0: the kernel, or not visible there */
  int32_t tid;
};

/*
 * SWITCH, EXEC, SPACE. Page tables by their physical address. 0: the thread has none of its own and runs
 * with those of the thread before it, or it is not followed.
 */
struct ptkit_record_space {
  struct ptkit_record record;
  uint64_t kernel_cr3; /* bits 63:12, the rest is zero */
  uint64_t user_cr3;   /* the same one without page-table isolation */
};

struct ptkit_record_fork {
  struct ptkit_record_space space; /* of what began */
  int32_t parent_pid;
  int32_t parent_tid;
};

struct ptkit_record_exit {
  struct ptkit_record record;
  int32_t status; /* as wait() has it */
  uint32_t zero;
};

struct ptkit_record_module {
  struct ptkit_record record;
  uint64_t address; /* its code without __init code */
  uint64_t bytes;
  char name[56]; /* zeros fill it up */
};

struct ptkit_record_lost {
  struct ptkit_record record;
  uint64_t count;
};

/* Copies the newest bytes, the oldest of them first. Tracing of the processor pauses meanwhile. */
struct ptkit_snapshot {
  uint32_t cpu;      /* in */
  uint32_t flags;    /* out: PTKIT_STATUS_* while it was paused */
  uint64_t address;  /* in: where to copy to */
  uint64_t bytes;    /* in: room there; out: bytes copied */
  uint64_t position; /* out: where in the buffer the newest byte ends */
};

#endif /* PTKIT_ABI_H */
