// A fuzzer's call of CoverageDecoder: decodes the trace as one buffer into a cleared map, and finds new
// edges.
#include <algorithm>
#include <memory>
#include <vector>

#include "coverage/fuzzer.h"
#include "tables/coverage/coverage.h"

namespace ptkit::bench {
namespace {

class Fuzzer {
 public:
  explicit Fuzzer(const trace::TraceBundle& bundle)
      : bundle_(bundle),
        decoder_(std::shared_ptr<const trace::TraceBundle>(std::shared_ptr<void>(), &bundle),
                 options_for(bundle)) {
    decoder_.set_space(bundle.streams.front().space);
  }

  Outcome run() {
    std::fill(hits_.begin(), hits_.end(), std::uint8_t{0});
    const auto decoded = decoder_.decode(bundle_.streams.front().data.bytes(), {hits_, virgin_});
    Outcome outcome;
    outcome.rows = decoded.value().branches;
    outcome.errors = decoded.value().errors;
    outcome.sum = decoded.value().edges;
    return outcome;
  }

  std::uint64_t digest() {
    decoder_.sort_edges();
    Digest digest;
    for (const tables::coverage::Edge& edge : decoder_.edges()) {
      digest.add(edge.from_ip);
      digest.add(edge.to_ip);
      digest.add(static_cast<std::uint64_t>(edge.kind));
      digest.add(edge.count);
    }
    return digest.value();
  }

 private:
  static flow::FlowOptions options_for(const trace::TraceBundle& bundle) {
    flow::FlowOptions options;
    options.errata = packet::errata_for(bundle.configuration.cpu);
    return options;
  }

  const trace::TraceBundle& bundle_;
  tables::coverage::CoverageDecoder decoder_;
  std::vector<std::uint8_t> hits_ = std::vector<std::uint8_t>(kMapBytes, 0);
  std::vector<std::uint8_t> virgin_ = std::vector<std::uint8_t>(kMapBytes, 0xff);
};

}  // namespace
}  // namespace ptkit::bench

int main(int argc, char** argv) { return ptkit::bench::fuzzer_main<ptkit::bench::Fuzzer>(argc, argv); }
