#include "c99.h"

#include <string.h>

#include "ptkit.h"

static uint8_t hits[1024];
static uint8_t virgin[1024];

static int decode(ptkit_coverage *coverage, const void *buffer, size_t size) {
  ptkit_outcome outcome = {.size = sizeof outcome};
  const int status = ptkit_coverage_decode(coverage, buffer, size, hits, virgin, &outcome);

  return status == PTKIT_OK ? (int)outcome.new_edges : -status;
}

int c99_new_edges(const void *code, size_t code_size, const void *buffer, size_t size) {
  ptkit_options options = {.size = sizeof options, .map_size = sizeof hits};
  ptkit_coverage *coverage = NULL;
  int status = ptkit_coverage_open(&options, &coverage);

  memset(hits, 0, sizeof hits);
  memset(virgin, 0xff, sizeof virgin);
  if (status == PTKIT_OK) status = ptkit_coverage_add_code(coverage, 0x1000, code, code_size);
  const int result = status == PTKIT_OK ? decode(coverage, buffer, size) : -status;
  ptkit_coverage_close(coverage);
  return result;
}

size_t c99_size_of_options(void) { return sizeof(ptkit_options); }
size_t c99_size_of_outcome(void) { return sizeof(ptkit_outcome); }
size_t c99_size_of_edge(void) { return sizeof(ptkit_edge); }
size_t c99_size_of_error(void) { return sizeof(ptkit_error); }
