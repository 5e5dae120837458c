// Reads a complete PSB+, or a MODE.Exec, at once if it only repeats known state.
#pragma once

#include <cstdint>

namespace ptkit::flow {

// State that a PSB+ may repeat.
struct PsbKnown {
  bool any = false;                   // false: no PSB+ is read at once
  std::uint8_t mode = 0;              // MODE.Exec's payload
  unsigned mode_events = 1;           // number of events that the simple decoder emits for it
  const std::uint8_t* pip = nullptr;  // a PIP packet with the current CR3; null: unknown
};

struct PsbHeader {
  const std::uint8_t* psbend = nullptr;
  std::uint64_t ip = 0;  // of its FUP; 0 without
  bool on = false;       // packets are enabled
  unsigned events = 0;   // number of events that the simple decoder emits for it
};

// Reads the PSB+ at `at`, which ends before `end` with the packet after it. False: it is another packet, has
// new state, or is not plain.
[[nodiscard]] bool read_psb(const std::uint8_t* at, const std::uint8_t* end, const PsbKnown& known,
                            PsbHeader& out) noexcept;

inline constexpr std::size_t kModeSize = 2;

// True if the packet at `at` is a MODE.Exec with the known mode.
[[nodiscard]] bool repeats_exec_mode(const std::uint8_t* at, const PsbKnown& known) noexcept;

}  // namespace ptkit::flow
