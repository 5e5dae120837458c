/* Requests of programs that trace with ptkit.ko. */
#ifndef PTKIT_TESTS_EMULATED_SESSION_H
#define PTKIT_TESTS_EMULATED_SESSION_H

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ptkit/ptkit_ioctl.h"

#define BUFFER_BYTES (4 << 20)
#define RING_BYTES (64 << 10)

static void must(int good, const char* what) {
  if (!good) {
    perror(what);
    exit(1);
  }
}

/* Writes the trace since the last call to the file; the offset at which the next call begins. */
static uint64_t read_on(int session, const unsigned char* mapped, int file, uint64_t tail) {
  struct ptkit_status status = {.cpu = 0};
  struct ptkit_consume consume = {.cpu = 0};

  must(ioctl(session, PTKIT_STATUS, &status) == 0, "PTKIT_STATUS");
  while (tail < status.head) {
    const uint64_t offset = tail % RING_BYTES;
    uint64_t part = status.head - tail;

    if (part > RING_BYTES - offset) part = RING_BYTES - offset;
    must(write(file, mapped + offset, part) == (ssize_t)part, "write");
    tail += part;
  }
  consume.tail = tail;
  must(ioctl(session, PTKIT_CONSUME, &consume) == 0, "PTKIT_CONSUME");
  return tail;
}

/* Reads whenever the driver wakes us up, until the child ends. */
static void read_until_end(int session, pid_t child, const char* path) {
  const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const unsigned char* mapped = mmap(NULL, RING_BYTES, PROT_READ, MAP_SHARED, session, 0);
  struct pollfd readable = {.fd = session, .events = POLLIN};
  struct ptkit_status status = {.cpu = 0};
  uint64_t tail = 0;
  int times = 0;

  must(file >= 0 && mapped != MAP_FAILED, "mmap");
  while (waitpid(child, NULL, WNOHANG) == 0) {
    if (poll(&readable, 1, 10) == 1) ++times;
    tail = read_on(session, mapped, file, tail);
  }
  must(ioctl(session, PTKIT_PAUSE) == 0, "PTKIT_PAUSE");
  tail = read_on(session, mapped, file, tail);
  must(ioctl(session, PTKIT_STATUS, &status) == 0, "PTKIT_STATUS");
  must(status.stops == 0, "a reader that is fast enough");
  must(ioctl(session, PTKIT_STOP) == 0, "PTKIT_STOP");
  printf("woken up %d times\n", times);
  close(file);
}

/* The newest bytes of a processor; a ring is full, others are not. */
static void save(int session, uint32_t cpu, uint64_t buffer_bytes, const char* path) {
  const int ring = buffer_bytes == RING_BYTES;
  static unsigned char newest[BUFFER_BYTES];
  struct ptkit_snapshot snapshot = {.cpu = cpu, .address = (unsigned long)newest, .bytes = sizeof newest};
  struct ptkit_buffer buffer = {.cpu = cpu};
  const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const unsigned char* mapped;

  must(ioctl(session, PTKIT_BUFFER, &buffer) == 0, "PTKIT_BUFFER");
  mapped = mmap(NULL, buffer_bytes, PROT_READ, MAP_SHARED, session, buffer.data_offset);
  must(mapped != MAP_FAILED, "mmap");
  must(ioctl(session, PTKIT_SNAPSHOT, &snapshot) == 0, "PTKIT_SNAPSHOT");
  must(ring == !!(snapshot.flags & PTKIT_STATUS_LAPPED), "a ring that is full, others that are not");
  must(!(snapshot.flags & PTKIT_STATUS_FULL), "a large enough buffer");
  must(ring || memcmp(newest, mapped, snapshot.bytes) == 0, "the same bytes in the mapping");
  must(write(file, newest, snapshot.bytes) == (ssize_t)snapshot.bytes, path);
  munmap((void*)mapped, buffer_bytes);
  close(file);
}

#endif
