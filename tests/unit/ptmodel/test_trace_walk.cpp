// Random programs on random configurations of the trace unit: what comes out decodes to what ran.
#include <gtest/gtest.h>

#include <functional>
#include <sstream>

#include "unit/support/traces/roundtrip.h"
#include "unit/support/units/random_machine.h"

namespace ptkit::ptmodel::test {
namespace {

using flow::roundtrip::Collector;
using Ips = std::vector<std::uint64_t>;

Collector decoded(const RandomMachine& machine, const std::vector<std::uint8_t>& bytes) {
  const auto bundle = flow::roundtrip::bundle_for(machine.program.regions, machine.config(), bytes);
  machine.describe_code(bundle->configuration);
  return flow::roundtrip::decode(bundle, flow::roundtrip::own_engine);
}

void expect_no_errors(const Collector& rows) {
  for (const flow::FlowError& error : rows.errors) {
    ADD_FAILURE() << base::status_name(error.code) << " at " << error.span.offset << ", " << std::hex
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

// Programs with more steps than buffers have room for.
void run_long(const RunOptions& options, const std::function<void(RandomMachine&)>& check) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    RunOptions own = options;
    own.seed = seed;
    own.ranges = false;
    own.steps = 60000;
    RandomMachine machine(own);
    machine.run();
    check(machine);
  }
}

std::uint64_t register_of(const RandomMachine& machine, std::uint32_t index) {
  std::uint64_t value = 0;
  EXPECT_EQ(machine.unit.read_msr(index, value), MsrResult::OK);
  return value;
}

struct Variant {
  const char* name;
  RunOptions options;
};
void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

// IP payloads are offsets in a code segment whose base is not 0.
constexpr walk::ProgramOptions kCode16{.system = true, .bits = 16, .cs_base = 0x1'2340};
constexpr walk::ProgramOptions kCode32{.system = true, .bits = 32, .cs_base = 0xfff8'0000};  // wraps at 4 GiB
constexpr walk::ProgramOptions kKernel64{
    .system = true, .bits = 32, .cs_base = 0x4000'0000, .kernel_64 = true};

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
                                         Variant{"code_16", {.ranges = false, .program = kCode16}},
                                         Variant{"code_16_in_ranges", {.steps = 30000, .program = kCode16}},
                                         Variant{"code_32", {.ranges = false, .program = kCode32}},
                                         Variant{"code_32_in_ranges", {.steps = 30000, .program = kCode32}},
                                         Variant{"kernel_64", {.ranges = false, .program = kKernel64}},
                                         Variant{"kernel_64_in_ranges",
                                                 {.steps = 30000, .program = kKernel64}},
                                         Variant{"topa", {.topa = true, .ranges = false}},
                                         Variant{"ranges", {.steps = 30000, .topa = true}},
                                         Variant{"trace_stop", {.ranges = false, .trace_stops = true}},
                                         Variant{"ranges_and_stop", {.steps = 30000, .trace_stops = true}}),
                         [](const auto& variant) { return std::string(variant.param.name); });

TEST(RandomRun, AWrappedBufferDecodesFromItsFirstPsb) {
  unsigned wrapped = 0;
  run_long({}, [&](RandomMachine& machine) {
    const std::uint64_t pointers = register_of(machine, PT_MSR_RTIT_OUTPUT_MASK_PTRS);
    const std::uint64_t size = (pointers & 0xffffffff) + 1;
    const std::uint64_t offset = pointers >> 32;
    if (machine.platform.stream.size() <= size) return;
    std::vector<std::uint8_t> bytes = machine.platform.read(0x40'0000 + offset, size - offset);
    const std::vector<std::uint8_t> rest = machine.platform.read(0x40'0000, offset);
    bytes.insert(bytes.end(), rest.begin(), rest.end());
    const Ips ips = decoded(machine, bytes).ips;
    ASSERT_LE(ips.size(), machine.ips.size());
    ASSERT_TRUE(std::equal(ips.rbegin(), ips.rend(), machine.ips.rbegin()));
    if (!ips.empty()) ++wrapped;
  });
  EXPECT_GT(wrapped, 10U);
}

TEST(RandomRun, AFullTableStopsTheTraceBetweenTwoBytes) {
  unsigned stopped = 0;
  run_long({.topa = true, .stop_region = true}, [&](RandomMachine& machine) {
    const bool full = (register_of(machine, PT_MSR_RTIT_STATUS) & bit(PT_STATUS_STOPPED)) != 0;
    stopped += full;
    const Ips ips = decoded(machine, machine.platform.stream).ips;
    if (!full) {
      EXPECT_EQ(first_difference(ips, machine.ips), "");
      return;
    }
    const std::size_t common = std::min(ips.size(), machine.ips.size());
    std::size_t same = 0;
    while (same < common && ips[same] == machine.ips[same]) ++same;
    EXPECT_GE(same + 64, ips.size());  // behind the last packet the decoder goes on until it needs one
    EXPECT_GT(same, 0U);
  });
  EXPECT_GT(stopped, 10U);
}

class RandomLosses : public testing::TestWithParam<Variant> {};

// Before a loss the decoder may stop earlier, as no packet said how far it went, or later.
TEST_P(RandomLosses, GoesOnBehindEveryOverflow) {
  std::size_t losses = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    RunOptions options = GetParam().options;
    options.seed = seed;
    options.overflows = true;
    options.ranges = seed % 2 == 0;
    RandomMachine machine(options);
    machine.run();
    SCOPED_TRACE(testing::Message() << std::hex << "CTL " << machine.ctl());
    const Collector rows = decoded(machine, machine.platform.stream);
    for (const flow::FlowError& error : rows.errors) {
      EXPECT_EQ(error.code, base::Status::OVERFLOW_LOST) << "at " << error.span.offset;
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

INSTANTIATE_TEST_SUITE_P(Unit, RandomLosses,
                         testing::Values(Variant{"plain", {}}, Variant{"code_16", {.program = kCode16}},
                                         Variant{"code_32", {.program = kCode32}},
                                         Variant{"kernel_64", {.program = kKernel64}}),
                         [](const auto& variant) { return std::string(variant.param.name); });

}  // namespace
}  // namespace ptkit::ptmodel::test
