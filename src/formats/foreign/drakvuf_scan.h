// Finds the PTW packets that DRAKVUF inserts into a stream: CR3 and TID of the running thread, and the event
// of its logs.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace ptkit::formats::drakvuf {

// The upper half of an annotation's payload.
enum class Command : std::uint32_t {
  CR3 = 0xC3000000,      // data: lower half of CR3
  TID = 0x1D000000,      // data: TID of the running thread
  EVENT = 0xCC000000,    // data: EventUID of a line of the logs
  NO_DATA = 0xBAD10000,  // no trace since the annotation before: an annotation was left out
};

inline constexpr std::uint64_t kPtwSize = 10;

struct Annotation {
  std::uint64_t offset = 0;
  Command command = Command::EVENT;
  std::uint32_t data = 0;
};

struct Paging {
  std::uint64_t offset = 0;  // of a PIP packet
  std::uint64_t cr3 = 0;
};

struct Found {
  std::vector<Annotation> annotations;  // by offset
  std::vector<Paging> pips;
  std::uint64_t no_data = 0;
};

// Finds annotations and PIP packets by decoding. Where decoding fails, searches the bytes for annotations,
// which have values that no CPU writes.
[[nodiscard]] Found scan(base::Bytes stream);

// Returns true if the bytes hold an annotation.
[[nodiscard]] bool has_annotation(base::Bytes bytes);

}  // namespace ptkit::formats::drakvuf
