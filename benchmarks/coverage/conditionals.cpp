// The conditional branches that CoverageDecoder counts, in a map as libxdc fills it, for comparison.
#include <memory>
#include <vector>

#include "aggregate/coverage.h"
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
  flow::FlowOptions options;
  options.errata = packet::errata_for(bundle.configuration.cpu);
  aggregate::CoverageDecoder decoder({std::shared_ptr<void>(), &bundle}, options);
  decoder.set_space(bundle.streams.front().space);
  Outcome outcome;
  outcome.errors = decoder.decode(bundle.streams.front().data.bytes()).value().errors;
  std::vector<std::uint8_t> map(kMapBytes);
  for (const aggregate::Edge& edge : decoder.edges()) {
    if (edge.kind != flow::BranchKind::COND) continue;
    std::uint8_t& hits = map[index_of(edge.from_ip, edge.to_ip)];
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
