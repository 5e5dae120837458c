// Does a TIP packet tell when its branch retired? A processor may defer TIPs (SDM vol. 3, "Deferred TIPs"):
// those of branches between the bits of a TNT packet are written after it, at a later time.
#pragma once

#include <cstdint>

namespace ptkit::flow {

// A processor that does not defer TIPs writes a TNT packet that is not full out before the TIP of an indirect
// jump or call. One that does writes such a TNT packet out for another packet, which then stands after the
// TIP, or "at any time" (SDM vol. 3, "Taken/Not-taken (TNT) Packet"). No recording of a real processor at
// hand has the latter, but it is possible. So one TNT packet, TIP, TNT packet shows that TIPs are in order,
// but only until one was deferred for certain: then it takes several in a row.
class TipOrder {
 public:
  [[nodiscard]] bool in_order() const noexcept { return to_see_ == 0; }

  // TNT packets, TIPs, and all others but PAD and CYC, in their order.
  void tnt(bool full) noexcept {
    if (in_order()) return;
    if (last_ == Last::TIP) --to_see_;
    last_ = full || in_order() ? Last::OTHER : Last::PARTIAL_TNT;
  }
  // `near`: its branch is an indirect jump or call. TIPs of returns and far transfers may have to be written
  // at once, and they write out those that were deferred. So does the last one of as many as can be kept.
  void tip(bool near) noexcept { last_ = near && last_ == Last::PARTIAL_TNT ? Last::TIP : Last::OTHER; }
  void other() noexcept { last_ = Last::OTHER; }
  // Bits of a TNT packet are younger than the branch of a TIP after it.
  void deferred() noexcept {
    to_see_ = kAgain;
    last_ = Last::OTHER;
  }
  void assume_in_order() noexcept {
    to_see_ = 0;
    last_ = Last::OTHER;
  }

  template <typename Fields>
  void describe(Fields& fields) {
    fields(to_see_, kAgain);
    fields(last_, Last::TIP);
  }
  friend bool operator==(const TipOrder&, const TipOrder&) = default;

 private:
  enum class Last : std::uint8_t {
    OTHER,
    PARTIAL_TNT,
    TIP,  // one of an indirect jump or call, after such a TNT packet
  };
  static constexpr std::uint8_t kAgain = 8;  // after one that was deferred

  std::uint8_t to_see_ = 1;
  Last last_ = Last::OTHER;
};

}  // namespace ptkit::flow
