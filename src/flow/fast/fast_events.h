// Packets of a pass that the loop rarely meets and that have events: PSB+, MODE.Exec and FUP. Each function
// is for a whole sequence of packets, and uses it only if the simple decoder would emit nothing but counts.
#pragma once

#include <cstring>

#include "flow/fast/fast_pass.h"

namespace ptkit::flow {
namespace {

[[nodiscard]] const std::uint8_t* skip_pads(const std::uint8_t* at, const std::uint8_t* end) noexcept {
  while (at < end && *at == 0) ++at;
  return at;
}

// Reads the PSB+ at `at`: see read_psb(). While packets are disabled, a PSB+ mostly has the bytes of the one
// before.
template <typename Rows, Spans kSpans>
bool Pass<Rows, kSpans>::find_psb_header(const std::uint8_t* at, PsbHeader& header) noexcept {
  const std::uint8_t* const end = base_ + state_.end - kWindow;
  if (psb_ != nullptr && static_cast<std::size_t>(end - at) > psb_size_ &&
      std::memcmp(at, psb_, psb_size_) == 0) {
    header = psb_header_;
    header.psbend = at + psb_size_ - kPsbendSize;
    return true;
  }
  if (!read_psb(at, end, state_.known, header)) return false;
  if (header.on || header.ip != 0) return true;
  psb_ = at;
  psb_size_ = static_cast<std::size_t>(header.psbend - at) + kPsbendSize;
  psb_header_ = header;
  return true;
}

// Uses a PSB+ that repeats known state (EventBinder::status(), and events without effect). False: it has new
// state.
template <typename Rows, Spans kSpans>
bool Pass<Rows, kSpans>::take_psb(LoopPosition& position) {
  if (static_cast<std::uint64_t>(position.at - base_) > state_.last_psb) return false;
  PsbHeader header;
  if (!find_psb_header(position.at, header)) return false;
  if (header.on != (paths_.node_of(position.base) != 0)) return false;
  const auto offset = static_cast<std::uint64_t>(header.psbend - base_);
  if (header.on) {
    Transition* const transition = find_target(position.base, Packet::PSB, header.ip);
    if (transition == nullptr) return false;
    rows_.target(*transition);
    follow(*transition, position.base);
    // Returns may go back over the PSB: see CallStack.
    if ((transition->flags & TRANSITION_CALLS) != 0) apply_calls(*transition);
    add_span_run(rows_.rows, since_, offset);
  }
  calls_.flush();
  tip_order_.other();
  since_ = last_ = offset;
  room_.events += header.events;
  state_.repeats = true;
  position.last_ip = header.ip;
  position.at = header.psbend + kPsbendSize;
  return true;
}

// Uses a MODE.Exec with the known mode and the TIP.PGE that its event waits for: see
// EventDecoder::on_mode_exec().
template <typename Rows, Spans kSpans>
bool Pass<Rows, kSpans>::take_mode(LoopPosition& position) {
  if (!repeats_exec_mode(position.at, state_.known) || paths_.node_of(position.base) != 0) return false;
  const std::uint8_t* const end = base_ + state_.end - kWindow;
  const std::uint8_t* const at = skip_pads(position.at + kModeSize, end);
  if (at >= end || kTargetPackets[*at] != static_cast<std::uint8_t>(Packet::PGE)) return false;
  const IpForm& form = kIpForms[*at >> 5U];
  const std::uint64_t ip = ip_of(form, at, position.last_ip);
  Transition* const transition = find_target(position.base, Packet::PGE, ip);
  if (transition == nullptr) return false;
  rows_.target(*transition);
  follow(*transition, position.base);
  tip_order_.other();
  since_ = last_ = static_cast<std::uint64_t>(at - base_);
  if constexpr (Rows::kMarks) mark_enabled(ip, since_);
  room_.events += state_.known.mode_events;  // ENABLED instead of EXEC_MODE; IFLAG
  state_.repeats = true;
  position.last_ip = ip;
  position.at = at + form.size;
  return true;
}

// Uses the FUP of an interrupt or exception and its TIP.PGD without IP. The branch between both has no known
// target, so that it is no edge.
template <typename Rows, Spans kSpans>
bool Pass<Rows, kSpans>::take_interrupt(LoopPosition& position) {
  const IpForm& form = kIpForms[*position.at >> 5U];
  if ((*position.at & kKindBits) != kFupKind || form.size <= 1 || !state_.known.any) return false;
  const std::uint8_t* const end = base_ + state_.end - kWindow;
  const std::uint8_t* const at = skip_pads(position.at + form.size, end);
  if (at >= end || kTargetPackets[*at] != static_cast<std::uint8_t>(Packet::PGD_NO_IP)) return false;
  const std::uint64_t ip = ip_of(form, position.at, position.last_ip);
  Transition* const transition = find_target(position.base, Packet::FUP, ip);
  if (transition == nullptr) return false;
  rows_.target(*transition);
  follow(*transition, position.base);
  if ((transition->flags & TRANSITION_CALLS) != 0) apply_calls(*transition);
  calls_.flush();
  left_ = transition->path;
  tip_order_.other();
  since_ = last_ = static_cast<std::uint64_t>(at - base_);
  ++room_.events;
  position.last_ip = ip;
  position.at = at + 1;
  return true;
}

// Uses the packets at `position`. False: they are for the simple decoder.
template <typename Rows, Spans kSpans>
[[gnu::noinline]] bool Pass<Rows, kSpans>::take_events(LoopPosition& position) {
  if constexpr (Rows::kEvents) return false;
  if (!may_build()) return false;
  if constexpr (Rows::kEdges) {
    if (take_interrupt(position)) return true;
  }
  return take_psb(position) || take_mode(position);
}

}  // namespace
}  // namespace ptkit::flow
