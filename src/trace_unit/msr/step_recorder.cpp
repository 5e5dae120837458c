#include "trace_unit/msr/step_recorder.h"

#include "base/bits.h"
#include "base/hexadecimal.h"
#include "ptkit/rtit_regs.h"
#include "trace_unit/msr/explain.h"

namespace ptkit::trace_unit::msr {

namespace {

using base::bit;

std::string words_of_read(std::uint32_t msr, bool starts) {
  switch (msr) {
    case PT_MSR_RTIT_CTL:
      return "TraceEn must be 0: if it is set, another tracer uses the trace unit";
    case PT_MSR_RTIT_STATUS:
      return "why it stopped, and bytes since the last PSB";
    case PT_MSR_RTIT_OUTPUT_BASE:
      return "the range, or the ToPA table in use";
    case PT_MSR_RTIT_OUTPUT_MASK_PTRS:
      return "the position where output continues";
    case PT_MSR_DEBUGCTL:
      return starts ? "TR and BTS must be 0: if one is set, another program records branches"
                    : "bits of other programs are kept";
    case PT_MSR_DS_AREA:
      return "to be put back afterwards";
    default:
      return "Trace_ToPA_PMI says whether the interrupt is of tracing";
  }
}

std::string words_of_pointers(std::uint64_t value, bool topa) {
  const std::string where =
      ", continues at byte " + std::to_string(value >> PT_OUTPUT_OFFSET_SHIFT) + " of it";
  const std::uint64_t low = value & (bit(PT_OUTPUT_OFFSET_SHIFT) - 1);
  if (topa) return "entry " + std::to_string(low >> PT_OUTPUT_TABLE_OFFSET_SHIFT) + " of the table" + where;
  return "one range of " + bytes_text(low + 1) + where;
}

std::string words_of_debugctl(std::uint64_t value, bool netburst) {
  if (value == 0) return "TR, BTS, BTINT, BTS_OFF_OS and BTS_OFF_USR are 0; other bits as they were";
  const std::string words =
      netburst ? summary(*register_named("MSR_DEBUGCTLA"), value) : summary(PT_MSR_DEBUGCTL, value);
  return words + "; other bits as they were";
}

std::string words_of_write(std::uint32_t msr, std::uint64_t value, const StepRecorder& recorder) {
  if (msr == PT_MSR_RTIT_OUTPUT_MASK_PTRS) return words_of_pointers(value, recorder.topa);
  if (msr == PT_MSR_DS_AREA) return value != 0 ? "the DS area" : "as it was before";
  if (msr == PT_MSR_RTIT_OUTPUT_BASE) return recorder.topa ? "the ToPA table" : "the range";
  if (msr == PT_MSR_DEBUGCTL) return words_of_debugctl(value, recorder.netburst);
  std::string words = summary(msr, value);
  if (msr != PT_MSR_RTIT_CTL) return words;
  if (value == 0) return "as after a reset";
  return ((value & bit(PT_CTL_TRACE_EN)) != 0 ? "tracing begins: " : "tracing ends: ") + words;
}

// NetBurst has the same bits of Branch Trace Store in the same order, lower by this. Reads give 0, so a
// written value has no other bits.
constexpr unsigned kNetburstShift = PT_DEBUGCTL_TR - PT_DEBUGCTLA_TR;
static_assert(PT_DEBUGCTL_BTS - PT_DEBUGCTLA_BTS == kNetburstShift);
static_assert(PT_DEBUGCTL_BTINT - PT_DEBUGCTLA_BTINT == kNetburstShift);
static_assert(PT_DEBUGCTL_BTS_OFF_OS - PT_DEBUGCTLA_BTS_OFF_OS == kNetburstShift);
static_assert(PT_DEBUGCTL_BTS_OFF_USR - PT_DEBUGCTLA_BTS_OFF_USR == kNetburstShift);

int record_write(void* context, std::uint32_t msr, std::uint64_t value) {
  auto& recorder = *static_cast<StepRecorder*>(context);
  if (recorder.netburst && msr == PT_MSR_DEBUGCTL) value >>= kNetburstShift;
  recorder.steps.push_back({Access::WRITE, msr, value, words_of_write(msr, value, recorder)});
  return 0;
}

// Reads return the values of an unused trace unit with a pending ToPA PMI.
int record_read(void* context, std::uint32_t msr, std::uint64_t* value) {
  auto& recorder = *static_cast<StepRecorder*>(context);
  recorder.steps.push_back({Access::READ, msr, 0, words_of_read(msr, recorder.starts)});
  *value = msr == PT_MSR_PERF_GLOBAL_STATUS ? bit(PT_PERF_GLOBAL_TRACE_TOPA_PMI) : 0;
  return 0;
}

void record_barrier(void* context) {
  static_cast<StepRecorder*>(context)->steps.push_back(
      {Access::BARRIER, 0, 0, "what was traced is seen by other processors from here on"});
}

}  // namespace

pt_ops StepRecorder::ops() noexcept {
  return {.write = &record_write, .read = &record_read, .barrier = &record_barrier, .ctx = this};
}

MsrStep interrupt_entry() {
  return {
      Access::APIC, PT_APIC_LVT_PC, PT_APIC_LVT_NMI,
      "LVT performance counter: the PMI comes as an NMI (or name a vector), Mask is 0; x2APIC: MSR 0x834"};
}

void add_interrupt_end(MsrProgram& steps) {
  MsrStep entry = interrupt_entry();
  entry.words = "LVT performance counter again: the processor set Mask when it delivered the PMI";
  steps.push_back(std::move(entry));
  steps.push_back({Access::APIC, PT_APIC_EOI, 0, "EOI; none if the PMI came as an NMI; x2APIC: MSR 0x80b"});
}

std::string region_text(const Region& region) {
  return std::to_string(region.bytes) + " bytes at " + base::hexadecimal(region.base);
}

}  // namespace ptkit::trace_unit::msr
