/*
 * A fuzzer's loop over the C library of ptkit: what a run covered, and what of it no run before has.
 *
 *     fuzz_loop MEMORY ADDRESS TRACE...
 *
 * MEMORY is a dump of the target's memory, which lies at ADDRESS. Each TRACE stands for one run of the target: in
 * a fuzzer it is the buffer that the trace unit has written, here it is read from a file. Prints one line a run.
 *
 * With libxdc, the same loop calls libxdc_init() with a function that finds pages, and libxdc_decode().
 */
#include <ptkit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAP_BYTES 65536

struct memory {
  unsigned char *bytes;
  size_t size;
  uint64_t address;
};

static void *read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  long end;

  if (file == NULL || fseek(file, 0, SEEK_END) != 0 || (end = ftell(file)) < 0) {
    perror(path);
    exit(2);
  }
  rewind(file);
  unsigned char *bytes = malloc((size_t)end + 1);
  *size = (size_t)end;
  if (bytes == NULL || fread(bytes, 1, *size, file) != *size) {
    perror(path);
    exit(2);
  }
  fclose(file);
  return bytes;
}

/* What libxdc's page_cache_fetch is, but that it copies: code of the target at an address. */
static size_t read_code(void *argument, uint64_t address, void *out, size_t size) {
  const struct memory *memory = argument;
  const uint64_t offset = address - memory->address;

  if (address < memory->address || offset >= memory->size) return 0;
  if (size > memory->size - offset) size = (size_t)(memory->size - offset);
  memcpy(out, memory->bytes + offset, size);
  return size;
}

static void check(int status) {
  if (status == PTKIT_OK) return;
  fprintf(stderr, "fuzz_loop: %s\n", ptkit_failure_message());
  exit(1);
}

/* One turn of the loop: the map of hits is cleared, the virgin map keeps what all runs have covered. */
static void run(ptkit_coverage *coverage, const char *path, uint8_t *hits, uint8_t *virgin) {
  ptkit_outcome outcome = {.size = sizeof outcome};
  size_t size;
  void *trace = read_file(path, &size);

  memset(hits, 0, MAP_BYTES);
  check(ptkit_coverage_decode(coverage, trace, size, hits, virgin, &outcome));
  printf("%s: %llu edges, %llu new%s\n", path, (unsigned long long)outcome.edges,
         (unsigned long long)outcome.new_edges, outcome.new_bits == 1 ? ", other numbers of hits" : "");
  if (outcome.errors != 0) {
    printf("  %llu errors; at byte %llu: %s\n", (unsigned long long)outcome.errors,
           (unsigned long long)outcome.first_error_offset, ptkit_status_sentence(outcome.first_error));
  }
  free(trace);
}

int main(int argc, char **argv) {
  static uint8_t hits[MAP_BYTES];
  static uint8_t virgin[MAP_BYTES];
  struct memory memory;
  ptkit_coverage *coverage;

  if (argc < 4) {
    fprintf(stderr, "usage: fuzz_loop MEMORY ADDRESS TRACE...\n");
    return 2;
  }
  memory.bytes = read_file(argv[1], &memory.size);
  memory.address = strtoull(argv[2], NULL, 16);
  ptkit_options options = {
      .size = sizeof options, .map_size = MAP_BYTES, .read_code = read_code, .read_code_argument = &memory};
  check(ptkit_coverage_open(&options, &coverage));
  memset(virgin, 0xff, sizeof virgin);
  for (int i = 3; i < argc; ++i) run(coverage, argv[i], hits, virgin);
  ptkit_coverage_close(coverage);
  free(memory.bytes);
  return 0;
}
