// Limit of the instructions that are walked for one packet, so that a walk with wrong code or wrong packets
// ends.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ptkit::flow {

// Code between two packets has no conditional branches, returns or indirect branches, so correct code
// executes some thousand instructions at most. A wrong image (e.g. zero-filled memory, which decodes as ADD)
// would be walked to the end of memory. The counts depend on packets and code alone, so every decode stops at
// the same instruction.
class WalkBudget {
 public:
  // Instructions of a packet: more than any compiler emits without a branch, and decoded for the first time
  // in less than 0.1 s.
  static constexpr std::uint64_t kPacket = std::uint64_t{1} << 18U;
  // Each branch of a TNT packet adds kPacket / kBitShare = 2^14 instructions.
  static constexpr std::uint64_t kBitShare = 16;
  // Token bucket: a walk that ends in an error costs its instructions. While the bucket is empty, a packet
  // has kLeast only.
  static constexpr std::uint64_t kMost = kPacket * 8;
  static constexpr std::uint64_t kPerByte = 64;  // refill for each byte of the stream
  static constexpr std::uint64_t kLeast = std::uint64_t{1} << 12U;

  // The packet at `offset` is next; `walked` instructions were emitted before.
  void begin_packet(std::uint64_t walked, std::uint64_t offset) noexcept {
    if (allowed_ != kPacket) refill(offset);
    begin_ = walked;
    end_ = walked + allowed_;
  }
  // The packet began after `walked` instructions, and `bits` of its bits are used already.
  void continue_packet(std::uint64_t walked, unsigned bits) noexcept {
    begin_ = walked;
    end_ = walked + allowed_;
    add_bits(bits);
  }
  [[nodiscard]] bool whole() const noexcept { return allowed_ == kPacket; }
  void add_bits(unsigned bits) noexcept { end_ += bits * (allowed_ / kBitShare); }
  [[nodiscard]] bool spent(std::uint64_t walked) const noexcept { return walked >= end_; }

  // True if both budgets allow the same from `offset` on. Earlier costs do not matter once the stream has
  // refilled the bucket.
  [[nodiscard]] bool same_from(const WalkBudget& other, std::uint64_t offset) const noexcept {
    if (whole_at(offset) && other.whole_at(offset)) return true;
    return allowed_ == other.allowed_ && left_ == other.left_ && filled_at_ == other.filled_at_;
  }

  // For files: the state between two packets.
  template <typename Fields>
  void describe(Fields& fields) {
    auto& [allowed, begin, end, left, filled_at] = *this;  // `begin` and `end` are of one packet
    fields(allowed, kPacket);
    fields(left, kMost);
    fields(filled_at);
  }

  // The packet at `offset` ended in an error.
  void pay(std::uint64_t walked, std::uint64_t offset) noexcept {
    charge(walked - begin_, offset);
    begin_ = walked;
  }
  // `count` instructions were walked without being emitted. A packet may have several such walks.
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
