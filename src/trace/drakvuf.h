// PTW packets that DRAKVUF's ipt plugin, not the processor, writes into a stream: which thread runs, and
// which event of DRAKVUF's logs comes. Only a recording with PTWEn = 0 can have them (rtit_ctl.h).
#pragma once

#include <cstdint>
#include <string>

namespace ptkit::trace::drakvuf {

// The upper half of an annotation's payload.
enum class Command : std::uint32_t {
  CR3 = 0xC3000000,      // data: lower half of CR3
  TID = 0x1D000000,      // data: TID of the running thread
  EVENT = 0xCC000000,    // data: EventUID of a line of the logs
  NO_DATA = 0xBAD10000,  // no trace since the annotation before: an annotation was left out
};

[[nodiscard]] constexpr Command command_of(std::uint64_t payload) noexcept {
  return static_cast<Command>(payload >> 32U);
}

[[nodiscard]] constexpr bool is_annotation(std::uint64_t payload) noexcept {
  const Command command = command_of(payload);
  return command == Command::CR3 || command == Command::TID || command == Command::EVENT ||
         command == Command::NO_DATA;
}

// An annotation in words: "drakvuf: tid 4711". Empty: the payload is none.
[[nodiscard]] std::string annotation_text(std::uint64_t payload);

}  // namespace ptkit::trace::drakvuf
