/* SPDX-License-Identifier: MIT */
/* Requests to the probe driver. */
#ifndef PTKIT_TESTS_WINDOWS_PROBE_H
#define PTKIT_TESTS_WINDOWS_PROBE_H

#define PROBE_NAME "PtkitProbe"
#define PROBE_CODE(number) \
  ((ULONG)CTL_CODE(0x8000U, 0x900U + (number), METHOD_BUFFERED, FILE_READ_DATA | FILE_WRITE_DATA))

/* In: the name of a call of the kernel, in ASCII with its final zero. Out: enum probe_presence. */
#define PROBE_FIND PROBE_CODE(0)
/* In: enum probe_call. Out: whether the call does what its documentation says. */
#define PROBE_CALL PROBE_CODE(1)
/* Out: calls of routines that PROBE_CALL registered. */
#define PROBE_NOTIFIED PROBE_CODE(2)
/* Pends until the handle is closed. */
#define PROBE_PEND PROBE_CODE(3)
/* Out: how many IRPs of PROBE_PEND IRP_MJ_CLEANUP ended. */
#define PROBE_CLEANED PROBE_CODE(4)

enum probe_presence { PROBE_ABSENT, PROBE_STUB, PROBE_PRESENT };

enum probe_call {
  PROBE_DPC,        /* a queued DPC runs */
  PROBE_TIMER_DPC,  /* a timer queues its DPC */
  PROBE_TIMER,      /* a timer is signalled */
  PROBE_THREAD,     /* a system thread runs, and ends */
  PROBE_WORK_ITEM,  /* a work item runs */
  PROBE_PAGES,      /* MmAllocatePagesForMdl gives pages with numbers that can be mapped */
  PROBE_CONTIGUOUS, /* MmAllocateContiguousMemorySpecifyCache gives memory */
  PROBE_PHYSICAL,   /* MmGetPhysicalAddress gives an address below 2^46 */
  PROBE_AFFINITY,   /* KeSetSystemAffinityThreadEx moves the thread */
  PROBE_IRQL,       /* KfRaiseIrql returns the IRQL before */
  PROBE_ATTACH,     /* KeStackAttachProcess changes the current process */
  PROBE_PROCESSES,  /* PsSetCreateProcessNotifyRoutineEx registers */
  PROBE_THREADS,    /* PsSetCreateThreadNotifyRoutine registers */
  PROBE_IMAGES,     /* PsSetLoadImageNotifyRoutine registers */
  PROBE_CALLS
};

#endif /* PTKIT_TESTS_WINDOWS_PROBE_H */
