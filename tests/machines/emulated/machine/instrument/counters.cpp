#include "counters.h"

#include <algorithm>

#include "ptkit/rtit_regs.h"

namespace ptkit::emulated {

namespace {

constexpr unsigned kPmc0 = 0xc1;
constexpr unsigned kPerfEvtSel0 = 0x186;
constexpr unsigned kFixedCtr0 = 0x309;
constexpr unsigned kPerfCapabilities = 0x345;
constexpr unsigned kFixedCtrCtrl = 0x38d;
constexpr unsigned kGlobalCtrl = 0x38f;
constexpr unsigned kFullPmc0 = 0x4c1;

constexpr std::uint64_t kFullWidthWrite = std::uint64_t{1} << 13;  // IA32_PERF_CAPABILITIES.FW_WRITE
constexpr std::uint64_t kMask = (std::uint64_t{1} << Counters::kWidth) - 1;
constexpr std::uint64_t kNever = ~std::uint64_t{0};

// IA32_PERFEVTSELx
constexpr std::uint64_t kEvent = 0xffff;  // with the unit mask
constexpr std::uint64_t kUser = 1U << 16;
constexpr std::uint64_t kKernel = 1U << 17;
constexpr std::uint64_t kEdge = 1U << 18;
constexpr std::uint64_t kInterrupt = 1U << 20;
constexpr std::uint64_t kEnable = 1U << 22;
constexpr std::uint64_t kInverted = 1U << 23;
constexpr std::uint64_t kThreshold = 0xff000000;
constexpr std::uint64_t kSelectBits = 0xffffffff;

// Four bits of IA32_FIXED_CTR_CTRL for each counter: kernel, user, any thread, interrupt.
constexpr std::uint64_t kFixedBits = (std::uint64_t{1} << 4 * Counters::kFixed) - 1;
constexpr std::uint64_t kGeneralMask = (std::uint64_t{1} << Counters::kGeneral) - 1;
constexpr std::uint64_t kFixedMask = ((std::uint64_t{1} << Counters::kFixed) - 1) << 32;

// Bits of the global registers.
constexpr std::uint64_t bit_of(unsigned counter) {
  const unsigned bit = counter < Counters::kGeneral ? counter : 32 + counter - Counters::kGeneral;
  return std::uint64_t{1} << bit;
}

// Instructions retired, core cycles and reference cycles: one of them is all of them here.
constexpr bool is_event(std::uint64_t select) {
  const std::uint64_t event = select & kEvent;
  const bool plain = (select & (kEdge | kInverted | kThreshold)) == 0;
  return plain && (event == 0x00c0 || event == 0x003c || event == 0x013c);
}

std::uint64_t sign_extended(std::uint64_t low) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(low))) & kMask;
}

}  // namespace

void Counters::reset() {
  values_.fill(0);
  selects_.fill(0);
  fixed_control_ = global_status_ = 0;
  global_control_ = kGeneralMask;
  counted_ = cpu_.get_icount();
  deadline_ = kNever;
  user_ = false;
}

bool Counters::counts(unsigned counter, bool user) const {
  if ((global_control_ & bit_of(counter)) == 0) return false;
  if (counter >= kGeneral) {
    const std::uint64_t control = fixed_control_ >> 4 * (counter - kGeneral);
    return (control & (user ? 2 : 1)) != 0;
  }
  const std::uint64_t select = selects_[counter];
  return (select & kEnable) != 0 && (select & (user ? kUser : kKernel)) != 0 && is_event(select);
}

bool Counters::interrupts(unsigned counter) const {
  if (counter < kGeneral) return (selects_[counter] & kInterrupt) != 0;
  return (fixed_control_ >> 4 * (counter - kGeneral) & 8) != 0;
}

bool Counters::on() const {
  for (unsigned counter = 0; counter < kAll; ++counter)
    if (counts(counter, true) || counts(counter, false)) return true;
  return false;
}

// Since the last count the privilege level has not changed, nor a register.
void Counters::count() {
  const std::uint64_t executed = cpu_.get_icount() - counted_;
  counted_ += executed;
  for (unsigned counter = 0; counter < kAll; ++counter) {
    if (!counts(counter, user_)) continue;
    const std::uint64_t sum = values_[counter] + executed;
    values_[counter] = sum & kMask;
    if (sum <= kMask) continue;
    global_status_ |= bit_of(counter);
    if (interrupts(counter)) cpu_.lapic->raise_perfmon();
  }
  user_ = user_mode();
  plan();
}

void Counters::plan() {
  deadline_ = kNever;
  for (unsigned counter = 0; counter < kAll; ++counter)
    if (counts(counter, user_)) deadline_ = std::min(deadline_, counted_ + (kMask + 1 - values_[counter]));
}

void Counters::interrupt(std::uint64_t cause) {
  global_status_ |= cause;
  cpu_.lapic->raise_perfmon();
}

// A masked entry holds the interrupt back. From Haswell on, an entry that is unmasked while a counter's
// overflow is not acknowledged gives another NMI: Linux unmasks it late (`late_ack` of
// intel_pmu_handle_irq()).
void Counters::unmasked() {
  std::uint64_t causes = global_status_;
  for (unsigned counter = 0; counter < kAll; ++counter)
    if (!interrupts(counter)) causes &= ~bit_of(counter);
  if (causes != 0) cpu_.lapic->raise_perfmon();
}

std::uint64_t* Counters::value(unsigned index) {
  if (index >= kPmc0 && index < kPmc0 + kGeneral) return &values_[index - kPmc0];
  if (index >= kFullPmc0 && index < kFullPmc0 + kGeneral) return &values_[index - kFullPmc0];
  if (index >= kFixedCtr0 && index < kFixedCtr0 + kFixed) return &values_[kGeneral + index - kFixedCtr0];
  return nullptr;
}

int Counters::read_msr(unsigned index, std::uint64_t& read) {
  count();
  if (const std::uint64_t* counter = value(index)) {
    read = *counter;
  } else if (index >= kPerfEvtSel0 && index < kPerfEvtSel0 + kGeneral) {
    read = selects_[index - kPerfEvtSel0];
  } else if (index == kFixedCtrCtrl) {
    read = fixed_control_;
  } else if (index == kGlobalCtrl) {
    read = global_control_;
  } else if (index == PT_MSR_PERF_GLOBAL_STATUS) {
    read = global_status_;
  } else if (index == PT_MSR_PERF_GLOBAL_OVF_CTRL) {
    read = 0;
  } else if (index == kPerfCapabilities) {
    read = kFullWidthWrite;
  } else {
    return -1;
  }
  return 1;
}

int Counters::write_msr(unsigned index, std::uint64_t written) {
  const auto store = [&](std::uint64_t& target, std::uint64_t allowed) {
    if ((written & ~allowed) != 0) return 0;
    target = written;
    plan();
    return 1;
  };
  count();
  if (index >= kPmc0 && index < kPmc0 + kGeneral) written = sign_extended(written);
  if (std::uint64_t* counter = value(index)) return store(*counter, kMask);
  if (index >= kPerfEvtSel0 && index < kPerfEvtSel0 + kGeneral)
    return store(selects_[index - kPerfEvtSel0], kSelectBits);
  if (index == kFixedCtrCtrl) return store(fixed_control_, kFixedBits);
  if (index == kGlobalCtrl) return store(global_control_, kGeneralMask | kFixedMask);
  if (index == PT_MSR_PERF_GLOBAL_OVF_CTRL) {
    global_status_ &= ~written;
    return 1;
  }
  return index == PT_MSR_PERF_GLOBAL_STATUS || index == kPerfCapabilities ? 0 : -1;
}

std::optional<std::uint64_t> Counters::read_counter(std::uint32_t selector) {
  constexpr std::uint32_t kFixedOnes = 1U << 30;
  const bool fixed = (selector & kFixedOnes) != 0;
  const std::uint32_t number = selector & ~kFixedOnes;
  if (number >= (fixed ? kFixed : kGeneral)) return std::nullopt;
  count();
  return values_[fixed ? kGeneral + number : number];
}

}  // namespace ptkit::emulated
