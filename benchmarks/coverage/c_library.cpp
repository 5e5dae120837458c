// The same as coverage/ptkit.cpp through the shared C library: a fuzzer's call.
#include "common/c_library.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "coverage/fuzzer.h"

namespace ptkit::bench {
namespace {

class Fuzzer {
 public:
  explicit Fuzzer(const trace::TraceBundle& bundle) : bundle_(bundle), coverage_(open_coverage(bundle)) {}

  Outcome run() {
    std::fill(hits_.begin(), hits_.end(), std::uint8_t{0});
    const ptkit_outcome decoded = decode(coverage_, bundle_, hits_.data(), virgin_.data());
    Outcome outcome;
    outcome.rows = decoded.branches;
    outcome.errors = decoded.errors;
    outcome.sum = decoded.edges;
    return outcome;
  }

  std::uint64_t digest() {
    std::vector<ptkit_edge> edges = edges_of(coverage_);
    std::sort(edges.begin(), edges.end(), [](const ptkit_edge& a, const ptkit_edge& b) {
      return std::tie(a.from, a.to, a.kind) < std::tie(b.from, b.to, b.kind);
    });
    Digest digest;
    for (const ptkit_edge& edge : edges) {
      for (const std::uint64_t word : {edge.from, edge.to, std::uint64_t{edge.kind}, edge.count})
        digest.add(word);
    }
    return digest.value();
  }

 private:
  const trace::TraceBundle& bundle_;
  CoverageHandle coverage_;
  std::vector<std::uint8_t> hits_ = std::vector<std::uint8_t>(kMapBytes, 0);
  std::vector<std::uint8_t> virgin_ = std::vector<std::uint8_t>(kMapBytes, 0xff);
};

}  // namespace
}  // namespace ptkit::bench

int main(int argc, char** argv) { return ptkit::bench::fuzzer_main<ptkit::bench::Fuzzer>(argc, argv); }
