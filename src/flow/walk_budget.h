// How many instructions may be walked before the next packet has to be used: a walk ends although the code or
// the packets are wrong.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ptkit::flow {

// Between two packets there are no conditional branches, returns and indirect branches, so that real code
// gives some thousand instructions at most. Wrong code (zeros are instructions, too) gives as many as there
// is memory. Counts depend on the packets and the code alone, so that every decode ends in the same place.
class WalkBudget {
 public:
  // Of a packet: more than any compiler emits in one piece, yet decoded for the first time in less than 0.1
  // s.
  static constexpr std::uint64_t kPacket = std::uint64_t{1} << 18U;
  // More for each branch of a TNT packet, in parts of what the packet has: kPacket / kBitShare is 2^14.
  static constexpr std::uint64_t kBitShare = 16;
  // Walks that ended in an error cost what they walked. While nothing is left, each packet has kLeast only.
  static constexpr std::uint64_t kMost = kPacket * 8;
  static constexpr std::uint64_t kPerByte = 64;  // comes back with each byte of the stream
  static constexpr std::uint64_t kLeast = std::uint64_t{1} << 12U;

  // The packet at `offset` is to be applied; `walked` instructions were given before.
  void begin_packet(std::uint64_t walked, std::uint64_t offset) noexcept {
    if (allowed_ != kPacket) refill(offset);
    begin_ = walked;
    end_ = walked + allowed_;
  }
  // The packet began when `walked` instructions had been given, and had `bits` more than are left.
  void continue_packet(std::uint64_t walked, unsigned bits) noexcept {
    begin_ = walked;
    end_ = walked + allowed_;
    add_bits(bits);
  }
  [[nodiscard]] bool whole() const noexcept { return allowed_ == kPacket; }
  void add_bits(unsigned bits) noexcept { end_ += bits * (allowed_ / kBitShare); }
  [[nodiscard]] bool spent(std::uint64_t walked) const noexcept { return walked >= end_; }

  // Do both allow the same from `offset` on? What was left before counts no more once the stream gave it
  // back.
  [[nodiscard]] bool same_from(const WalkBudget& other, std::uint64_t offset) const noexcept {
    if (whole_at(offset) && other.whole_at(offset)) return true;
    return allowed_ == other.allowed_ && left_ == other.left_ && filled_at_ == other.filled_at_;
  }

  // For files: as it is between two packets.
  template <typename Fields>
  void describe(Fields& fields) {
    fields(allowed_, kPacket);
    fields(left_, kMost);
    fields(filled_at_);
  }

  // The packet at `offset` ended in an error.
  void pay(std::uint64_t walked, std::uint64_t offset) noexcept {
    charge(walked - begin_, offset);
    begin_ = walked;
  }
  // So many instructions were looked at for nothing, and not given: a packet may have several such walks.
  void charge(std::uint64_t count, std::uint64_t offset) noexcept {
    left_ -= std::min(left_, count);
    refill(offset);
  }

 private:
  [[nodiscard]] bool whole_at(std::uint64_t offset) const noexcept {
    return allowed_ == kPacket && offset - filled_at_ >= kMost / kPerByte;
  }
  void refill(std::uint64_t offset) noexcept {
    left_ = std::min(kMost, left_ + std::min(kMost, (offset - filled_at_) * kPerByte));
    filled_at_ = offset;
    allowed_ = std::clamp(left_, kLeast, kPacket);
  }

  std::uint64_t allowed_ = kPacket;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = kPacket;
  std::uint64_t left_ = kMost;
  std::uint64_t filled_at_ = 0;
};

}  // namespace ptkit::flow
