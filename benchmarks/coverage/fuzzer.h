// The main() of our contestants of this question.
#pragma once

#include "common/contest.h"

namespace ptkit::bench {

inline constexpr std::size_t kMapBytes = 65536;

// A Fuzzer is made for a bundle. run() decodes its trace, digest() is of the edges. From the second run on
// the code is known.
template <typename Fuzzer>
int fuzzer_main(int argc, char** argv) {
  const auto run = [](const trace::TraceBundle& bundle) {
    static Fuzzer fuzzer(bundle);
    return fuzzer.run();
  };
  const auto check = [](const trace::TraceBundle& bundle) {
    Fuzzer fuzzer(bundle);
    Outcome outcome = fuzzer.run();
    outcome.digest = fuzzer.digest();
    return outcome;
  };
  return contest_main(argc, argv, {run, check});
}

}  // namespace ptkit::bench
