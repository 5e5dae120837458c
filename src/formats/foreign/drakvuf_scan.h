// Finds the PTW packets that DRAKVUF inserts into a stream: CR3 and TID of the running thread, and the event
// of its logs.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "trace/ptwrite_text.h"

namespace ptkit::formats::drakvuf {

inline constexpr std::uint64_t kPtwSize = 10;

struct Annotation {
  std::uint64_t offset = 0;
  trace::DrakvufMark mark = trace::DrakvufMark::EVENT;
  std::uint32_t data = 0;
};

struct Paging {
  std::uint64_t offset = 0;  // of a PIP packet
  std::uint64_t cr3 = 0;
};

struct ScanResult {
  std::vector<Annotation> annotations;  // by offset
  std::vector<Paging> pips;
  std::uint64_t no_data = 0;
};

// Finds annotations and PIP packets by decoding. Where decoding fails, searches the bytes for annotations,
// which have values that no CPU writes.
[[nodiscard]] ScanResult scan(base::Bytes stream);

// Returns true if the bytes hold an annotation.
[[nodiscard]] bool has_annotation(base::Bytes bytes);

}  // namespace ptkit::formats::drakvuf
