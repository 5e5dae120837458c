// libipt decodes the software trace unit's output to the executed instructions.
#include <gtest/gtest.h>

#include "flow/libipt/decoder.h"
#include "unit/support/traces/roundtrip.h"
#include "unit/support/units/random_machine.h"

namespace ptkit {
namespace {

using ptmodel::test::RandomMachine;
using ptmodel::test::RunOptions;

std::unique_ptr<flow::RowSource> libipt(const trace::TraceBundle& bundle, const code::image::Image& image,
                                        flow::FlowSink& sink, time::TimeTrack* track) {
  return flow::libipt::make_reference(bundle.streams[0], bundle.configuration, image, flow::FlowOptions{},
                                      sink, track);
}

class ReferenceTraceUnit : public testing::TestWithParam<RunOptions> {};

TEST_P(ReferenceTraceUnit, DecodesToExecutedInstructions) {
  std::size_t instructions = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    RunOptions options = GetParam();
    options.seed = seed;
    RandomMachine machine(options);
    machine.run();
    SCOPED_TRACE(testing::Message() << std::hex << "CTL " << machine.ctl());
    const auto bundle =
        flow::roundtrip::bundle_for(machine.program.regions, machine.config(), machine.platform.stream);
    const flow::roundtrip::Collector rows = flow::roundtrip::decode(bundle, libipt);
    for (const flow::FlowError& error : rows.errors) {
      ADD_FAILURE() << base::status_name(error.code) << " at " << error.span.offset;
    }
    EXPECT_EQ(rows.ips.size(), machine.ips.size());
    ASSERT_TRUE(rows.ips == machine.ips);
    instructions += rows.ips.size();
  }
  EXPECT_GT(instructions, 20000U);
}

INSTANTIATE_TEST_SUITE_P(Unit, ReferenceTraceUnit,
                         testing::Values(RunOptions{.ranges = false},
                                         RunOptions{.topa = true, .ranges = false},
                                         RunOptions{.steps = 30000, .topa = true},
                                         RunOptions{.steps = 30000, .trace_stops = true}));

}  // namespace
}  // namespace ptkit
