#include "common/contest.h"

#include <time.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "formats/registry.h"

namespace ptkit::bench {
namespace {

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void print_outcome(const Outcome& outcome) {
  std::printf("\"rows\": %llu, \"errors\": %llu, \"sum\": \"%016llx\", \"digest\": \"%016llx\"",
              static_cast<unsigned long long>(outcome.rows), static_cast<unsigned long long>(outcome.errors),
              static_cast<unsigned long long>(outcome.sum), static_cast<unsigned long long>(outcome.digest));
}

void time_rounds(const trace::TraceBundle& bundle, const Contestant& contestant, int repeats) {
  Outcome outcome;
  std::printf("{\"bytes\": %zu, \"rounds\": [", bundle.streams.front().data.size());
  for (int i = 0; i < repeats; ++i) {
    const double wall = wall_seconds();
    const double cpu = cpu_seconds();
    outcome = contestant.run(bundle);
    std::printf("%s[%.9f, %.9f]", i == 0 ? "" : ", ", wall_seconds() - wall, cpu_seconds() - cpu);
  }
  std::printf("], ");
  print_outcome(outcome);
  std::printf("}\n");
}

}  // namespace

int contest_main(int argc, char** argv, const Contestant& contestant) {
  const bool checks = argc == 3 && std::strcmp(argv[1], "check") == 0;
  const bool times = argc == 4 && std::strcmp(argv[1], "time") == 0;
  if (!checks && !times) {
    std::fprintf(stderr, "usage: %s check TRACE | time TRACE REPEATS\n", argv[0]);
    return 2;
  }
  auto opened = formats::open(argv[2], {});
  if (!opened.ok()) {
    std::fprintf(stderr, "%s: %s\n", argv[2], opened.failure().detail.c_str());
    return 2;
  }
  if (times) {
    time_rounds(opened.value(), contestant, std::atoi(argv[3]));
    return 0;
  }
  std::printf("{");
  print_outcome(contestant.check(opened.value()));
  std::printf("}\n");
  return 0;
}

}  // namespace ptkit::bench
