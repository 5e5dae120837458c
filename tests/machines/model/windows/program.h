/* SPDX-License-Identifier: MIT */
/*
 * Programs and threads that execute them with random outcomes. Four programs consist of random blocks in real
 * code: of a process and of the kernel in 64-bit mode, and 16-bit code for real-address mode and for
 * virtual-8086 mode. All of it follows from the number of the program or thread. The fifth one is the image
 * of a driver that tests load (MODEL_LOAD).
 */
#ifndef PTKIT_TESTS_MODEL_WINDOWS_PROGRAM_H
#define PTKIT_TESTS_MODEL_WINDOWS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control.h"

#define PROGRAM_BLOCKS 512
#define PROGRAM_BLOCK_BYTES 32
#define PROGRAM_BYTES (PROGRAM_BLOCKS * PROGRAM_BLOCK_BYTES)
#define PROGRAM_USER_BASE 0x140001000ULL
#define PROGRAM_KERNEL_BASE 0xfffff80012340000ULL
#define PROGRAM_REAL_BASE 0x23460ULL /* linear, of the code segment: its offsets begin at 0 */
#define PROGRAM_VIRTUAL_8086_BASE 0x9000ULL
#define PROGRAM_MOST_BLOCKS 8192 /* of an image */
#define THREAD_CALLS 64          /* that it returns from; what was called before is forgotten */

struct program {
  uint64_t base;
  uint32_t bits;       /* of its code: 16 or 64 */
  const uint8_t* code; /* null: only the tests have it */
  const struct model_block* blocks;
  uint32_t count;
};

struct model_thread {
  const struct program* program;
  uint32_t cpl;
  uint32_t cpu; /* that executed it last */
  uint64_t cr3;
  uint32_t block;      /* that is next; MODEL_OUTSIDE: code outside the image */
  uint64_t outside_ip; /* of that code */
  uint64_t random;
  uint32_t calls[THREAD_CALLS]; /* blocks to return to; a ring */
  uint32_t call_count;
  uint32_t call_top;
};

struct model_unit;

void programs_begin(void);
/* Null: there is no such program. */
const struct program* program_of(uint32_t number);
/* Blocks of the image, from a number on; those with a higher number are gone. False: they do not fit. */
bool program_load(uint64_t base, uint32_t first, const struct model_block* blocks, uint32_t count);
struct model_thread* thread_of(uint32_t number);
/* Executes one block on the processor that runs the thread; the log entry. */
uint64_t thread_step(struct model_thread* thread, struct model_unit* unit);

#endif /* PTKIT_TESTS_MODEL_WINDOWS_PROGRAM_H */
