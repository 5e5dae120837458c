/* SPDX-License-Identifier: MIT */
/*
 * Requests to the Windows driver through \\.\ptkit. An open handle is a session. A program
 * configures it once, then starts and stops it any number of times. Its buffers live until the
 * handle is closed. <winioctl.h> or <ntddk.h> is included before.
 *
 * The structures are those of ptkit_abi.h where there is one. Differences:
 * - Processors have the number that KeGetProcessorIndexFromNumber() gives them in all groups.
 * - PTKIT_TARGET_TASK and PTKIT_TRACE_CHILDREN are not offered: Windows calls no driver at a
 * context switch. A process is chosen by CR3. Where Windows keeps two page tables of a process (KVA
 * shadow), user code or kernel code can be chosen, not both at once (PTKIT_FEATURE_PROCESS_BOTH).
 * - There is one sideband ring for the whole session; ptkit_config.sideband_bytes is its size.
 * - Nothing is mapped: PTKIT_WINDOWS_READ copies.
 * - ptkit_status.error is a PTKIT_REASON_*.
 * - Marks of Branch Trace Store have the thread that runs at a hand-over. Other threads may have run between
 * two marks. Records of zeros fill the end of the buffer; they are no branches.
 *
 * A request's input and output have the size of the structure at least. A longer structure of a
 * newer program is accepted if what the driver does not know is zero. A refused request ends with
 * an error of Windows; PTKIT_WINDOWS_REFUSAL tells the reason.
 */
#ifndef PTKIT_WINDOWS_H
#define PTKIT_WINDOWS_H

#include "ptkit_abi.h"

#define PTKIT_WINDOWS_DEVICE "\\\\.\\ptkit"

/* Why a request was refused, or what ended tracing on a processor. The error of Windows is in
 * brackets. */
enum ptkit_reason {
  PTKIT_REASON_NONE = 0,
  PTKIT_REASON_NO_PT = 1,       /* the processors have no Processor Trace (NOT_SUPPORTED) */
  PTKIT_REASON_HYPERVISOR = 2,  /* ... as a hypervisor hides it */
  PTKIT_REASON_VBS = 3,         /* ... the hypervisor of Windows' virtualization-based security (HVCI) */
  PTKIT_REASON_FIELD = 4,       /* `field` has a reserved value (INVALID_PARAMETER) */
  PTKIT_REASON_UNSUPPORTED = 5, /* `field` asks for what driver or processor lack (NOT_SUPPORTED) */
  PTKIT_REASON_OWNER = 6,       /* another tracer uses the unit of `cpu` (DEVICE_BUSY) */
  PTKIT_REASON_SESSION = 7,     /* another session has `cpu` (DEVICE_BUSY) */
  PTKIT_REASON_STATE = 8,       /* not in this state of the session (INVALID_DEVICE_STATE) */
  PTKIT_REASON_NO_PROCESS = 9,  /* it is not there or has ended (NOT_FOUND) */
  PTKIT_REASON_NO_MODULE = 10,  /* no kernel driver of this name is loaded (NOT_FOUND) */
  PTKIT_REASON_TABLES = 11,     /* the process' page tables of user code are unknown (NOT_SUPPORTED) */
  PTKIT_REASON_MEMORY = 12,     /* too little, or over a quarter of it (INSUFFICIENT_RESOURCES) */
  PTKIT_REASON_FAULT = 13,      /* an access to a register of `cpu` faulted (IO_DEVICE_ERROR) */
  PTKIT_REASON_RIGHTS = 14,     /* SeSystemProfilePrivilege is not enabled (PRIVILEGE_NOT_HELD) */
  PTKIT_REASON_SIZE = 15,       /* of input or output (INFO_LENGTH_MISMATCH) */
  PTKIT_REASON_REQUEST = 16,    /* there is no such request (INVALID_DEVICE_REQUEST) */
  PTKIT_REASON_INTERRUPT = 17,  /* another driver has the interrupt of performance monitoring (DEVICE_BUSY) */
  PTKIT_REASON_WAITS = 18,      /* another PTKIT_WINDOWS_WAIT of the session waits (DEVICE_BUSY) */
  PTKIT_REASON_ERROR = 19,      /* the trace unit reported an error (IO_DEVICE_ERROR) */
  PTKIT_REASON_DENIED = 20      /* ... and a hypervisor is there, which shows the unit and denies its use */
};

struct ptkit_windows_refusal {
  uint32_t request; /* IOCTL of the last request that was refused, or 0 */
  uint32_t reason;  /* PTKIT_REASON_* */
  uint32_t field;   /* offset in the request's input */
  uint32_t cpu;     /* or 0 */
};

/* ptkit_windows_query.system */
#define PTKIT_SYSTEM_HYPERVISOR (1U << 0) /* CPUID says so */
#define PTKIT_SYSTEM_VBS (1U << 1)        /* virtualization-based security is on: HVCI among others */
#define PTKIT_SYSTEM_KVA_SHADOW (1U << 2) /* user code has page tables of its own */
#define PTKIT_SYSTEM_INTERRUPTS (1U << 3) /* the driver has the interrupt of performance monitoring */
#define PTKIT_SYSTEM_RE_ARMS (1U << 4)    /* ... again and again; otherwise a timer does its work */

struct ptkit_windows_query {
  struct ptkit_query query;
  uint32_t system; /* PTKIT_SYSTEM_* */
  uint32_t reason; /* why nothing can be traced, or 0 */
};

/* ptkit_config.target */
#define PTKIT_TARGET_AFFINITY 3 /* ptkit_windows_config.affinity */

#define PTKIT_MOST_GROUPS 32

struct ptkit_windows_config {
  struct ptkit_config config;           /* config.refused is not written: see PTKIT_WINDOWS_REFUSAL */
  uint64_t affinity[PTKIT_MOST_GROUPS]; /* processors of each group, with
                                           PTKIT_TARGET_AFFINITY */
  /*
   * A kernel driver to trace, by the name of its file, such as "ntfs.sys"; zeros fill it up.
   * Its image is one more range to filter by, after ranges[range_count - 1].
   */
  char module[64];
  uint64_t module_base;  /* out: where it is; 0: no module was named */
  uint64_t module_bytes; /* out */
};

struct ptkit_windows_buffer {
  uint32_t cpu; /* in */
  uint16_t group;
  uint8_t number; /* in the group */
  uint8_t zero;
  /* Bytes that are filled: ptkit_config.buffer_bytes, less what a record does not fit in.
     Positions and heads are counted in turns of so many bytes. */
  uint64_t data_bytes;
  uint64_t sideband_bytes;
};

#define PTKIT_READ_DATA 0
#define PTKIT_READ_SIDEBAND 1 /* `cpu` is 0 */

/* Copies [offset, offset + bytes) to the output; it may wrap at the end of the buffer. */
struct ptkit_windows_read {
  uint32_t cpu;
  uint32_t what;   /* PTKIT_READ_* */
  uint64_t offset; /* less than the size of the buffer */
  uint64_t bytes;  /* at most the size of the buffer, and of the output */
};

/* PTKIT_WINDOWS_WAIT ends when one of these happened since the last one. */
#define PTKIT_EVENT_DATA (1U << 0) /* with wake-ups: half of wake_up_bytes were written, or tracing ended */
#define PTKIT_EVENT_FULL (1U << 1) /* a processor waits for PTKIT_CONSUME, or its trace ended */
#define PTKIT_EVENT_SIDEBAND                                                                     \
  (1U << 2)                           /* a quarter of the ring was written, or a record was lost \
                                       */
#define PTKIT_EVENT_ENDED (1U << 3)   /* the traced process has ended */
#define PTKIT_EVENT_CLEARED (1U << 4) /* PTKIT_STATUS_CLEARED */
#define PTKIT_EVENT_STOPPED (1U << 5) /* PTKIT_STOP was given */

struct ptkit_windows_wait {
  uint32_t events; /* out: PTKIT_EVENT_* */
  uint32_t zero;
};

/* The input of PTKIT_WINDOWS_SNAPSHOT; the output is struct ptkit_windows_newest and as many bytes
 * as fit. */
struct ptkit_windows_snapshot {
  uint32_t cpu;
  uint32_t zero;
};

struct ptkit_windows_newest {
  uint32_t flags; /* PTKIT_STATUS_* while tracing was paused */
  uint32_t zero;
  uint64_t position; /* where in the buffer the newest byte ends */
  uint64_t bytes;    /* that follow, the oldest first */
};

/* The stack of last branch records of a processor, the newest first. */
struct ptkit_windows_branch {
  uint64_t from;
  uint64_t to;
  uint64_t info;
};

struct ptkit_windows_lbr {
  uint32_t cpu; /* in */
  uint32_t count;
  uint32_t architectural; /* IA32_LBR_*, otherwise MSR_LASTBRANCH_* */
  uint32_t enabled;       /* whether it records; this driver never starts it */
  struct ptkit_windows_branch branches[32];
};

/*
 * Records of the sideband besides those of ptkit_abi.h. SWITCH and EXEC are not written. FORK of a
 * process (tid 0) has its page tables. `cpu` is that of the notification, and times are those of the
 * notification.
 */
#define PTKIT_RECORD_IMAGE 16 /* an image was mapped: struct ptkit_record_image */

#define PTKIT_IMAGE_KERNEL (1U << 0)
#define PTKIT_IMAGE_BEFORE                                              \
  (1U << 1) /* before PTKIT_START; the record has the time of the start \
             */

struct ptkit_record_image {
  struct ptkit_record record; /* pid: of the process; 0: of the kernel */
  uint64_t address;
  uint64_t bytes;
  uint32_t flags;      /* PTKIT_IMAGE_* */
  uint32_t path_bytes; /* of UTF-16, which follow; record.size is rounded up */
};

#define PTKIT_WINDOWS_CODE(number, method) \
  CTL_CODE(0x8be0U, 0x800 + (number), method, FILE_READ_DATA | FILE_WRITE_DATA)

/* out: struct ptkit_windows_query */
#define PTKIT_WINDOWS_QUERY PTKIT_WINDOWS_CODE(0, METHOD_BUFFERED)
/* in and out: struct ptkit_windows_config */
#define PTKIT_WINDOWS_CONFIGURE PTKIT_WINDOWS_CODE(1, METHOD_BUFFERED)
/* in and out: struct ptkit_windows_buffer */
#define PTKIT_WINDOWS_BUFFER PTKIT_WINDOWS_CODE(2, METHOD_BUFFERED)
#define PTKIT_WINDOWS_START PTKIT_WINDOWS_CODE(3, METHOD_BUFFERED)
#define PTKIT_WINDOWS_STOP PTKIT_WINDOWS_CODE(4, METHOD_BUFFERED)
#define PTKIT_WINDOWS_PAUSE PTKIT_WINDOWS_CODE(5, METHOD_BUFFERED)
#define PTKIT_WINDOWS_RESUME PTKIT_WINDOWS_CODE(6, METHOD_BUFFERED)
/* in and out: struct ptkit_status */
#define PTKIT_WINDOWS_STATUS PTKIT_WINDOWS_CODE(7, METHOD_BUFFERED)
/* in: struct ptkit_windows_snapshot */
#define PTKIT_WINDOWS_SNAPSHOT PTKIT_WINDOWS_CODE(8, METHOD_OUT_DIRECT)
/* in: struct ptkit_consume; with sideband_tail, `cpu` may be any of the session */
#define PTKIT_WINDOWS_CONSUME PTKIT_WINDOWS_CODE(9, METHOD_BUFFERED)
/* in: struct ptkit_windows_read; out: the bytes */
#define PTKIT_WINDOWS_READ PTKIT_WINDOWS_CODE(10, METHOD_OUT_DIRECT)
/* out: struct ptkit_windows_wait. Pending until an event; CancelIoEx() and PTKIT_WINDOWS_STOP end
 * it. */
#define PTKIT_WINDOWS_WAIT PTKIT_WINDOWS_CODE(11, METHOD_BUFFERED)
/* out: struct ptkit_windows_refusal */
#define PTKIT_WINDOWS_REFUSAL PTKIT_WINDOWS_CODE(12, METHOD_BUFFERED)
/* in and out: struct ptkit_windows_lbr */
#define PTKIT_WINDOWS_LBR PTKIT_WINDOWS_CODE(13, METHOD_BUFFERED)

#endif /* PTKIT_WINDOWS_H */
