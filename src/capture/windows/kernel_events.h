// Parses events of ETW's kernel provider: context switches, threads and unloaded images.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"

namespace ptkit::capture {

// A GUID as it is in memory.
using Guid = std::array<std::uint8_t, 16>;

// An event as ETW delivers it (EVENT_RECORD).
struct RawEvent {
  Guid provider{};
  std::uint8_t opcode = 0;
  std::uint8_t version = 0;
  bool has_64_bit_pointers = true;  // EVENT_HEADER_FLAG_64_BIT_HEADER
  std::uint32_t cpu = 0;            // counted through all processor groups
  std::uint64_t tsc = 0;            // the time stamp of a session with the clock of CPU cycles
  base::Bytes payload;              // UserData
};

struct KernelEvent {
  enum class Kind : std::uint8_t {
    SWITCH,  // of `cpu`, from thread `old_tid` to thread `tid`
    THREAD,  // thread `tid` of process `pid` begins, or was there before the session
    UNLOAD,  // process `pid` (0: the kernel) has unloaded the image at [address, address + bytes)
    LOSS,    // events before this one were lost
  };
  Kind kind = Kind::LOSS;
  std::uint32_t cpu = 0;
  std::uint64_t tsc = 0;
  std::int64_t pid = 0;
  std::int64_t tid = 0;
  std::int64_t old_tid = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

enum class ParsedEvent : std::uint8_t {
  KNOWN,
  OTHER,      // of no use here
  MALFORMED,  // too short, of 32-bit Windows, or older than Windows Vista
};

// Layouts: Microsoft's documentation of the classes CSwitch, Thread_TypeGroup1, Image_Load and RT_LostEvent.
[[nodiscard]] ParsedEvent parse_event(const RawEvent& raw, KernelEvent& out) noexcept;

}  // namespace ptkit::capture
