// A trace's code in a handle of the C library.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "ptkit.h"
#include "trace/bundle.h"

namespace ptkit::bench {

struct CloseCoverage {
  void operator()(ptkit_coverage* coverage) const noexcept { ptkit_coverage_close(coverage); }
};
using CoverageHandle = std::unique_ptr<ptkit_coverage, CloseCoverage>;

// Ends the program with the sentence of a failure.
inline void must(int status) {
  if (status == PTKIT_OK) return;
  std::fprintf(stderr, "%s\n", ptkit_failure_message());
  std::exit(3);
}

inline CoverageHandle open_coverage(const trace::TraceBundle& bundle) {
  ptkit_options options{};
  options.size = sizeof options;
  if (bundle.configuration.cpu.known) {
    options.cpu_family = bundle.configuration.cpu.family;
    options.cpu_model = bundle.configuration.cpu.model;
    options.cpu_stepping = bundle.configuration.cpu.stepping;
  }
  ptkit_coverage* coverage = nullptr;
  must(ptkit_coverage_open(&options, &coverage));
  for (const trace::CodeRegion& region : bundle.code) {
    const base::Bytes bytes = region.bytes.bytes();
    must(ptkit_coverage_add_code(coverage, region.address, bytes.data(), bytes.size()));
  }
  return CoverageHandle(coverage);
}

inline ptkit_outcome decode(const CoverageHandle& coverage, const trace::TraceBundle& bundle,
                            std::uint8_t* hits = nullptr, std::uint8_t* virgin = nullptr) {
  const base::Bytes stream = bundle.streams.front().data.bytes();
  ptkit_outcome outcome{};
  outcome.size = sizeof outcome;
  must(ptkit_coverage_decode(coverage.get(), stream.data(), stream.size(), hits, virgin, &outcome));
  return outcome;
}

inline std::vector<ptkit_edge> edges_of(const CoverageHandle& coverage) {
  std::vector<ptkit_edge> edges(ptkit_coverage_edges(coverage.get(), nullptr, 0));
  ptkit_coverage_edges(coverage.get(), edges.data(), edges.size());
  return edges;
}

}  // namespace ptkit::bench
