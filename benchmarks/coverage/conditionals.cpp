// The conditional branches that the C library counts, in a map as libxdc fills it, for comparison.
#include <vector>

#include "common/c_library.h"
#include "common/contest.h"

namespace ptkit::bench {
namespace {

constexpr std::size_t kMapBytes = std::size_t{1} << 24U;  // as in libxdc.c

// libxdc's hash of an edge.
std::uint64_t mixed(std::uint64_t address) { return (address ^ address >> 31U) * 0x7fb5d329728ea185ULL; }
std::size_t index_of(std::uint64_t from, std::uint64_t to) {
  return (mixed(to) ^ mixed(from) >> 1U) & (kMapBytes - 1);
}

Outcome check(const trace::TraceBundle& bundle) {
  const CoverageHandle coverage = open_coverage(bundle);
  Outcome outcome;
  outcome.errors = decode(coverage, bundle).errors;
  std::vector<std::uint8_t> map(kMapBytes);
  for (const ptkit_edge& edge : edges_of(coverage)) {
    if (edge.kind != PTKIT_COND) continue;
    std::uint8_t& hits = map[index_of(edge.from, edge.to)];
    hits = static_cast<std::uint8_t>(hits + edge.count);  // wraps, as in libxdc
  }
  Digest digest;
  for (std::size_t at = 0; at < map.size(); ++at) {
    if (map[at] == 0) continue;
    ++outcome.rows;
    digest.add(at);
    digest.add(map[at]);
  }
  outcome.digest = digest.value();
  return outcome;
}

}  // namespace
}  // namespace ptkit::bench

int main(int argc, char** argv) {
  return ptkit::bench::contest_main(argc, argv, {ptkit::bench::check, ptkit::bench::check});
}
