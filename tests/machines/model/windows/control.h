/* SPDX-License-Identifier: MIT */
/*
 * Requests of tests to the model, through the device of the test build: any handle will do. <winioctl.h> or
 * <ntddk.h> is included before.
 */
#ifndef PTKIT_TESTS_MODEL_WINDOWS_CONTROL_H
#define PTKIT_TESTS_MODEL_WINDOWS_CONTROL_H

#include <stdint.h>

#define MODEL_CPUS 4
#define MODEL_NO_CPU UINT32_MAX
#define MODEL_CODE_REQUEST(number) \
  ((uint32_t)CTL_CODE(0x8be1U, 0xa00U + (number), METHOD_BUFFERED, FILE_READ_DATA | FILE_WRITE_DATA))

#define MODEL_SET MODEL_CODE_REQUEST(0)           /* in: struct model_set */
#define MODEL_REGISTERS MODEL_CODE_REQUEST(1)     /* in: uint32_t cpu; out: struct model_registers */
#define MODEL_PUT_REGISTERS MODEL_CODE_REQUEST(2) /* in: struct model_registers */
#define MODEL_EXECUTE MODEL_CODE_REQUEST(3)       /* in: struct model_execute; out: uint64_t[], the log */
#define MODEL_PROGRAM \
  MODEL_CODE_REQUEST(4) /* in: uint32_t, MODEL_PROGRAM_*; out: struct model_program and the code */
#define MODEL_COUNTS MODEL_CODE_REQUEST(5) /* out: struct model_counts */
#define MODEL_TELL MODEL_CODE_REQUEST(6)   /* in: struct model_tell */
#define MODEL_RESET MODEL_CODE_REQUEST(7)  /* registers, parameters and threads as at the beginning */
#define MODEL_LOAD MODEL_CODE_REQUEST(8)   /* in: struct model_load and blocks of the image */

/* `cpu` of model_set is MODEL_NO_CPU: of all processors. */
enum model_parameter {
  MODEL_CPUID_7_EBX,
  MODEL_CPUID_14_EBX,
  MODEL_CPUID_14_ECX,
  MODEL_CPUID_14_1_EAX,
  MODEL_CPUID_14_1_EBX,
  MODEL_CPUID_1_ECX,
  MODEL_CPUID_1_EDX,
  MODEL_CPUID_WORDS,               /* the parameters from here on are not of one processor */
  MODEL_FAULT = MODEL_CPUID_WORDS, /* the access of a register with this number, from 1 on, faults */
  MODEL_FAULT_CTL,                 /* 1 + the processor on which writes of CTL and DEBUGCTL fault; 0: none */
  MODEL_SWALLOW, /* 1: another handler acknowledges interrupts; 2: they are not delivered either */
  MODEL_CANNOT_ARM,
  MODEL_NO_INTERRUPTS, /* another driver has them */
  MODEL_SYSTEM,        /* PTKIT_SYSTEM_* */
  MODEL_DENIES,        /* TraceEn sets STATUS.Error, as below Hyper-V */
  MODEL_MISC_ENABLE,
  MODEL_DEAD_PROCESS,   /* has no page tables */
  MODEL_ALLOCATIONS,    /* that succeed until one fails; -1: all */
  MODEL_UNPRIVILEGED,   /* the client */
  MODEL_CLEAR_TRACE_EN, /* of the processor, now: as VMXON does it */
  MODEL_PARAMETERS
};

struct model_set {
  uint32_t parameter; /* enum model_parameter */
  uint32_t cpu;
  uint64_t value;
};

struct model_registers {
  uint32_t cpu; /* in */
  uint32_t zero;
  uint64_t ctl;
  uint64_t status;
  uint64_t output_base;
  uint64_t mask_ptrs;
  uint64_t cr3_match;
  uint64_t addr[8];
  uint64_t debugctl;
  uint64_t ds_area;
};

/* Numbers of programs. */
#define MODEL_PROGRAM_USER 0
#define MODEL_PROGRAM_KERNEL 1
#define MODEL_PROGRAM_REAL 2
#define MODEL_PROGRAM_VIRTUAL_8086 3
#define MODEL_PROGRAM_OTHER 4 /* of another process, at the addresses of the user's */
#define MODEL_PROGRAM_IMAGE 5 /* has no code */
#define MODEL_PROGRAMS 6

/*
 * Threads of the model. Those before MODEL_OTHER_THREAD execute the user's program, those from there on the
 * other one, both at CPL 3. In real-address mode CPL is 0, in virtual-8086 mode it is 3.
 */
#define MODEL_THREADS 11
#define MODEL_OTHER_THREAD 4  /* and 5 */
#define MODEL_KERNEL_THREAD 6 /* and 7 */
#define MODEL_REAL_THREAD 8
#define MODEL_VIRTUAL_8086_THREAD 9
#define MODEL_IMAGE_THREAD 10

/* Executes blocks of a program on a processor. The log has the address of each one, and these bits. */
struct model_execute {
  uint32_t cpu;
  uint32_t thread;
  uint32_t blocks; /* as many as fit into the output at most */
  uint32_t zero;
  uint64_t cr3;
};
#define MODEL_LOG_TRACED (1ULL << 63) /* all of its packets were written */
#define MODEL_LOG_STORED (1ULL << 62) /* its branch was stored */
#define MODEL_LOG_BRANCH (1ULL << 61) /* it ends with a branch that was taken */
#define MODEL_LOG_IP(entry) ((uint64_t)((int64_t)((entry) << 3) >> 3))

enum block_end {
  BLOCK_FALLS,
  BLOCK_CONDITIONAL,
  BLOCK_JUMP,
  BLOCK_CALL,
  BLOCK_RETURN,
  BLOCK_JUMP_ANY,
  BLOCK_CALL_ANY,
  BLOCK_JUMP_OUTSIDE, /* as through an import: the callee returns to the caller's caller */
  BLOCK_CALL_OUTSIDE
};
#define MODEL_OUTSIDE UINT32_MAX

struct model_block {
  uint64_t ip;
  uint64_t end_ip; /* of its last instruction */
  uint32_t end;    /* enum block_end */
  uint32_t target; /* block */
  uint32_t after;  /* block behind the last instruction */
  uint32_t instructions;
  uint32_t is_entry; /* where indirect branches and code outside the image lead */
  uint32_t zero;
};

struct model_load {
  uint64_t base;
  uint32_t first; /* block */
  uint32_t count;
};

struct model_program {
  uint64_t base;
  uint64_t bytes;
};

struct model_counts {
  uint64_t tsc;
  uint64_t interrupts; /* delivered */
  uint64_t swallowed;
  uint64_t most_accesses; /* of registers in one interrupt */
  uint64_t dropped_bytes; /* for which there was no room */
  uint64_t strays;        /* bytes for addresses where there is no memory */
  uint32_t runs;          /* of memory, that the driver has */
  uint32_t mappings;
  uint32_t timers;
  uint32_t routines;
};

enum model_event { MODEL_TELL_PROCESS, MODEL_TELL_THREAD, MODEL_TELL_IMAGE, MODEL_TELL_POWER };

struct model_tell {
  uint32_t event; /* enum model_event */
  uint32_t begins;
  uint32_t pid;
  uint32_t tid; /* or the parent */
  uint64_t address;
  uint64_t bytes;
  uint32_t path_bytes;
  uint16_t path[128];
};

#endif /* PTKIT_TESTS_MODEL_WINDOWS_CONTROL_H */
