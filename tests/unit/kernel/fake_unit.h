// Registers that fault where a processor's would on a wrong order, and remember who asked for what.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "common/pt_ops.h"
#include "ptkit/rtit_regs.h"

namespace ptkit::tests {

class FakeUnit {
 public:
  struct Access {
    char kind;  // 'w', 'r', 'b': barrier
    std::uint32_t msr;
    std::uint64_t value;
    bool operator==(const Access&) const = default;
  };

  [[nodiscard]] pt_ops ops() {
    return {.write = &write_msr, .read = &read_msr, .barrier = &barrier, .ctx = this};
  }

  // Every access that worked, in order.
  [[nodiscard]] const std::vector<Access>& log() const { return log_; }
  void forget() { log_.clear(); }
  std::uint64_t& at(std::uint32_t msr) { return registers_[msr]; }
  // Writes of these fault, whatever the order.
  std::set<std::uint32_t> broken;

  [[nodiscard]] bool tracing() { return (at(PT_MSR_RTIT_CTL) & 1) != 0; }

 private:
  static int write_msr(void* context, std::uint32_t msr, std::uint64_t value) {
    return static_cast<FakeUnit*>(context)->write(msr, value);
  }
  static int read_msr(void* context, std::uint32_t msr, std::uint64_t* value) {
    auto* unit = static_cast<FakeUnit*>(context);
    if (!known(msr)) return 1;
    *value = unit->at(msr);
    unit->log_.push_back({'r', msr, *value});
    return 0;
  }
  static void barrier(void* context) { static_cast<FakeUnit*>(context)->log_.push_back({'b', 0, 0}); }

  static bool rtit(std::uint32_t msr) {
    return msr == PT_MSR_RTIT_OUTPUT_BASE || msr == PT_MSR_RTIT_OUTPUT_MASK_PTRS ||
           (msr >= PT_MSR_RTIT_CTL && msr <= PT_MSR_RTIT_CR3_MATCH) ||
           (msr >= PT_MSR_RTIT_ADDR0_A && msr < PT_MSR_RTIT_ADDR0_A + 2 * PT_MSR_RTIT_ADDR_COUNT);
  }
  static bool known(std::uint32_t msr) {
    return rtit(msr) || msr == PT_MSR_DS_AREA || msr == PT_MSR_DEBUGCTL || msr == PT_MSR_PERF_GLOBAL_STATUS ||
           msr == PT_MSR_PERF_GLOBAL_OVF_CTRL;
  }

  int write(std::uint32_t msr, std::uint64_t value) {
    if (!known(msr) || broken.contains(msr)) return 1;
    if (rtit(msr) && tracing()) {
      const bool clears = msr == PT_MSR_RTIT_CTL && (value & 1) == 0;
      const bool same = msr == PT_MSR_RTIT_CTL && value == at(msr);
      if (!clears && !same) return 1;
    }
    if (msr == PT_MSR_PERF_GLOBAL_OVF_CTRL) at(PT_MSR_PERF_GLOBAL_STATUS) &= ~value;
    at(msr) = value;
    log_.push_back({'w', msr, value});
    return 0;
  }

  std::map<std::uint32_t, std::uint64_t> registers_;
  std::vector<Access> log_;
};

}  // namespace ptkit::tests
