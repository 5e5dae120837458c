#include "flow/decoder/state_bytes.h"

#include <concepts>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/fields.h"
#include "flow/decoder/state_fields.h"

namespace ptkit::flow {
namespace {

// The largest value of each enumeration but ExecMode, which fits() checks.
constexpr std::tuple kLast{
    TipWatch::TIP,
    EventTrace::UNKNOWN,
    BinderState::Flow::LOST,
    Terminator::FAIL,
    BranchKind::TX_ABORT,
    code::insn::InsnClass::PTWRITE,
    code::insn::InsnKind::POPF,
    GapCause::TRACE_STOP,
    base::Status::BUFFER_FULL,
};

template <typename Fields, typename T>
void describe(Fields& fields, T& value) {
  if constexpr (Part<T>) {
    each_field(value, [&](const auto& field) { describe(fields, field.value); });
  } else if constexpr (kOptional<T>) {
    base::optional_fields(fields, value, [&](auto& content) { describe(fields, content); });
  } else if constexpr (requires { value.describe(fields); }) {
    value.describe(fields);
  } else if constexpr (std::is_enum_v<T> && !std::same_as<T, code::insn::ExecMode>) {
    fields(value, std::get<T>(kLast));
  } else {
    fields(value);
  }
}

bool is_mode(code::insn::ExecMode mode) noexcept {
  return mode == code::insn::ExecMode::BITS16 || mode == code::insn::ExecMode::BITS32 ||
         mode == code::insn::ExecMode::BITS64;
}

// True if all indices and offsets are in range. Packets and spans are before the position.
bool fits(const FlowState& state, const trace::Stream& stream, const trace::TraceBundle& bundle) {
  const std::uint64_t position = state.packets.position;
  const EventState& events = state.events;
  const StreamSpan& span = state.walk.span;
  return position <= stream.data.size() && events.psb < position && events.since < position &&
         events.tnt_before.value_or(0) < position && span.since < position && span.offset < position &&
         state.next_loss <= stream.losses.size() && state.context.next_switch <= stream.switches.size() &&
         state.context.thread.space < bundle.spaces.size() && is_mode(state.context.mode);
}

}  // namespace

std::vector<std::uint8_t> to_bytes(const FlowState& state) {
  base::FieldWriter fields;
  FlowState copy = state;
  describe(fields, copy);
  return std::move(fields.bytes());
}

bool from_bytes(base::Bytes bytes, const trace::Stream& stream, const trace::TraceBundle& bundle,
                FlowState& out) {
  base::FieldReader fields(bytes);
  FlowState read;
  describe(fields, read);
  if (!fields.good() || !fields.rest().empty() || !fits(read, stream, bundle)) return false;
  out = read;
  return true;
}

}  // namespace ptkit::flow
