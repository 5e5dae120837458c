// The fast path of packet generation: branches of user code while packets are enabled and no other packet is
// due. It writes the bytes that PacketGenerator's calls write.
//
//                    begin_fast_path()
//   PacketGenerator's calls  <------------------>  FastEncoder: has the pending TNT bits, the last IP and the
//   output
//                     end_fast_path()
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "trace_unit/generator/return_stack.h"
#include "trace_unit/generator/tnt_buffer.h"

namespace ptkit::trace_unit::generator {

static_assert(std::endian::native == std::endian::little);

// TNT bits without a packet yet, as in a TNT packet: a stop bit, then the bits, the newest lowest. A local
// variable of this type is in a register.
struct PendingBits {
  std::uint64_t bits = 1;

  // Adds a bit if `mask` is all ones. If `mask` is 0, `taken` is 0, too.
  void add_if(std::uint64_t mask, std::uint64_t taken) noexcept { bits += (bits & mask) + taken; }
  void add(bool taken) noexcept { add_if(~std::uint64_t{0}, taken ? 1 : 0); }
  [[nodiscard]] unsigned count() const noexcept { return static_cast<unsigned>(std::bit_width(bits)) - 1; }
  // Removes all bits but the newest `rest` ones, and returns them without their stop bit.
  [[nodiscard]] std::uint64_t take_but(unsigned rest) noexcept {
    const std::uint64_t stop = std::uint64_t{1} << rest;
    const std::uint64_t taken = (bits ^ std::bit_floor(bits)) >> rest;
    bits = (bits & (stop - 1)) | stop;
    return taken;
  }
};

class FastEncoder {
 public:
  static constexpr unsigned kSteps = 16;  // maximum number of steps after each make_room()

  // Whether only branches need packets until `tsc`: no timing packet and no PSB is due.
  [[nodiscard]] bool quiet_until(std::uint64_t tsc) const noexcept {
    return tsc - now_ < stop_ticks_ && tsc < mtc_tsc_ && out_ < busy_at_;
  }
  void set_time(std::uint64_t tsc) noexcept { now_ = tsc; }
  // With CYC packets, the step after set_time() stands between these calls: it has that time, and later steps
  // have no times. Call both while no PendingBits are outside of the encoder.
  void begin_timed_step() noexcept {
    put_whole(pending_);
    cyc_ = true;
  }
  void end_timed_step() noexcept {
    if (pending_.count() == TntBuffer::kShortBits) put_bits(pending_);
    cyc_ = false;
  }
  void make_room(PendingBits& pending) noexcept {
    if (pending.bits >> kGroup != 0) put_group(pending);
  }
  // Returns false if the output is full: end_fast_path() must take its bytes.
  [[nodiscard]] bool has_room() const noexcept { return out_ < full_at_; }

  // Steps other than PendingBits::add. See PacketGenerator.
  void call(std::uint64_t next_ip) noexcept { calls_->push(next_ip); }
  void tip(PendingBits& pending, std::uint64_t target) noexcept {
    put_bits(pending);
    if (cyc_) put_cyc();
    put_tip(target);
  }
  void ret(PendingBits& pending, std::uint64_t target) noexcept {
    const bool matches = calls_->ret(target, tip_ret_);
    if (matches && compresses_) {
      pending.add(true);
    } else {
      tip(pending, target);
    }
  }

  // Call pending() before the first step and set_pending() after the last one.
  [[nodiscard]] PendingBits pending() const noexcept { return pending_; }
  void set_pending(const PendingBits& pending) noexcept { pending_ = pending; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return static_cast<std::uint64_t>(out_ - begin_); }

 private:
  friend class Generator;
  static constexpr unsigned kGroup = 48;         // bits that make eight TNT-8 packets
  static constexpr std::size_t kStepBytes = 10;  // the longest step: a short TNT and a TIP
  static constexpr std::size_t kMargin = 32 + kSteps * kStepBytes;

  // Converts 48 bits, the newest lowest, to eight short TNT packets of six bits, without branches or tables:
  //
  //   byte: | 7: stop bit 1 | 6: oldest | 5 | 4 | 3 | 2 | 1: newest | 0: header 0 |
  static std::uint64_t tnt_bytes(std::uint64_t bits) noexcept {
    std::uint64_t x = bits >> 24 | (bits & 0xffffff) << 32;
    x = (x >> 12 & 0x00000fff00000fff) | (x & 0x00000fff00000fff) << 16;
    x = (x >> 6 & 0x003f003f003f003f) | (x & 0x003f003f003f003f) << 8;
    return x << 1 | 0x8080808080808080;
  }
  void put(std::uint64_t bytes) noexcept { std::memcpy(out_, &bytes, sizeof bytes); }
  void put_group(PendingBits& pending) noexcept {
    const unsigned rest = pending.count() - kGroup;
    put(tnt_bytes(pending.take_but(rest)));
    out_ += kGroup / TntBuffer::kShortBits;
  }
  // Writes all complete packets. Fewer than six bits remain.
  void put_whole(PendingBits& pending) noexcept {
    make_room(pending);
    const unsigned packets = pending.count() / TntBuffer::kShortBits;
    const unsigned bits = packets * TntBuffer::kShortBits;
    put(tnt_bytes(pending.take_but(pending.count() - bits) << (kGroup - bits)));
    out_ += packets;
  }
  void put_bits(PendingBits& pending) noexcept {
    if (cyc_ && pending.bits != 1) put_cyc();
    put_whole(pending);
    *out_ = static_cast<std::uint8_t>(pending.bits << 1);
    out_ += pending.bits != 1 ? 1 : 0;
    pending = {};
  }
  // CYC: five bits in the first byte, seven in each further byte. The lowest bit of a further byte is set if
  // another byte follows.
  void put_cyc() noexcept {
    std::uint64_t cycles = now_ - cyc_tsc_;
    if (cycles == 0 || cycles < cyc_threshold_) return;
    cyc_tsc_ = now_;
    unsigned byte = static_cast<unsigned>(cycles & 0x1f) << 3 | 3;
    cycles >>= 5;
    unsigned more = 4;
    for (; cycles != 0; cycles >>= 7) {
      *out_++ = static_cast<std::uint8_t>(byte | more);
      byte = static_cast<unsigned>(cycles & 0x7f) << 1;
      more = 1;
    }
    *out_++ = static_cast<std::uint8_t>(byte);
  }
  // Writes the shortest form, as packet::compress_ip does if the last IP is known.
  void put_tip(std::uint64_t target) noexcept {
    constexpr unsigned kTip = 0x0d;
    const std::uint64_t changed = target ^ last_ip_;
    last_ip_ = target;
    const unsigned far = (changed >> 16 != 0 ? 1U : 0U) + (changed >> 32 != 0 ? 1U : 0U);
    unsigned form = 1 + far;
    unsigned size = 2 + 2 * far;
    if (form == 3 && (target + 0x8000'0000'0000) >> 48 != 0) {
      form = changed >> 48 == 0 ? 4 : 6;
      size = form == 4 ? 6 : 8;
    }
    *out_ = static_cast<std::uint8_t>(kTip | form << 5);
    std::memcpy(out_ + 1, &target, sizeof target);
    out_ += 1 + size;
  }

  PendingBits pending_;
  bool compresses_ = false;
  TipRet tip_ret_ = TipRet::POPS;
  bool cyc_ = false;  // CYC packets are on, and the time of the next step is known
  std::uint8_t* out_ = nullptr;
  std::uint64_t last_ip_ = 0;
  ReturnStack* calls_ = nullptr;
  std::uint64_t now_ = 0;
  std::uint64_t mtc_tsc_ = 0;
  std::uint64_t stop_ticks_ = 0;
  std::uint64_t cyc_tsc_ = 0;  // time of the last CYC packet: on the fast path, core cycles are TSC ticks
  std::uint64_t cyc_threshold_ = 0;
  const std::uint8_t* busy_at_ = nullptr;  // from here on a PSB may be due, or the output is full
  const std::uint8_t* full_at_ = nullptr;
  const std::uint8_t* begin_ = nullptr;
};

}  // namespace ptkit::trace_unit::generator
