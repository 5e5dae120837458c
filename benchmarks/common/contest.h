// The main() of contestants: reads the trace, times runs, prints the result as JSON.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "trace/bundle.h"

namespace ptkit::bench {

// The result of a run. Contestants must agree on it. Only check() computes `digest`, which takes time.
struct Outcome {
  std::uint64_t rows = 0;  // packets, or instructions
  std::uint64_t errors = 0;
  std::uint64_t sum = 0;     // over all rows: prevents the compiler from removing the work
  std::uint64_t digest = 0;  // over all rows, in order
};

struct Contestant {
  std::function<Outcome(const trace::TraceBundle&)> run;    // timed: a whole decode
  std::function<Outcome(const trace::TraceBundle&)> check;  // the same, with the digest
  // Optional. prepare() runs before each run, untimed. bytes() gives the decoded size; default: the whole
  // trace.
  std::function<void(const trace::TraceBundle&)> prepare = nullptr;
  std::function<std::size_t(const trace::TraceBundle&)> bytes = nullptr;
};

// FNV-1a over 64-bit words.
class Digest {
 public:
  void add(std::uint64_t word) noexcept { value_ = (value_ ^ word) * 0x100000001b3ULL; }
  [[nodiscard]] std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

// `PROGRAM check TRACE` or `PROGRAM time TRACE SECONDS`: prints one JSON object. The main() of every
// contestant. `--disretc` at the end: where the trace does not say it, returns are taken as not compressed; 3
// if they are.
int contest_main(int argc, char** argv, const Contestant& contestant);

}  // namespace ptkit::bench
