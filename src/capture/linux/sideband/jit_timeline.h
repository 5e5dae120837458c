// When which name holds at the addresses of JIT code. Compilers use addresses again, and what they write of
// their functions (perf-PID.map, jit-PID.dump) has no times that a trace could be compared with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/interval_map.h"
#include "trace/bundle.h"

namespace ptkit::capture {

// Code that began to be executed, as far as a recorder knows: `changed` if there were other bytes before.
struct JitExecution {
  std::uint64_t address = 0;
  std::uint64_t tsc = 0;
  bool changed = false;
};

// The names of one address space, in the order in which the program wrote them.
class JitTimeline {
 public:
  // `executions`: sorted by address. Must outlive add().
  explicit JitTimeline(std::vector<JitExecution> executions = {});
  // The names that hold at `tsc`, for a process that was forked then.
  [[nodiscard]] JitTimeline forked(std::uint64_t tsc, std::vector<JitExecution> executions) const;

  struct Name {
    std::uint64_t address = 0;
    std::uint64_t size = 0;
    std::string text;
    std::int32_t file = -1;
    std::uint64_t after = trace::kTscMin;  // the program had not written the name then
  };
  // A name holds from the beginning if no earlier one has an address of it. If some has, it replaces these
  // when its code is first executed: then the code that was first executed after `after`, other bytes
  // preferred. Returns where it is in its file; nullopt: the name was there already, or is at no address of
  // user code.
  std::optional<std::uint64_t> add(const Name& name);

  [[nodiscard]] std::vector<trace::NameRange> ranges(trace::SpaceId space) const;
  [[nodiscard]] std::size_t size() const noexcept { return names_.size(); }

 private:
  struct Held {
    Name name;
    std::uint64_t generation = 0;
    std::uint64_t from = trace::kTscMin;
    std::uint64_t to = trace::kTscMax;
    [[nodiscard]] std::uint64_t last() const noexcept { return name.address + (name.size - 1); }
    [[nodiscard]] std::uint64_t file_offset() const noexcept;
  };
  [[nodiscard]] std::uint64_t executed_after(const Name& name, std::uint64_t tsc) const;
  void hold(Held held);

  std::vector<JitExecution> executions_;
  std::vector<Held> names_;
  base::IntervalMap<std::size_t> newest_;  // numbers in names_, by address
};

}  // namespace ptkit::capture
