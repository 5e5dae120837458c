// Random programs on random configurations of the trace unit: what comes out decodes to what ran.
#include <gtest/gtest.h>

#include <sstream>

#include "../flow/roundtrip.h"
#include "random_machine.h"

namespace ptkit::softpt::test {
namespace {

using flow::roundtrip::Collector;
using Ips = std::vector<std::uint64_t>;

Collector decoded(const RandomMachine& machine, const std::vector<std::uint8_t>& bytes) {
  return flow::roundtrip::decode(
      flow::roundtrip::bundle_for(machine.program.regions, machine.config(), bytes),
      flow::roundtrip::own_engine);
}

void expect_no_errors(const Collector& rows) {
  for (const flow::FlowError& error : rows.errors) {
    ADD_FAILURE() << base::status_name(error.code) << " at " << error.place.offset << ", " << std::hex
                  << error.ip;
  }
}

std::string first_difference(const Ips& seen, const Ips& truth) {
  std::size_t same = 0;
  while (same < std::min(seen.size(), truth.size()) && seen[same] == truth[same]) ++same;
  if (same == seen.size() && same == truth.size()) return "";
  std::ostringstream out;
  out << "at " << same << " of " << seen.size() << " and " << truth.size() << std::hex;
  for (std::size_t i = same < 3 ? 0 : same - 3; i < same + 3; ++i) {
    out << "\n" << (i < seen.size() ? seen[i] : 0) << " " << (i < truth.size() ? truth[i] : 0);
  }
  return out.str();
}

struct Variant {
  const char* name;
  RunOptions options;
};
void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

class RandomTrace : public testing::TestWithParam<Variant> {};

TEST_P(RandomTrace, DecodesToWhatRan) {
  std::size_t instructions = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    RunOptions options = GetParam().options;
    options.seed = seed;
    RandomMachine machine(options);
    machine.run();
    SCOPED_TRACE(testing::Message() << std::hex << "CTL " << machine.ctl());
    EXPECT_EQ(machine.unit.status(), base::Status::OK);
    const Collector rows = decoded(machine, machine.platform.stream);
    expect_no_errors(rows);
    ASSERT_EQ(first_difference(rows.ips, machine.ips), "");
    instructions += rows.ips.size();
  }
  EXPECT_GT(instructions, 20000U);
}

INSTANTIATE_TEST_SUITE_P(Unit, RandomTrace,
                         testing::Values(Variant{"plain", {.ranges = false}},
                                         Variant{"topa", {.topa = true, .ranges = false}},
                                         Variant{"ranges", {.steps = 30000, .topa = true}},
                                         Variant{"trace_stop", {.ranges = false, .trace_stops = true}},
                                         Variant{"ranges_and_stop", {.steps = 30000, .trace_stops = true}}),
                         [](const auto& variant) { return std::string(variant.param.name); });

TEST(RandomRun, AWrappedBufferDecodesFromItsFirstPsb) {
  unsigned wrapped = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    RunOptions options;
    options.seed = seed;
    options.ranges = false;
    options.steps = 60000;
    RandomMachine machine(options);
    machine.run();
    std::uint64_t pointers = 0;
    ASSERT_EQ(machine.unit.read_msr(PT_MSR_RTIT_OUTPUT_MASK_PTRS, pointers), MsrResult::OK);
    const std::uint64_t size = (pointers & 0xffffffff) + 1;
    const std::uint64_t offset = pointers >> 32;
    if (machine.platform.stream.size() <= size) continue;
    std::vector<std::uint8_t> bytes = machine.platform.read(0x40'0000 + offset, size - offset);
    const std::vector<std::uint8_t> rest = machine.platform.read(0x40'0000, offset);
    bytes.insert(bytes.end(), rest.begin(), rest.end());
    const Ips ips = decoded(machine, bytes).ips;
    ASSERT_LE(ips.size(), machine.ips.size());
    ASSERT_TRUE(std::equal(ips.rbegin(), ips.rend(), machine.ips.rbegin()));
    if (!ips.empty()) ++wrapped;
  }
  EXPECT_GT(wrapped, 10U);
}

TEST(RandomRun, AFullTableStopsTheTraceBetweenTwoBytes) {
  unsigned stopped = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    RunOptions options;
    options.seed = seed;
    options.topa = options.stop_region = true;
    options.ranges = false;
    options.steps = 60000;
    RandomMachine machine(options);
    machine.run();
    std::uint64_t status = 0;
    ASSERT_EQ(machine.unit.read_msr(PT_MSR_RTIT_STATUS, status), MsrResult::OK);
    stopped += (status & bit(PT_STATUS_STOPPED)) != 0;
    const Collector rows = decoded(machine, machine.platform.stream);
    const std::size_t common = std::min(rows.ips.size(), machine.ips.size());
    // Behind the last packet the decoder goes on until it needs one.
    std::size_t same = 0;
    while (same < common && rows.ips[same] == machine.ips[same]) ++same;
    EXPECT_GE(same + 64, rows.ips.size());
    EXPECT_TRUE(status != 0 || rows.ips == machine.ips);
  }
  EXPECT_GT(stopped, 10U);
}

// Before a loss the decoder may stop earlier, as no packet said how far it went, or later.
TEST(RandomRun, GoesOnBehindEveryOverflow) {
  std::size_t losses = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    RunOptions options;
    options.seed = seed;
    options.overflows = true;
    options.ranges = seed % 2 == 0;
    RandomMachine machine(options);
    machine.run();
    SCOPED_TRACE(testing::Message() << std::hex << "CTL " << machine.ctl());
    const Collector rows = decoded(machine, machine.platform.stream);
    for (const flow::FlowError& error : rows.errors) {
      EXPECT_EQ(error.code, base::Status::OVERFLOW_LOST) << "at " << error.place.offset;
    }
    ASSERT_EQ(rows.losses.size() + 1, machine.segments.size());
    std::size_t seen = 0;
    std::size_t truth = 0;
    for (std::size_t part = 0; part < machine.segments.size(); ++part) {
      const bool last = part + 1 == machine.segments.size();
      const std::size_t seen_end = last ? rows.ips.size() : rows.losses[part];
      const std::size_t common = std::min(seen_end - seen, machine.segments[part] - truth);
      for (std::size_t i = 0; i < common; ++i) {
        ASSERT_EQ(rows.ips[seen + i], machine.ips[truth + i]) << "part " << part << ", instruction " << i;
      }
      if (last) {
        EXPECT_EQ(seen_end - seen, machine.segments[part] - truth);
      }
      seen = seen_end;
      truth = machine.segments[part];
    }
    losses += rows.losses.size();
  }
  EXPECT_GT(losses, 100U);
}

}  // namespace
}  // namespace ptkit::softpt::test
