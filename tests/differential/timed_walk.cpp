// A random walk through a random program as the software trace unit traces it, with the true time of each
// branch. Instructions take 1 to 8 cycles, and the clock changes.
// ptkit_timed_walk FOLDER SEED STEPS CYC(0 or 1) HALTS(per million instructions)
// writes to FOLDER `trace` (packets), `code` (address, size and bytes, region after region) and `truth`
// (from, to, taken, tsc, instructions retired, of each branch); all numbers are little-endian and have 64
// bits.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "unit/support/traces/walk.h"

namespace {

using ptkit::walk::Step;
using ptkit::walk::StepKind;

void put(std::ofstream& out, std::uint64_t value) {
  out.write(reinterpret_cast<const char*>(&value), sizeof value);
}

[[nodiscard]] bool is_branch(StepKind kind) {
  return kind != StepKind::PTWRITE && kind != StepKind::RESUME && kind != StepKind::OVERFLOW &&
         kind != StepKind::HALT;
}

[[nodiscard]] bool write_all(const std::string& folder, const ptkit::walk::Walk& walk,
                             const std::vector<std::uint8_t>& trace) {
  std::ofstream packets(folder + "/trace", std::ios::binary);
  packets.write(reinterpret_cast<const char*>(trace.data()), static_cast<std::streamsize>(trace.size()));
  std::ofstream code(folder + "/code", std::ios::binary);
  for (const ptkit::walk::CodeRegion& region : walk.program.regions) {
    if (region.bytes.empty()) continue;
    put(code, region.address);
    put(code, region.bytes.size());
    code.write(reinterpret_cast<const char*>(region.bytes.data()),
               static_cast<std::streamsize>(region.bytes.size()));
  }
  std::ofstream truth(folder + "/truth", std::ios::binary);
  for (const Step& step : walk.steps) {
    if (!is_branch(step.kind)) continue;
    put(truth, step.from);
    put(truth, step.to);
    put(truth, step.kind != StepKind::COND || step.taken ? 1 : 0);
    put(truth, step.tsc);
    put(truth, step.insns);
  }
  packets.close();
  code.close();
  truth.close();
  return packets && code && truth;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kArguments = 6;
  if (argc != kArguments) {
    std::fprintf(stderr, "usage: %s FOLDER SEED STEPS CYC HALTS\n", argv[0]);
    return EXIT_FAILURE;
  }
  ptkit::walk::WalkOptions options;
  options.seed = std::strtoull(argv[2], nullptr, 10);
  options.steps = static_cast<std::uint32_t>(std::strtoul(argv[3], nullptr, 10));
  options.functions = 40;
  options.cycles = 8;
  options.sleep_per_mille = 0;
  options.async_per_mille = 1;
  options.async_out_per_mille = 1;
  options.ratio_per_mille = 1;
  options.program.plain = true;
  options.halts_per_million = static_cast<std::uint32_t>(std::strtoul(argv[5], nullptr, 10));
  ptkit::trace_unit::generator::GeneratorConfig config;
  config.mtc = true;
  config.cyc = argv[4] == std::string("1");
  config.tsc_ctc_numerator = 168;
  config.tsc_ctc_denominator = 2;
  const ptkit::walk::Walk walk = ptkit::walk::random_walk(options);
  return write_all(argv[1], walk, ptkit::walk::trace_of(walk, config)) ? EXIT_SUCCESS : EXIT_FAILURE;
}
