// The PTW packets that DRAKVUF puts into a stream: who runs from there on, and which event of its logs it
// was.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace ptkit::formats::drakvuf {

// The upper half of such a packet's payload.
enum class Command : std::uint32_t {
  CR3 = 0xC3000000,      // its lower half
  TID = 0x1D000000,      // who runs
  EVENT = 0xCC000000,    // the EventUID of a line of the logs
  NO_DATA = 0xBAD10000,  // nothing was traced since the annotation before: this one's was left out
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

// Finds annotations and PIPs: in packets as long as these can be told apart, else (annotations alone) by the
// bytes that no processor would write there.
[[nodiscard]] Found scan(base::Bytes stream);

// Is there one among these bytes?
[[nodiscard]] bool has_annotation(base::Bytes bytes);

}  // namespace ptkit::formats::drakvuf
