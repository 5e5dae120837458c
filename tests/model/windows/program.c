// SPDX-License-Identifier: MIT
#include "program.h"

#include "model.h"

static struct program programs[2];
static struct model_thread threads[MODEL_THREADS];

/* xorshift64* */
static uint32_t below(uint64_t* state, uint32_t limit) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return (uint32_t)((*state * 0x2545f4914f6cdd1dULL >> 32) % limit);
}

static uint32_t put(uint8_t* place, const uint8_t* bytes, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) place[i] = bytes[i];
  return count;
}

/* NOPs of different lengths; returns how many. */
static uint32_t fill(uint8_t* place, uint32_t bytes, uint64_t* random) {
  static const uint8_t nops[6][6] = {{0x90},
                                     {0x66, 0x90},
                                     {0x0f, 0x1f, 0x00},
                                     {0x0f, 0x1f, 0x40, 0x00},
                                     {0x0f, 0x1f, 0x44, 0x00, 0x00},
                                     {0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00}};
  uint32_t count = 0;
  for (uint32_t done = 0; done < bytes; count++) {
    uint32_t length = 1 + below(random, 6);
    if (length > bytes - done) length = bytes - done;
    done += put(place + done, nops[length - 1], length);
  }
  return count;
}

static uint32_t put_relative(uint8_t* place, const uint8_t* opcode, uint32_t opcode_bytes, int32_t distance) {
  uint32_t at = put(place, opcode, opcode_bytes);
  for (int shift = 0; shift < 32; shift += 8) place[at++] = (uint8_t)(distance >> shift);
  return at;
}

/* The last instruction of a block, which ends where the next one begins. */
static void put_end(struct program* program, uint32_t number) {
  static const uint8_t conditional[] = {0x0f, 0x85}, jump[] = {0xe9}, call[] = {0xe8};
  static const uint8_t ret[] = {0xc3}, jump_any[] = {0xff, 0xe0}, call_any[] = {0xff, 0xd0};
  const struct block* block = &program->blocks[number];
  uint8_t* place = program->code + block->end_byte;
  int32_t distance = ((int32_t)block->target - (int32_t)number - 1) * PROGRAM_BLOCK_BYTES;
  switch (block->end) {
    case BLOCK_CONDITIONAL:
      put_relative(place, conditional, 2, distance);
      break;
    case BLOCK_JUMP:
      put_relative(place, jump, 1, distance);
      break;
    case BLOCK_CALL:
      put_relative(place, call, 1, distance);
      break;
    case BLOCK_RETURN:
      put(place, ret, 1);
      break;
    case BLOCK_JUMP_ANY:
      put(place, jump_any, 2);
      break;
    case BLOCK_CALL_ANY:
      put(place, call_any, 2);
      break;
    case BLOCK_FALLS:
      break;
  }
}

static enum block_end random_end(uint64_t* random) {
  static const enum block_end ends[16] = {
      BLOCK_FALLS,       BLOCK_FALLS,       BLOCK_CONDITIONAL, BLOCK_CONDITIONAL,
      BLOCK_CONDITIONAL, BLOCK_CONDITIONAL, BLOCK_CONDITIONAL, BLOCK_CONDITIONAL,
      BLOCK_CONDITIONAL, BLOCK_JUMP,        BLOCK_CALL,        BLOCK_CALL,
      BLOCK_RETURN,      BLOCK_RETURN,      BLOCK_JUMP_ANY,    BLOCK_CALL_ANY};
  return ends[below(random, 16)];
}

static void make_program(struct program* program, uint64_t base, uint64_t random) {
  static const uint32_t end_bytes[] = {0, 6, 5, 5, 1, 2, 2};
  program->base = base;
  for (uint32_t number = 0; number < PROGRAM_BLOCKS; number++) {
    struct block* block = &program->blocks[number];
    block->end = number + 1 == PROGRAM_BLOCKS ? BLOCK_JUMP : random_end(&random);
    block->target = below(&random, PROGRAM_BLOCKS);
    /* A call of the next instruction is no call to the trace unit. */
    if (block->target == number + 1) block->target = 0;
    block->end_byte = (number + 1) * PROGRAM_BLOCK_BYTES - end_bytes[block->end];
    block->instructions = fill(program->code + number * PROGRAM_BLOCK_BYTES,
                               PROGRAM_BLOCK_BYTES - end_bytes[block->end], &random) +
                          (block->end != BLOCK_FALLS);
    put_end(program, number);
  }
}

void programs_begin(void) {
  make_program(&programs[0], PROGRAM_USER_BASE, 0x9e3779b97f4a7c15ULL);
  make_program(&programs[1], PROGRAM_KERNEL_BASE, 0xd1b54a32d192ed03ULL);
  for (uint32_t i = 0; i < MODEL_THREADS; i++) {
    threads[i] = (struct model_thread){0};
    threads[i].program = &programs[i >= MODEL_KERNEL_THREAD];
    threads[i].cpl = i >= MODEL_KERNEL_THREAD ? 0 : 3;
    threads[i].random = 0x632be59bd9b4e019ULL * (i + 1);
  }
}

const struct program* program_of(bool kernel) { return &programs[kernel]; }

struct model_thread* thread_of(uint32_t number) {
  return number < MODEL_THREADS ? &threads[number] : NULL;
}

static uint64_t address_of(const struct model_thread* thread, uint32_t block) {
  return thread->program->base + (uint64_t)block * PROGRAM_BLOCK_BYTES;
}

static void push_call(struct model_thread* thread, uint32_t block) {
  thread->calls[thread->call_top] = block;
  thread->call_top = (thread->call_top + 1) % THREAD_CALLS;
  if (thread->call_count < THREAD_CALLS) thread->call_count++;
}

/* False: there was no call; the return leads to some block. */
static bool pop_call(struct model_thread* thread, uint32_t* block) {
  if (thread->call_count == 0) return false;
  thread->call_count--;
  thread->call_top = (thread->call_top + THREAD_CALLS - 1) % THREAD_CALLS;
  *block = thread->calls[thread->call_top];
  return true;
}

/* The block that follows; its packets. */
static uint32_t finish(struct model_thread* thread, struct model_unit* unit, const struct block* block) {
  uint32_t after = (thread->block + 1) % PROGRAM_BLOCKS;
  uint32_t any = below(&thread->random, PROGRAM_BLOCKS);
  uint32_t next = block->target;
  bool matched;
  switch (block->end) {
    case BLOCK_FALLS:
      next = after;
      model_direct(unit, false, address_of(thread, next));
      break;
    case BLOCK_CONDITIONAL:
      next = any & 1 ? block->target : after;
      model_conditional(unit, any & 1, address_of(thread, next));
      break;
    case BLOCK_JUMP:
      model_direct(unit, false, address_of(thread, next));
      break;
    case BLOCK_CALL:
      push_call(thread, after);
      model_direct(unit, true, address_of(thread, next));
      break;
    case BLOCK_RETURN:
      next = any;
      matched = pop_call(thread, &next);
      model_return(unit, matched, address_of(thread, next));
      break;
    case BLOCK_JUMP_ANY:
      next = any;
      model_indirect(unit, false, address_of(thread, next));
      break;
    case BLOCK_CALL_ANY:
      next = any;
      push_call(thread, after);
      model_indirect(unit, true, address_of(thread, next));
      break;
  }
  return next;
}

static bool is_taken(const struct model_thread* thread, const struct block* block, uint32_t next) {
  if (block->end == BLOCK_FALLS) return false;
  return block->end != BLOCK_CONDITIONAL || next != (thread->block + 1) % PROGRAM_BLOCKS;
}

uint64_t thread_step(struct model_thread* thread, struct model_unit* unit) {
  const struct block* block = &thread->program->blocks[thread->block];
  uint64_t entry = address_of(thread, thread->block) & ~(7ULL << 61);
  uint64_t dropped = unit->dropped_bytes;
  unit->ip = address_of(thread, thread->block);
  model_begin_block(unit);
  bool traced = unit->packet_en;
  uint32_t next = finish(thread, unit, block);
  bool taken = is_taken(thread, block, next);
  uint64_t index = unit->stored;
  if (taken)
    model_store_branch(unit, thread->cpl, thread->program->base + block->end_byte, address_of(thread, next));
  if (traced && unit->dropped_bytes == dropped) entry |= MODEL_LOG_TRACED;
  if (taken) entry |= MODEL_LOG_BRANCH;
  if (unit->stored != index) entry |= MODEL_LOG_STORED;
  thread->block = next;
  unit->ip = address_of(thread, next);
  model_pass(block->instructions);
  return entry;
}
