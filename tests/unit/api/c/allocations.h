// The allocations of this program, counted, and made to fail on demand (allocations.cpp).
#pragma once

#include <cstdint>

namespace ptkit::api::c {

// Number of blocks of operator new that are in use.
[[nodiscard]] std::int64_t live_allocations() noexcept;
// From now on, so many allocations of this thread succeed. Then one fails, or all do.
enum class Failing : std::uint8_t { ONE, ALL };
void fail_after(std::int64_t allocations, Failing failing) noexcept;
// No allocation fails any more. True if one has failed.
bool stop_failing() noexcept;

}  // namespace ptkit::api::c
