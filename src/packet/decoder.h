// Decodes bytes into packets one at a time, with last-IP, PSB+ and BBP state. Scalar and complete: it defines
// the result that the bulk kernels have to give.
#pragma once

#include "packet/errata.h"
#include "packet/packet.h"

namespace ptkit::packet {

// State between packets. A copy resumes decoding elsewhere.
struct DecoderState {
  std::uint64_t position = 0;
  std::uint64_t last_ip = 0;
  bool last_ip_known = false;
  bool in_psb = false;         // after PSB, up to PSBEND or another packet that ends the PSB+
  bool block_open = false;     // between BBP and BEP
  bool block_items_4 = false;  // the open block has 4-byte items
  bool has_cs_base = false;    // the last MODE.Exec was for 16 or 32-bit code
};

class PacketDecoder {
 public:
  // SKD007 and SKZ84 damage packets and are handled here; the other errata concern the meaning of packets.
  // `cs_base`: IP payloads of 16 and 32-bit code are effective addresses in a code segment with this base
  // (CPUID.14H.0:ECX[31] is 0). Packet::ip is linear, Packet::payload has the bytes of the stream.
  explicit PacketDecoder(base::Bytes stream, DecoderState state = {}, Errata errata = {},
                         std::uint32_t cs_base = 0) noexcept
      : stream_(stream), state_(state), errata_(errata), cs_base_(cs_base) {}

  // Decodes the packet at the position and advances. END_OF_STREAM at the end. With any other status but OK
  // the position stays: `out.offset` is the position, `out.size` the number of examined bytes, and `out.kind`
  // the kind by its opcode (not for BAD_OPCODE). Call sync_forward() to continue.
  [[nodiscard]] base::Status next(Packet& out) noexcept;

  // Continues after an error: advances to the next PSB that was not decoded yet, even if a packet before the
  // position includes its first bytes. NO_SYNC if there is none; the position is then the end. Resets last
  // IP, PSB+ and block state. Always advances when called after next().
  [[nodiscard]] base::Status sync_forward() noexcept;
  // As above, to the first PSB at or after `from`.
  [[nodiscard]] base::Status sync_forward(std::uint64_t from) noexcept;

  [[nodiscard]] std::uint64_t position() const noexcept { return state_.position; }
  [[nodiscard]] const DecoderState& state() const noexcept { return state_; }
  void set_state(const DecoderState& state) noexcept { state_ = state; }
  [[nodiscard]] base::Bytes stream() const noexcept { return stream_; }
  [[nodiscard]] const Errata& errata() const noexcept { return errata_; }
  [[nodiscard]] std::uint32_t cs_base() const noexcept { return cs_base_; }
  // True if cs_base is added to the current IPs.
  [[nodiscard]] bool adds_cs_base() const noexcept { return cs_base_ != 0 && state_.has_cs_base; }

 private:
  void apply(Packet& packet) noexcept;
  void apply_ip(Packet& packet) noexcept;
  void apply_mode(const Packet& mode_exec) noexcept;
  void find_mode(const Packet& psb_or_ovf) noexcept;

  base::Bytes stream_;
  DecoderState state_;
  Errata errata_;
  std::uint32_t cs_base_;
};

// Offset of the first complete PSB (02 82 x 8) at or after `from`, or stream.size(). In a longer run of 02
// 82, PSBs are counted from its end, so that the tail of a truncated PSB before a complete one does not shift
// it.
[[nodiscard]] std::uint64_t find_psb(base::Bytes stream, std::uint64_t from) noexcept;

}  // namespace ptkit::packet
