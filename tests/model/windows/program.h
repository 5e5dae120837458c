/* SPDX-License-Identifier: MIT */
/*
 * Programs of random blocks, in real code for x86-64, and threads that execute them with random outcomes. All
 * of it follows from the number of the program or thread.
 */
#ifndef PTKIT_TESTS_MODEL_WINDOWS_PROGRAM_H
#define PTKIT_TESTS_MODEL_WINDOWS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROGRAM_BLOCKS 512
#define PROGRAM_BLOCK_BYTES 32
#define PROGRAM_BYTES (PROGRAM_BLOCKS * PROGRAM_BLOCK_BYTES)
#define PROGRAM_USER_BASE 0x140001000ULL
#define PROGRAM_KERNEL_BASE 0xfffff80012340000ULL
#define THREAD_CALLS 64 /* that it returns from; what was called before is forgotten */

enum block_end {
  BLOCK_FALLS,
  BLOCK_CONDITIONAL,
  BLOCK_JUMP,
  BLOCK_CALL,
  BLOCK_RETURN,
  BLOCK_JUMP_ANY,
  BLOCK_CALL_ANY
};

struct program {
  uint64_t base;
  uint8_t code[PROGRAM_BYTES];
  struct block {
    enum block_end end;
    uint32_t target;   /* block */
    uint32_t end_byte; /* where its last instruction begins */
    uint32_t instructions;
  } blocks[PROGRAM_BLOCKS];
};

struct model_thread {
  const struct program* program;
  uint32_t cpl;
  uint32_t cpu; /* that executed it last */
  uint64_t cr3;
  uint32_t block; /* that is next */
  uint64_t random;
  uint32_t calls[THREAD_CALLS]; /* blocks to return to; a ring */
  uint32_t call_count;
  uint32_t call_top;
};

struct model_unit;

void programs_begin(void);
const struct program* program_of(bool kernel);
struct model_thread* thread_of(uint32_t number);
/* Executes one block on the processor that runs the thread; the log entry. */
uint64_t thread_step(struct model_thread* thread, struct model_unit* unit);

#endif /* PTKIT_TESTS_MODEL_WINDOWS_PROGRAM_H */
