// Bytes to packets, one at a time, with last-IP, PSB+ and BBP state. Scalar and complete: it defines the answer.
#pragma once

#include "packet/packet.h"

namespace ptkit::packet {

// All that decoding carries from packet to packet: copy it to resume elsewhere.
struct DecoderState {
  std::uint64_t position = 0;
  std::uint64_t last_ip = 0;
  bool last_ip_known = false;
  bool in_psb = false;       // between PSB and PSBEND
  bool block_open = false;   // between BBP and BEP
  bool block_items_4 = false;  // the open block has 4-byte items
};

class PacketDecoder {
 public:
  explicit PacketDecoder(base::Bytes stream, DecoderState state = {}) noexcept : stream_(stream), state_(state) {}

  // Decodes the packet at the position and moves behind it. END_OF_STREAM at the end. On any other status but OK the
  // position stays, `out.offset` tells where and `out.size` how many bytes were looked at; call sync_forward() to go on.
  [[nodiscard]] base::Status next(Packet& out) noexcept;

  // Moves to the first PSB at or after `from` (position + 1 if the last packet failed). NO_SYNC if there is none;
  // the position is then the end. Resets last IP, PSB+ and block state.
  [[nodiscard]] base::Status sync_forward() noexcept { return sync_forward(state_.position); }
  [[nodiscard]] base::Status sync_forward(std::uint64_t from) noexcept;

  [[nodiscard]] std::uint64_t position() const noexcept { return state_.position; }
  [[nodiscard]] const DecoderState& state() const noexcept { return state_; }
  void set_state(const DecoderState& state) noexcept { state_ = state; }
  [[nodiscard]] base::Bytes stream() const noexcept { return stream_; }

 private:
  base::Bytes stream_;
  DecoderState state_;
};

// Offset of the first whole PSB (02 82 x 8) at or after `from`, or stream.size().
[[nodiscard]] std::uint64_t find_psb(base::Bytes stream, std::uint64_t from) noexcept;

}  // namespace ptkit::packet
