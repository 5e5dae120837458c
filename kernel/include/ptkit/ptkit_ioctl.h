/* SPDX-License-Identifier: MIT */
/*
 * What programs say to the Linux driver through /dev/ptkit. An open file is a session: configured
 * once, then started and stopped as often as one likes; its buffers live until it is closed and
 * unmapped.
 *
 * Structures have fields of fixed width at their natural places. A request's number carries the
 * size of its structure: a driver takes a shorter one of an older program (what is missing is
 * zero), and a longer one of a newer program if everything that it does not know is zero (E2BIG
 * otherwise). Fields called `zero` must be zero. Reserved values give EINVAL, what this driver or
 * processor does not have gives EOPNOTSUPP; PTKIT_QUERY says beforehand what there is.
 */
#ifndef PTKIT_IOCTL_H
#define PTKIT_IOCTL_H

#ifdef __KERNEL__
#include <linux/ioctl.h>
#include <linux/types.h>
#else
#include <stdint.h>
#include <sys/ioctl.h>
#endif

#define PTKIT_DEVICE "/dev/ptkit"
#define PTKIT_ABI 1 /* raised when a field changes its meaning; new fields at the end do not */

/* ptkit_query.features: what this driver can do here, the processor's part included. */
#define PTKIT_FEATURE_TOPA (1ULL << 0)         /* PTKIT_OUTPUT_TOPA */
#define PTKIT_FEATURE_SINGLE_RANGE (1ULL << 1) /* PTKIT_OUTPUT_SINGLE_RANGE */
#define PTKIT_FEATURE_PROCESS (1ULL << 2)      /* ptkit_config.process, for user or kernel code */
#define PTKIT_FEATURE_PROCESS_BOTH (1ULL << 3) /* ... for both at once */
#define PTKIT_FEATURE_TASK (1ULL << 4)         /* PTKIT_TARGET_TASK */
#define PTKIT_FEATURE_WAKE_UP (1ULL << 5)      /* ptkit_config.wake_up_bytes */
#define PTKIT_FEATURE_SIDEBAND (1ULL << 6)     /* ptkit_config.sideband_bytes */

struct ptkit_query {
  uint32_t abi;            /* PTKIT_ABI of the driver */
  uint32_t driver_version; /* major << 16 | minor << 8 | patch */
  uint64_t features;       /* PTKIT_FEATURE_* */
  uint32_t cpuid_1_eax;    /* family, model, stepping */
  uint32_t cpuid_7_ebx;
  uint32_t cpuid_14_0[4]; /* EAX, EBX, ECX, EDX */
  uint32_t cpuid_14_1[4];
  uint32_t cpuid_15[4];
  uint32_t physical_bits; /* of addresses */
  uint32_t tsc_khz;       /* frequency of the time stamp counter, as the kernel measured it; 0:
                             unknown */
  uint32_t cpus;          /* numbers of processors are below this one */
  uint32_t zero;
  uint64_t most_bytes; /* of a buffer of each processor; for a single range see ptkit_config */
};

/* ptkit_config.target */
#define PTKIT_TARGET_ALL 0  /* every processor that is online when the session is configured */
#define PTKIT_TARGET_CPU 1  /* ptkit_config.cpu */
#define PTKIT_TARGET_TASK 2 /* ptkit_config.task, wherever it runs */

/* ptkit_config.output */
#define PTKIT_OUTPUT_TOPA 0         /* a table of regions, as large as memory has them in one piece */
#define PTKIT_OUTPUT_SINGLE_RANGE 1 /* one piece of memory; needs PTKIT_MODE_RING */

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

/* ptkit_range.action */
#define PTKIT_RANGE_FILTER 1 /* code in the range is traced (in one of such ranges) */
#define PTKIT_RANGE_STOP 2   /* tracing stops when code in the range is executed */

#define PTKIT_MOST_RANGES 4

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
   * Only code that runs in this process' address space; 0: any. By CR3, of the program that
   * the process runs when the session is configured: after exec() nothing matches.
   */
  int32_t process;
  uint32_t output;         /* PTKIT_OUTPUT_* */
  uint32_t mode;           /* PTKIT_MODE_* */
  uint64_t buffer_bytes;   /* of each processor; a multiple of 4096, for a single range a power
                              of two */
  uint64_t sideband_bytes; /* of each processor's sideband ring, a multiple of 4096; 0: none */
  /*
   * A power of two from 4096 on, at most a quarter of buffer_bytes; 0: none. The buffer is filled
   * again and again as PTKIT_CONSUME makes room, and poll() returns at least as often as so many
   * bytes were written. With PTKIT_MODE_FULL and PTKIT_OUTPUT_TOPA.
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
#define PTKIT_STATUS_RUNNING (1U << 1) /* TraceEn is set by us; `position` is of the last stop */
#define PTKIT_STATUS_LAPPED (1U << 2)  /* a ring was filled once: all of the buffer is trace */
#define PTKIT_STATUS_FULL (1U << 3)    /* tracing ended, or waits for PTKIT_CONSUME: no room is left */
#define PTKIT_STATUS_OFFLINE (1U << 4) /* the processor is; tracing goes on when it comes back */

struct ptkit_status {
  uint32_t cpu;         /* in */
  uint32_t flags;       /* PTKIT_STATUS_* */
  uint64_t position;    /* where in the buffer the next byte goes */
  uint64_t rtit_status; /* IA32_RTIT_STATUS when tracing was last stopped */
  int32_t error;        /* errno of what went wrong on this processor; 0: nothing */
  uint32_t zero;
  uint64_t head;  /* with wake-ups: bytes written since PTKIT_START, as far as they can be read */
  uint64_t tail;  /* bytes that PTKIT_CONSUME gave back */
  uint64_t stops; /* how often tracing had to wait for PTKIT_CONSUME: something is missing there */
};

/* Says that the bytes before `tail` were read: their room can be written again. */
struct ptkit_consume {
  uint32_t cpu;
  uint32_t zero;
  uint64_t tail; /* from the last one to ptkit_status.head; the byte's place is tail % data_bytes */
};

/* Copies the newest bytes, oldest of them first. Tracing of that processor pauses meanwhile. */
struct ptkit_snapshot {
  uint32_t cpu;      /* in */
  uint32_t flags;    /* out: PTKIT_STATUS_* while it was paused */
  uint64_t address;  /* in: where to copy to */
  uint64_t bytes;    /* in: room there; out: bytes copied */
  uint64_t position; /* out: where in the buffer the newest byte ends */
};

#define PTKIT_IOCTL_TYPE 0xbe

#define PTKIT_QUERY _IOR(PTKIT_IOCTL_TYPE, 0, struct ptkit_query)
/* EBUSY: the session is configured already. */
#define PTKIT_CONFIGURE _IOWR(PTKIT_IOCTL_TYPE, 1, struct ptkit_config)
#define PTKIT_BUFFER _IOWR(PTKIT_IOCTL_TYPE, 2, struct ptkit_buffer)
/*
 * Begins anew, with empty buffers. EBUSY: somebody else traces one of the processors (another
 * session, or TraceEn is set there); then none was started. EIO: a register's write faulted.
 */
#define PTKIT_START _IO(PTKIT_IOCTL_TYPE, 3)
#define PTKIT_STOP _IO(PTKIT_IOCTL_TYPE, 4) /* EIO: not everywhere; it can be tried again */
/* Tracing of all processors of the session; EINVAL unless it was started. */
#define PTKIT_PAUSE _IO(PTKIT_IOCTL_TYPE, 5)
#define PTKIT_RESUME _IO(PTKIT_IOCTL_TYPE, 6)
#define PTKIT_STATUS _IOWR(PTKIT_IOCTL_TYPE, 7, struct ptkit_status)
#define PTKIT_SNAPSHOT _IOWR(PTKIT_IOCTL_TYPE, 8, struct ptkit_snapshot)
#define PTKIT_CONSUME _IOW(PTKIT_IOCTL_TYPE, 9, struct ptkit_consume)

#endif /* PTKIT_IOCTL_H */
