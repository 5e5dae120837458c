// Where control may go from a block, and how far a block was executed when another one began.
#pragma once

#include <optional>

#include "capture/guest_code.h"

namespace ptkit::capture {

[[nodiscard]] bool ends_in_branch(const GuestBlock& block) noexcept;

// The instruction of the block that is at `ip`, counted from 0.
[[nodiscard]] std::optional<std::size_t> index_at(const GuestBlock& block, std::uint64_t ip) noexcept;

// Control may be at `to` when the block's last instruction has retired.
[[nodiscard]] bool leads_to(const GuestBlock& block, std::uint64_t to) noexcept;

// How many instructions of `block` retired before `next` began; nothing: all.
[[nodiscard]] std::optional<std::size_t> left_before(const GuestBlock& block,
                                                     const GuestBlock& next) noexcept;

// How many instructions of `block` retired before the kernel took over at `ip`; nothing: all. `fault`: the
// instruction at `ip` was tried.
[[nodiscard]] std::optional<std::size_t> left_before(const GuestBlock& block, std::uint64_t ip,
                                                     bool fault) noexcept;

}  // namespace ptkit::capture
