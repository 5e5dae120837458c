// Successors of a block, and how many of its instructions retired before another block began.
#pragma once

#include <optional>

#include "capture/linux/encode/guest_code.h"

namespace ptkit::capture {

[[nodiscard]] bool ends_in_branch(const GuestBlock& block) noexcept;

// The index of the block's instruction at `ip`, from 0.
[[nodiscard]] std::optional<std::size_t> index_at(const GuestBlock& block, std::uint64_t ip) noexcept;

// Whether control may be at `to` after the block's last instruction.
[[nodiscard]] bool leads_to(const GuestBlock& block, std::uint64_t to) noexcept;

// How many instructions of `block` retired before `next` began. nullopt: all.
[[nodiscard]] std::optional<std::size_t> retired_before(const GuestBlock& block,
                                                        const GuestBlock& next) noexcept;

// How many instructions of `block` retired before the kernel took over at `ip`. nullopt: all. `fault`: the
// instruction at `ip` raised a fault.
[[nodiscard]] std::optional<std::size_t> retired_before(const GuestBlock& block, std::uint64_t ip,
                                                        bool fault) noexcept;

}  // namespace ptkit::capture
