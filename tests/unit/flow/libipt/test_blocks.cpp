// libipt decodes the output of BlockEncoder, with and without address filters.
#include <gtest/gtest.h>

#include "flow/libipt/decoder.h"
#include "unit/support/traces/filtered.h"

namespace ptkit::capture::test {
namespace {

flow::roundtrip::Collector by_libipt(const Emulation& run, const GeneratorConfig& config,
                                     std::vector<std::uint8_t> bytes) {
  return flow::roundtrip::decode(bundle_for(run.program.regions, config, std::move(bytes)),
                                 [](const trace::TraceBundle& bundle, const code::image::Image& image,
                                    flow::FlowSink& sink, time::TimeTrack* track) {
                                   return flow::libipt::make_reference(
                                       bundle.streams[0], bundle.configuration, image, {}, sink, track);
                                 });
}

void expect_decoded(std::uint64_t seed, bool filtering) {
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  Emulation run;
  Emulator(run, {.seed = seed, .events = 8000}).run();
  std::vector<RequestedRange> requested;
  if (filtering) requested = random_ranges(run, random);
  const auto filter = filter_of(requested);
  GeneratorConfig config = config_of(true, true, 5);
  config.tip_ret = trace_unit::generator::TipRet::CLEARS;
  const Encoded out = encode(run, config, {14}, {}, filter.get());
  const auto seen = by_libipt(run, config, out.bytes);
  EXPECT_TRUE(seen.errors.empty());
  EXPECT_TRUE(seen.ips == filtered(run, requested).ips);
}

TEST(ReferenceBlocks, AreDecodedAsExecuted) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) expect_decoded(seed, false);
}

TEST(ReferenceBlocks, AreDecodedAsFiltered) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) expect_decoded(seed, true);
}

}  // namespace
}  // namespace ptkit::capture::test
