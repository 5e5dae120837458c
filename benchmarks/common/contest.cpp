#include "common/contest.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "common/clock.h"
#include "formats/registry.h"
#include "trace/rtit_ctl.h"

namespace ptkit::bench {
namespace {

void print_outcome(const Outcome& outcome) {
  std::printf("\"rows\": %llu, \"errors\": %llu, \"sum\": \"%016llx\", \"digest\": \"%016llx\"",
              static_cast<unsigned long long>(outcome.rows), static_cast<unsigned long long>(outcome.errors),
              static_cast<unsigned long long>(outcome.sum), static_cast<unsigned long long>(outcome.digest));
}

// At least two rounds, then as many as fit the time, up to a limit.
constexpr int kMostRounds = 400;

void time_rounds(const trace::TraceBundle& bundle, const Contestant& contestant, double seconds) {
  Outcome outcome;
  const auto bytes = contestant.bytes ? contestant.bytes(bundle) : bundle.streams.front().data.size();
  std::printf("{\"bytes\": %zu, \"rounds\": [", bytes);
  const double end = wall_seconds() + seconds;
  for (int i = 0; i < 2 || (i < kMostRounds && wall_seconds() < end); ++i) {
    if (contestant.prepare) contestant.prepare(bundle);
    const double wall = wall_seconds();
    const double cpu = cpu_seconds();
    outcome = contestant.run(bundle);
    const double cpu_end = cpu_seconds();
    std::printf("%s[%.9f, %.9f]", i == 0 ? "" : ", ", wall_seconds() - wall, cpu_end - cpu);
  }
  std::printf("], ");
  print_outcome(outcome);
  std::printf("}\n");
}

// glibc raises its threshold for returning memory to the system when the first large block is freed. Most
// programs have freed one, but not a program that begins with a small trace.
void use_heap_again() {
  constexpr std::size_t kBlock = std::size_t{8} << 20U;
  void* volatile block = std::malloc(kBlock);
  std::free(block);
}

void set_uncompressed(trace::Configuration& configuration) {
  if (configuration.rtit_ctl_known) return;
  const bool ranges_known = configuration.ranges_known;
  trace::set_rtit_ctl(configuration, base::bit(PT_CTL_DIS_RETC));
  configuration.ranges_known = ranges_known;
}

}  // namespace

int contest_main(int argc, char** argv, const Contestant& contestant) {
  const bool is_uncompressed = argc > 3 && std::strcmp(argv[argc - 1], "--disretc") == 0;
  if (is_uncompressed) --argc;
  const bool checks = argc == 3 && std::strcmp(argv[1], "check") == 0;
  const bool times = argc == 4 && std::strcmp(argv[1], "time") == 0;
  if (!checks && !times) {
    std::fprintf(stderr, "usage: %s check TRACE | time TRACE SECONDS [--disretc]\n", argv[0]);
    return 2;
  }
  use_heap_again();
  auto opened = formats::open(argv[2], {});
  if (!opened.ok()) {
    std::fprintf(stderr, "%s: %s\n", argv[2], opened.failure().detail.c_str());
    return 2;
  }
  // Unpacks the compressed streams of a bundle, untimed.
  for (const trace::Stream& stream : opened.value().streams) static_cast<void>(stream.data.bytes());
  const std::uint64_t errors = is_uncompressed && checks ? contestant.run(opened.value()).errors : 0;
  if (is_uncompressed) set_uncompressed(opened.value().configuration);
  if (times) {
    time_rounds(opened.value(), contestant, std::atof(argv[3]));
    return 0;
  }
  const Outcome outcome = contestant.check(opened.value());
  if (is_uncompressed && outcome.errors != errors) {
    std::fprintf(stderr, "the trace has compressed returns\n");
    return 3;
  }
  std::printf("{");
  print_outcome(outcome);
  std::printf("}\n");
  return 0;
}

}  // namespace ptkit::bench
