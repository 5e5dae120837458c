// A whole PSB+ that repeats what is known already, read at once.
#pragma once

#include <cstdint>

namespace ptkit::flow {

// What a PSB+ may say without changing anything.
struct PsbKnown {
  bool any = false;                   // false: none may
  std::uint8_t mode = 0;              // MODE.Exec's payload
  unsigned mode_events = 1;           // that the simple decoder gives for it
  const std::uint8_t* pip = nullptr;  // a PIP packet that says the same; null: none is known
};

struct PsbHeader {
  const std::uint8_t* psbend = nullptr;
  std::uint64_t ip = 0;  // packets are on
  bool on = false;
  unsigned events = 0;  // that the simple decoder gives for it
};

// The PSB+ at `at`; it and what follows end before `end`. False: it is another packet, or says something new,
// or is not plain.
[[nodiscard]] bool read_psb(const std::uint8_t* at, const std::uint8_t* end, const PsbKnown& known,
                            PsbHeader& out) noexcept;

}  // namespace ptkit::flow
