// Memory that has code of no file, as modules: "[anon 0x10000000]".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::code::symbol {

// Adjacent and overlapping code regions of one space without a file, whatever their times: memory is one
// module however often its code changes.
struct AnonModule {
  trace::SpaceId space = trace::kAnySpace;
  std::uint64_t base = 0;
  std::uint64_t last = 0;  // address of the last byte

  [[nodiscard]] std::string name() const;
};

class AnonMemory {
 public:
  explicit AnonMemory(const trace::TraceBundle& bundle);

  // Sorted by space and base.
  [[nodiscard]] const std::vector<AnonModule>& modules() const noexcept { return modules_; }
  // The number of the module that a space has at an address: one of its own, or one of all spaces.
  [[nodiscard]] std::optional<std::size_t> find(trace::SpaceId space, std::uint64_t address) const noexcept;

 private:
  [[nodiscard]] std::optional<std::size_t> find_in(trace::SpaceId space,
                                                   std::uint64_t address) const noexcept;

  std::vector<AnonModule> modules_;
};

}  // namespace ptkit::code::symbol
