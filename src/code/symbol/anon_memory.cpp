#include "code/symbol/anon_memory.h"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

#include "base/digits.h"

namespace ptkit::code::symbol {

std::string AnonModule::name() const {
  std::array<char, base::kMostDigits> digits;
  return "[anon 0x" + std::string(digits.data(), base::put_hex(digits.data(), base)) + ']';
}

AnonMemory::AnonMemory(const trace::TraceBundle& bundle) {
  for (const trace::CodeRegion& region : bundle.code) {
    const std::uint64_t size = region.size != 0 ? region.size : region.bytes.size();
    if (region.file >= 0 || size == 0) continue;
    const std::uint64_t most = std::numeric_limits<std::uint64_t>::max() - region.address;
    modules_.push_back({region.space, region.address, region.address + std::min(size - 1, most)});
  }
  std::ranges::sort(modules_, {}, [](const AnonModule& one) { return std::tuple(one.space, one.base); });
  std::size_t joined = 0;
  for (const AnonModule& one : modules_) {
    const bool touches = joined != 0 && modules_[joined - 1].space == one.space &&
                         (one.base <= modules_[joined - 1].last || one.base - 1 == modules_[joined - 1].last);
    if (touches) {
      modules_[joined - 1].last = std::max(modules_[joined - 1].last, one.last);
    } else {
      modules_[joined++] = one;
    }
  }
  modules_.resize(joined);
}

std::optional<std::size_t> AnonMemory::find_in(trace::SpaceId space, std::uint64_t address) const noexcept {
  const auto above = std::ranges::upper_bound(modules_, std::pair(space, address), {},
                                              [](const auto& one) { return std::pair(one.space, one.base); });
  if (above == modules_.begin()) return std::nullopt;
  const AnonModule& found = *std::prev(above);
  if (found.space != space || address > found.last) return std::nullopt;
  return static_cast<std::size_t>(std::prev(above) - modules_.begin());
}

std::optional<std::size_t> AnonMemory::find(trace::SpaceId space, std::uint64_t address) const noexcept {
  const auto own = find_in(space, address);
  return own || space == trace::kAnySpace ? own : find_in(trace::kAnySpace, address);
}

}  // namespace ptkit::code::symbol
