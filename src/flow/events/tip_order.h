// Detects whether a TIP packet gives the time of its branch. A processor may defer TIPs (SDM vol. 3,
// "Deferred TIPs"): it emits TIPs of branches between the bits of a TNT packet after that packet, at a later
// time.
#pragma once

#include <cstdint>

namespace ptkit::flow {

// A processor that does not defer TIPs emits a partial TNT packet before the TIP of an indirect jump or call.
// A processor that defers TIPs emits a partial TNT packet for another packet, which then follows the TIP, or
// "at any time" (SDM vol. 3, "Taken/Not-taken (TNT) Packet"). No known recording of hardware shows the
// latter, but it is possible. So one sequence TNT, TIP, TNT proves that TIPs are in order. After a TIP that
// was certainly deferred, the proof takes kProofsAfterDeferral sequences.
//
//            partial TNT              near TIP           TNT
//   OTHER -----------------> PARTIAL_TNT --------> TIP ----------> one proof
//
// A TNT packet leads to PARTIAL_TNT or OTHER, and any other packet leads to OTHER.
class TipOrder {
 public:
  [[nodiscard]] bool in_order() const noexcept { return proofs_needed_ == 0; }

  // TNT packets, TIPs, and all other packets but PAD and CYC, in stream order.
  void tnt(bool full) noexcept {
    if (in_order()) return;
    if (last_ == Last::TIP) --proofs_needed_;
    last_ = full || in_order() ? Last::OTHER : Last::PARTIAL_TNT;
  }
  // `near`: the branch is an indirect jump or call. A processor may have to emit TIPs of returns and far
  // transfers at once; these flush the deferred TIPs. So does the TIP that fills the buffer of deferred TIPs.
  void tip(bool near) noexcept { last_ = near && last_ == Last::PARTIAL_TNT ? Last::TIP : Last::OTHER; }
  void other() noexcept { last_ = Last::OTHER; }
  // Bits of a TNT packet are younger than the branch of a TIP after it, so that TIP was deferred.
  void deferred() noexcept {
    proofs_needed_ = kProofsAfterDeferral;
    last_ = Last::OTHER;
  }
  void expect_in_order() noexcept {
    proofs_needed_ = 0;
    last_ = Last::OTHER;
  }

  template <typename Fields>
  void describe(Fields& fields) {
    auto& [proofs_needed, last] = *this;
    fields(proofs_needed, kProofsAfterDeferral);
    fields(last, Last::TIP);
  }
  friend bool operator==(const TipOrder&, const TipOrder&) = default;

 private:
  enum class Last : std::uint8_t {
    OTHER,
    PARTIAL_TNT,
    TIP,  // TIP of an indirect jump or call, after a partial TNT packet
  };
  static constexpr std::uint8_t kProofsAfterDeferral = 8;  // proofs that are needed after a deferred TIP

  std::uint8_t proofs_needed_ = 1;
  Last last_ = Last::OTHER;
};

}  // namespace ptkit::flow
