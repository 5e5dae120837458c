// PTWRITE payloads in words. A recorder other than the processor may insert PTW packets: DRAKVUF's ipt plugin
// does, to say which thread runs, and which event of its logs comes. Only a recording with PTWEn = 0 can have
// them (rtit_ctl.h).
#pragma once

#include <cstdint>
#include <string>

namespace ptkit::trace {

// The upper half of the payload of a PTW packet that DRAKVUF inserts.
enum class DrakvufMark : std::uint32_t {
  CR3 = 0xC3000000,      // data: lower half of CR3
  TID = 0x1D000000,      // data: TID of the running thread
  EVENT = 0xCC000000,    // data: EventUID of a line of the logs
  NO_DATA = 0xBAD10000,  // no trace since the mark before: a mark was left out
};

[[nodiscard]] constexpr DrakvufMark drakvuf_mark(std::uint64_t payload) noexcept {
  return static_cast<DrakvufMark>(payload >> 32U);
}

[[nodiscard]] constexpr bool is_drakvuf_mark(std::uint64_t payload) noexcept {
  const DrakvufMark mark = drakvuf_mark(payload);
  return mark == DrakvufMark::CR3 || mark == DrakvufMark::TID || mark == DrakvufMark::EVENT ||
         mark == DrakvufMark::NO_DATA;
}

// The payload in words: "drakvuf: tid 4711". Empty: no recorder is known to insert it.
[[nodiscard]] std::string ptwrite_text(std::uint64_t payload);

}  // namespace ptkit::trace
