#include <array>
#include <utility>

#include "base/bits.h"
#include "base/hexadecimal.h"
#include "common/pt_bts.h"
#include "ptkit/rtit_regs.h"
#include "trace_unit/msr/program.h"
#include "trace_unit/msr/step_recorder.h"

namespace ptkit::trace_unit::msr {

namespace {

constexpr std::size_t kIndexField = 1;
constexpr std::array<std::string_view, 4> kFields{"BTS buffer base", "BTS index: the next record",
                                                  "BTS absolute maximum: after the buffer",
                                                  "BTS interrupt threshold"};
constexpr std::uint64_t kAddresses32 = std::uint64_t{1} << 32U;

std::uint32_t word_of(const BtsOptions& options) { return options.bits32 ? 4 : 8; }

MsrStep field_step(const BtsOptions& options, std::size_t field, std::uint64_t value, std::string words) {
  if (options.bits32) words += "; 4 bytes";
  return {Access::MEMORY, options.area + word_of(options) * field, value, std::move(words)};
}

base::Failure refused_buffer(const BtsOptions& options) {
  const std::string word = std::to_string(word_of(options));
  return base::bad_config("a BTS buffer of " + region_text(options.buffer) + ": it begins at a multiple of " +
                          word + " and has room for records of " + std::to_string(3 * word_of(options)) +
                          " bytes, more than the " + std::to_string(options.reserve) +
                          " after the threshold");
}

// Empties the buffer while nothing is stored: the processor's own write of the index would be lost.
MsrProgram interrupt_of(const BtsOptions& options, const pt_bts_state& state, StepRecorder& recorder) {
  const pt_ops ops = recorder.ops();
  pt_bts_pause(&ops);
  recorder.steps.push_back(field_step(
      options, kIndexField, options.buffer.base,
      "BTS index: the base again, after the records before the index were copied (the PMI is another "
      "one's if the index is below the threshold)"));
  if (!options.netburst) {
    recorder.steps.push_back({Access::WRITE, PT_MSR_PERF_GLOBAL_OVF_CTRL,
                              base::bit(PT_PERF_GLOBAL_OVF_BUFFER),
                              "acknowledges OvfDSBuffer, where IA32_PERF_GLOBAL_STATUS has it set"});
  }
  pt_bts_resume(&ops, &state);
  add_interrupt_end(recorder.steps);
  return std::exchange(recorder.steps, {});
}

}  // namespace

base::Result<BtsPlan> plan_bts(const BtsOptions& options) {
  pt_ds_area area{};
  const std::uint32_t word = word_of(options);
  if (options.area % word != 0)
    return base::bad_config("a DS area at " + base::hexadecimal(options.area) + ": it is aligned to " +
                            std::to_string(word));
  if (pt_bts_layout(&area, options.buffer.base, options.buffer.bytes, word, options.reserve) != 0)
    return refused_buffer(options);
  if (options.bits32 && (area.bts_maximum > kAddresses32 || options.area >= kAddresses32))
    return base::bad_config("a DS area at " + base::hexadecimal(options.area) + " with a buffer of " +
                            region_text(options.buffer) + ": 32-bit systems have 4 GiB of addresses");
  BtsPlan plan;
  const std::uint64_t values[] = {area.bts_base, area.bts_index, area.bts_maximum, area.bts_threshold};
  for (std::size_t i = 0; i < kFields.size(); ++i)
    plan.memory.push_back(field_step(options, i, values[i], std::string(kFields[i])));
  if (options.reserve != 0) plan.memory.push_back(interrupt_entry());
  StepRecorder recorder;
  recorder.netburst = options.netburst;
  const pt_ops ops = recorder.ops();
  pt_bts_state state{.ds_area = options.area,
                     .debugctl = pt_bts_debugctl(options.os, options.user, options.reserve != 0),
                     .saved_ds_area = 0};
  recorder.starts = true;
  pt_bts_start(&ops, &state);
  recorder.starts = false;
  plan.start = std::exchange(recorder.steps, {});
  if (options.reserve != 0) plan.interrupt = interrupt_of(options, state, recorder);
  pt_bts_stop(&ops, &state);
  plan.stop = std::move(recorder.steps);
  return plan;
}

}  // namespace ptkit::trace_unit::msr
