/*
 * libxdc as a contestant: decodes a stream as one buffer into a cleared map, which gets conditional branches
 * only. A program of its own: nothing of ptkit is linked into it.
 *
 *     libxdc check FOLDER
 *     libxdc time FOLDER SECONDS
 *
 * FOLDER is what page_cache.cpp writes. Prints one JSON object, as the other contestants do.
 */
#include <fcntl.h>
#include <libxdc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAGE 4096u
#define MAP_BYTES (1u << 16)       /* as in coverage/ptkit.cpp */
#define CHECK_MAP_BYTES (1u << 24) /* the largest that libxdc can do: hardly any edges share a byte */
#define MOST_ROUNDS 400
#define STREAM_END 0x55u /* libxdc needs this byte after the stream */
#define SLACK 16u

struct file {
  uint8_t* bytes;
  size_t size;
};

struct pages {
  struct file addresses;
  struct file dump;
};

static struct file read_file(const char* folder, const char* name) {
  char path[4096];
  struct file file = {NULL, 0};
  long size;

  snprintf(path, sizeof(path), "%s/%s", folder, name);
  FILE* stream = fopen(path, "rb");
  if (stream == NULL || fseek(stream, 0, SEEK_END) != 0 || (size = ftell(stream)) < 0) {
    perror(path);
    exit(2);
  }
  rewind(stream);
  file.size = (size_t)size;
  file.bytes = malloc(file.size + SLACK);
  if (file.bytes == NULL || fread(file.bytes, 1, file.size, stream) != file.size) {
    perror(path);
    exit(2);
  }
  fclose(stream);
  memset(file.bytes + file.size, STREAM_END, SLACK);
  return file;
}

static uint64_t page_address(const struct pages* pages, size_t index) {
  uint64_t address;

  memcpy(&address, pages->addresses.bytes + index * sizeof(address), sizeof(address));
  return address;
}

/* The page with this address. Called once for each decoded instruction. */
static void* fetch(void* opaque, uint64_t address, bool* found) {
  const struct pages* pages = opaque;
  const uint64_t wanted = address & ~(uint64_t)(PAGE - 1);
  size_t first = 0;
  size_t count = pages->addresses.size / sizeof(uint64_t);

  while (count != 0) {
    const size_t half = count / 2;
    const uint64_t there = page_address(pages, first + half);
    if (there == wanted) {
      *found = true;
      return pages->dump.bytes + (first + half) * PAGE;
    }
    if (there < wanted) {
      first += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  *found = false;
  return NULL;
}

static double seconds_of(clockid_t clock) {
  struct timespec now;

  clock_gettime(clock, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

struct decoder {
  libxdc_t* libxdc;
  struct file trace;
  uint8_t* map;
  size_t map_size;
};

static void run(const struct decoder* decoder) {
  static const char* const results[] = {"success", "overflow", "missing code", "error", "unknown packet"};

  memset(decoder->map, 0, decoder->map_size);
  const decoder_result_t result = libxdc_decode(decoder->libxdc, decoder->trace.bytes, decoder->trace.size);
  if (result == decoder_success || result == decoder_success_pt_overflow) return;
  fprintf(stderr, "libxdc cannot decode the trace: %s\n", results[result]);
  exit(3);
}

/* Number of bytes that are not 0, and FNV-1a of their indices and values. */
static size_t digest(const struct decoder* decoder, uint64_t* digest) {
  const uint64_t prime = 0x100000001b3u;
  size_t used = 0;

  *digest = 0xcbf29ce484222325u;
  for (size_t i = 0; i < decoder->map_size; ++i) {
    if (decoder->map[i] == 0) continue;
    ++used;
    *digest = (*digest ^ i) * prime;
    *digest = (*digest ^ decoder->map[i]) * prime;
  }
  return used;
}

static void time_rounds(const struct decoder* decoder, double seconds) {
  const double end = seconds_of(CLOCK_MONOTONIC) + seconds;

  printf("{\"bytes\": %zu, \"rounds\": [", decoder->trace.size);
  for (int i = 0; i < 2 || (i < MOST_ROUNDS && seconds_of(CLOCK_MONOTONIC) < end); ++i) {
    const double wall = seconds_of(CLOCK_MONOTONIC);
    const double cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    run(decoder);
    const double cpu_end = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    printf("%s[%.9f, %.9f]", i == 0 ? "" : ", ", seconds_of(CLOCK_MONOTONIC) - wall, cpu_end - cpu);
  }
  printf("], ");
}

int main(int argc, char** argv) {
  const bool checks = argc == 3 && strcmp(argv[1], "check") == 0;
  const bool times = argc == 4 && strcmp(argv[1], "time") == 0;

  if (!checks && !times) {
    fprintf(stderr, "usage: %s check FOLDER | time FOLDER SECONDS\n", argv[0]);
    return 2;
  }
  struct pages pages = {read_file(argv[2], "page_cache.addr"), read_file(argv[2], "page_cache.dump")};
  const size_t count = pages.addresses.size / sizeof(uint64_t);
  uint64_t filter[4][2] = {{0}};
  if (count != 0) {
    filter[0][0] = page_address(&pages, 0);
    filter[0][1] = page_address(&pages, count - 1) + PAGE;
  }
  struct decoder decoder = {.trace = read_file(argv[2], "trace"),
                            .map_size = times ? MAP_BYTES : CHECK_MAP_BYTES};
  decoder.map = calloc(1, decoder.map_size);
  decoder.libxdc = libxdc_init(filter, fetch, &pages, decoder.map, decoder.map_size);
  if (decoder.libxdc == NULL) return 3;
  uint64_t value = 0;
  if (times) {
    time_rounds(&decoder, atof(argv[3]));
    printf("\"rows\": 0, \"errors\": 0, \"sum\": \"%zx\", \"digest\": \"0\"}\n", digest(&decoder, &value));
    return 0;
  }
  run(&decoder);
  const size_t used = digest(&decoder, &value);
  printf("{\"rows\": %zu, \"errors\": 0, \"sum\": \"0\", \"digest\": \"%016llx\"}\n", used,
         (unsigned long long)value);
  return 0;
}
