/* SPDX-License-Identifier: MIT */
/* Events of the traced program's schedule, in a file: it writes them, and etw_double.c delivers them. */
#ifndef PTKIT_TESTS_WINDOWS_RECORDER_EVENTS_H
#define PTKIT_TESTS_WINDOWS_RECORDER_EVENTS_H

#include <stdint.h>

enum event_kind {
  EVENT_SWITCH, /* on `cpu`, from thread `first` to thread `second` */
  EVENT_THREAD, /* process `first` has thread `second` */
  EVENT_UNLOAD, /* process `first` has unloaded `bytes` at `address` */
  EVENT_LOSS,   /* `first` events before this one */
  EVENT_CUT     /* a context switch with a payload that is too short */
};

struct event {
  uint32_t kind;
  uint32_t cpu;
  uint32_t first;
  uint32_t second;
  uint64_t tsc;
  uint64_t address;
  uint64_t bytes;
};

#endif /* PTKIT_TESTS_WINDOWS_RECORDER_EVENTS_H */
