// SPDX-License-Identifier: MIT
#include "program.h"

#include "model.h"

#define OUTSIDE_BASE 0xfffff80000100000ULL

static uint8_t code[MODEL_PROGRAM_IMAGE][PROGRAM_BYTES];
static struct model_block random_blocks[MODEL_PROGRAM_IMAGE][PROGRAM_BLOCKS];
static struct model_block image_blocks[PROGRAM_MOST_BLOCKS];
static struct program programs[MODEL_PROGRAMS];
static struct model_thread threads[MODEL_THREADS];

/* xorshift64* */
static uint32_t below(uint64_t* state, uint32_t limit) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return (uint32_t)((*state * 0x2545f4914f6cdd1dULL >> 32) % limit);
}

static uint32_t put(uint8_t* to, const uint8_t* bytes, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) to[i] = bytes[i];
  return count;
}

/* NOPs of different lengths; returns how many. */
static uint32_t fill(uint8_t* to, uint32_t bytes, uint32_t bits, uint64_t* random) {
  static const uint8_t nops[2][6][6] = {{{0x90},
                                         {0x66, 0x90},
                                         {0x0f, 0x1f, 0x00},
                                         {0x0f, 0x1f, 0x40, 0x00},
                                         {0x0f, 0x1f, 0x44, 0x00, 0x00},
                                         {0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00}},
                                        {{0x90},
                                         {0x66, 0x90},
                                         {0x0f, 0x1f, 0x00},
                                         {0x0f, 0x1f, 0x40, 0x00},
                                         {0x0f, 0x1f, 0x80, 0x00, 0x00},
                                         {0x66, 0x0f, 0x1f, 0x80, 0x00, 0x00}}};
  uint32_t count = 0;
  for (uint32_t done = 0; done < bytes; count++) {
    uint32_t length = 1 + below(random, 6);
    if (length > bytes - done) length = bytes - done;
    done += put(to + done, nops[bits == 16][length - 1], length);
  }
  return count;
}

/* The distance has 2 bytes in 16-bit code, 4 otherwise. */
static void put_relative(uint8_t* to, const uint8_t* opcode, uint32_t opcode_bytes, uint32_t bits,
                         int32_t distance) {
  uint32_t at = put(to, opcode, opcode_bytes);
  for (int shift = 0; shift < (bits == 16 ? 16 : 32); shift += 8)
    to[at++] = (uint8_t)((uint32_t)distance >> shift);
}

/* The last instruction of a block, which ends where the next one begins. */
static void put_end(uint8_t* to, const struct model_block* block, uint32_t number, uint32_t bits) {
  static const uint8_t conditional[] = {0x0f, 0x85}, jump[] = {0xe9}, call[] = {0xe8};
  static const uint8_t ret[] = {0xc3}, jump_any[] = {0xff, 0xe0}, call_any[] = {0xff, 0xd0};
  int32_t distance = ((int32_t)block->target - (int32_t)number - 1) * PROGRAM_BLOCK_BYTES;
  switch (block->end) {
    case BLOCK_CONDITIONAL:
      put_relative(to, conditional, 2, bits, distance);
      break;
    case BLOCK_JUMP:
      put_relative(to, jump, 1, bits, distance);
      break;
    case BLOCK_CALL:
      put_relative(to, call, 1, bits, distance);
      break;
    case BLOCK_RETURN:
      put(to, ret, 1);
      break;
    case BLOCK_JUMP_ANY:
      put(to, jump_any, 2);
      break;
    case BLOCK_CALL_ANY:
      put(to, call_any, 2);
      break;
    default:
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

static void make_block(uint32_t program, uint32_t number, uint64_t base, uint32_t bits, uint64_t* random) {
  static const uint32_t end_bytes[2][7] = {{0, 6, 5, 5, 1, 2, 2}, {0, 4, 3, 3, 1, 2, 2}};
  struct model_block* block = &random_blocks[program][number];
  uint8_t* to = code[program] + number * PROGRAM_BLOCK_BYTES;
  *block = (struct model_block){.ip = base + number * PROGRAM_BLOCK_BYTES, .is_entry = 1};
  block->after = (number + 1) % PROGRAM_BLOCKS;
  block->end = number + 1 == PROGRAM_BLOCKS ? BLOCK_JUMP : random_end(random);
  block->target = below(random, PROGRAM_BLOCKS);
  /* A call of the next instruction is no call to the trace unit. */
  if (block->target == number + 1) block->target = 0;
  uint32_t filled = PROGRAM_BLOCK_BYTES - end_bytes[bits == 16][block->end];
  block->end_ip = block->ip + filled;
  block->instructions = fill(to, filled, bits, random) + (block->end != BLOCK_FALLS);
  put_end(to + filled, block, number, bits);
}

static void make_program(uint32_t number, uint64_t base, uint32_t bits, uint64_t random) {
  programs[number] = (struct program){base, bits, code[number], random_blocks[number], PROGRAM_BLOCKS};
  for (uint32_t block = 0; block < PROGRAM_BLOCKS; block++) make_block(number, block, base, bits, &random);
}

static uint32_t program_of_thread(uint32_t thread) {
  switch (thread) {
    case MODEL_REAL_THREAD:
      return MODEL_PROGRAM_REAL;
    case MODEL_VIRTUAL_8086_THREAD:
      return MODEL_PROGRAM_VIRTUAL_8086;
    case MODEL_IMAGE_THREAD:
      return MODEL_PROGRAM_IMAGE;
    default:
      if (thread >= MODEL_KERNEL_THREAD) return MODEL_PROGRAM_KERNEL;
      return thread < MODEL_OTHER_THREAD ? MODEL_PROGRAM_USER : MODEL_PROGRAM_OTHER;
  }
}

static bool is_user_program(uint32_t number) {
  return number == MODEL_PROGRAM_USER || number == MODEL_PROGRAM_OTHER ||
         number == MODEL_PROGRAM_VIRTUAL_8086;
}

void programs_begin(void) {
  make_program(MODEL_PROGRAM_USER, PROGRAM_USER_BASE, 64, 0x9e3779b97f4a7c15ULL);
  make_program(MODEL_PROGRAM_KERNEL, PROGRAM_KERNEL_BASE, 64, 0xd1b54a32d192ed03ULL);
  make_program(MODEL_PROGRAM_REAL, PROGRAM_REAL_BASE, 16, 0x94d049bb133111ebULL);
  make_program(MODEL_PROGRAM_VIRTUAL_8086, PROGRAM_VIRTUAL_8086_BASE, 16, 0xbf58476d1ce4e5b9ULL);
  make_program(MODEL_PROGRAM_OTHER, PROGRAM_USER_BASE, 64, 0x8cb92ba72f3d8dd7ULL);
  programs[MODEL_PROGRAM_IMAGE] = (struct program){.bits = 64, .blocks = image_blocks};
  for (uint32_t i = 0; i < MODEL_THREADS; i++) {
    uint32_t program = program_of_thread(i);
    threads[i] =
        (struct model_thread){.program = &programs[program], .cpl = is_user_program(program) ? 3 : 0};
    threads[i].random = 0x632be59bd9b4e019ULL * (i + 1);
    if (program == MODEL_PROGRAM_IMAGE) threads[i].block = MODEL_OUTSIDE;
    threads[i].outside_ip = OUTSIDE_BASE;
  }
}

const struct program* program_of(uint32_t number) {
  return number < MODEL_PROGRAMS ? &programs[number] : NULL;
}

bool program_load(uint64_t base, uint32_t first, const struct model_block* blocks, uint32_t count) {
  struct program* image = &programs[MODEL_PROGRAM_IMAGE];
  if (first > PROGRAM_MOST_BLOCKS || count > PROGRAM_MOST_BLOCKS - first) return false;
  for (uint32_t i = 0; i < count; i++) image_blocks[first + i] = blocks[i];
  image->base = base;
  image->count = first + count;
  return true;
}

struct model_thread* thread_of(uint32_t number) {
  return number < MODEL_THREADS ? &threads[number] : NULL;
}

static uint64_t address_of(const struct model_thread* thread, uint32_t block) {
  return block < thread->program->count ? thread->program->blocks[block].ip : thread->outside_ip;
}

static void push_call(struct model_thread* thread, uint32_t block) {
  thread->calls[thread->call_top] = block;
  thread->call_top = (thread->call_top + 1) % THREAD_CALLS;
  if (thread->call_count < THREAD_CALLS) thread->call_count++;
}

/* False: there was no call; the return leads to some block, or outside the image. */
static bool pop_call(struct model_thread* thread, uint32_t* block) {
  if (thread->call_count == 0) return false;
  thread->call_count--;
  thread->call_top = (thread->call_top + THREAD_CALLS - 1) % THREAD_CALLS;
  *block = thread->calls[thread->call_top];
  return true;
}

/* The next entry from a block on. */
static uint32_t entry_from(const struct program* program, uint32_t block) {
  for (uint32_t i = 0; i < program->count && !program->blocks[block].is_entry; i++)
    block = (block + 1) % program->count;
  return block;
}

static uint32_t leave_image(struct model_thread* thread) {
  thread->outside_ip = OUTSIDE_BASE + 16 * below(&thread->random, 65536);
  return MODEL_OUTSIDE;
}

/* Leads to another block than the one behind it, always. */
static uint32_t go_far(struct model_thread* thread, struct model_unit* unit, const struct model_block* block,
                       uint32_t any) {
  bool is_call = block->end == BLOCK_CALL || block->end == BLOCK_CALL_ANY || block->end == BLOCK_CALL_OUTSIDE;
  bool is_direct = block->end == BLOCK_JUMP || block->end == BLOCK_CALL;
  bool is_outside = block->end == BLOCK_JUMP_OUTSIDE || block->end == BLOCK_CALL_OUTSIDE;
  uint32_t next = is_direct    ? block->target
                  : is_outside ? leave_image(thread)
                               : entry_from(thread->program, any);
  if (is_call) push_call(thread, block->after);
  if (is_direct)
    model_direct(unit, is_call, address_of(thread, next));
  else
    model_indirect(unit, is_call, address_of(thread, next));
  return next;
}

static uint32_t go_back(struct model_thread* thread, struct model_unit* unit, uint32_t any) {
  bool is_image = thread->program->code == NULL;
  uint32_t next;
  bool matched = pop_call(thread, &next);
  if (!matched) next = is_image ? leave_image(thread) : entry_from(thread->program, any);
  model_return(unit, matched, address_of(thread, next));
  return next;
}

/* The block that follows; its packets. */
static uint32_t finish(struct model_thread* thread, struct model_unit* unit,
                       const struct model_block* block) {
  uint32_t any = below(&thread->random, thread->program->count);
  bool taken = any & 1;
  uint32_t next;
  switch (block->end) {
    case BLOCK_FALLS:
      return block->after;
    case BLOCK_CONDITIONAL:
      next = taken ? block->target : block->after;
      model_conditional(unit, taken, address_of(thread, next));
      return next;
    case BLOCK_RETURN:
      return go_back(thread, unit, any);
    default:
      return go_far(thread, unit, block, any);
  }
}

static bool is_taken(const struct model_block* block, uint32_t next) {
  if (block->end == BLOCK_FALLS) return false;
  return block->end != BLOCK_CONDITIONAL || next != block->after;
}

/* Code that tests do not have: it returns to the image, or calls it. */
static uint32_t step_outside(struct model_thread* thread, struct model_unit* unit) {
  uint32_t next;
  uint32_t any = below(&thread->random, thread->program->count);
  if (!pop_call(thread, &next)) next = entry_from(thread->program, any);
  model_indirect(unit, false, address_of(thread, next));
  return next;
}

static uint32_t step_block(struct model_thread* thread, struct model_unit* unit, uint64_t* entry) {
  const struct model_block* block = &thread->program->blocks[thread->block];
  uint64_t index = unit->stored;
  uint32_t next = finish(thread, unit, block);
  model_pass(block->instructions);
  if (!is_taken(block, next)) return next;
  model_store_branch(unit, thread->cpl, block->end_ip, address_of(thread, next));
  *entry |= MODEL_LOG_BRANCH | (unit->stored != index ? MODEL_LOG_STORED : 0);
  return next;
}

uint64_t thread_step(struct model_thread* thread, struct model_unit* unit) {
  uint64_t entry = address_of(thread, thread->block) & ~(7ULL << 61);
  uint64_t dropped = unit->dropped_bytes;
  unit->ip = address_of(thread, thread->block);
  model_begin_block(unit);
  bool traced = unit->packet_en;
  bool is_outside = thread->block >= thread->program->count;
  uint32_t next = is_outside ? step_outside(thread, unit) : step_block(thread, unit, &entry);
  if (traced && unit->dropped_bytes == dropped) entry |= MODEL_LOG_TRACED;
  thread->block = next;
  unit->ip = address_of(thread, next);
  return entry;
}
