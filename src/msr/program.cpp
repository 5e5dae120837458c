#include "msr/program.h"

#include <array>
#include <utility>

#include "base/bits.h"
#include "base/hexadecimal.h"
#include "common/pt_bts.h"
#include "common/pt_sequence.h"
#include "common/pt_topa.h"
#include "msr/caps.h"
#include "msr/explain.h"

namespace ptkit::msr {

namespace {

constexpr std::uint64_t kPage = PT_TOPA_LEAST_BYTES;
constexpr std::uint64_t kEntries = kPage / PT_TOPA_ENTRY_BYTES;
constexpr std::uint64_t kMostTables = 4096;  // 2 million regions

using base::bit;

std::string words_of_read(std::uint32_t msr) {
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
      return "TR and BTS must be 0 at the start: set, another program records branches; other bits stay";
    case PT_MSR_DS_AREA:
      return "to be put back afterwards";
    default:
      return "Trace_ToPA_PMI says whether the interrupt is of tracing";
  }
}

struct Recorder {
  MsrProgram steps;
  bool topa = false;  // the loaded configuration uses ToPA
};

std::string words_of_pointers(std::uint64_t value, bool topa) {
  const std::string place =
      ", continues at byte " + std::to_string(value >> PT_OUTPUT_OFFSET_SHIFT) + " of it";
  const std::uint64_t low = value & (bit(PT_OUTPUT_OFFSET_SHIFT) - 1);
  if (topa) return "entry " + std::to_string(low >> PT_OUTPUT_TABLE_OFFSET_SHIFT) + " of the table" + place;
  return "one range of " + bytes_text(low + 1) + place;
}

std::string words_of_write(std::uint32_t msr, std::uint64_t value, bool topa) {
  if (msr == PT_MSR_RTIT_OUTPUT_MASK_PTRS) return words_of_pointers(value, topa);
  if (msr == PT_MSR_DS_AREA) return value != 0 ? "the DS area" : "as it was before";
  if (msr == PT_MSR_RTIT_OUTPUT_BASE) return topa ? "the ToPA table" : "the range";
  std::string words = summary(msr, value);
  if (msr == PT_MSR_DEBUGCTL) return words + "; other bits as they were";
  if (msr != PT_MSR_RTIT_CTL) return words;
  if (value == 0) return "as after a reset";
  return ((value & bit(PT_CTL_TRACE_EN)) != 0 ? "tracing begins: " : "tracing ends: ") + words;
}

int record_write(void* context, std::uint32_t msr, std::uint64_t value) {
  auto& recorder = *static_cast<Recorder*>(context);
  recorder.steps.push_back({Access::WRITE, msr, value, words_of_write(msr, value, recorder.topa)});
  return 0;
}

// Reads return the values of an unused trace unit with a pending ToPA PMI.
int record_read(void* context, std::uint32_t msr, std::uint64_t* value) {
  static_cast<Recorder*>(context)->steps.push_back({Access::READ, msr, 0, words_of_read(msr)});
  *value = msr == PT_MSR_PERF_GLOBAL_STATUS ? bit(PT_PERF_GLOBAL_TRACE_TOPA_PMI) : 0;
  return 0;
}

void record_barrier(void* context) {
  static_cast<Recorder*>(context)->steps.push_back(
      {Access::BARRIER, 0, 0, "what was traced is seen by other processors from here on"});
}

std::string words_of_entry(std::uint64_t entry) {
  if ((entry & bit(PT_TOPA_END)) != 0)
    return "END: the table continues at " + base::hexadecimal(entry & ~(kPage - 1));
  const std::uint64_t size = entry >> PT_TOPA_SIZE_SHIFT & (bit(PT_TOPA_SIZE_WIDTH) - 1);
  std::string words =
      "region of " + bytes_text(kPage << size) + " at " + base::hexadecimal(entry & ~(kPage - 1));
  if ((entry & bit(PT_TOPA_INT)) != 0) words += ", INT: an interrupt when it is full";
  if ((entry & bit(PT_TOPA_STOP)) != 0) words += ", STOP: tracing ends when it is full";
  return words;
}

std::string region_text(const Region& region) {
  return std::to_string(region.bytes) + " bytes at " + base::hexadecimal(region.base);
}

base::Failure refused_regions(std::span<const Region> regions, const Capabilities& capabilities) {
  for (const Region& region : regions) {
    if (region.bytes == 0 || (region.base | region.bytes) % kPage != 0)
      return base::bad_config(region_text(region) +
                              ": ToPA regions are multiples of 4096 bytes, and begin at one");
    if (region.bytes > bit(capabilities.physical_bits) ||
        region.base > bit(capabilities.physical_bits) - region.bytes)
      return base::bad_config(region_text(region) + " is beyond the end of physical memory (" +
                              std::to_string(capabilities.physical_bits) + " address bits)");
  }
  return base::bad_config("no ToPA region");
}

// ToPA tables in one block of memory, one per page.
std::vector<pt_table> tables_over(std::vector<std::uint64_t>& entries, std::uint64_t physical) {
  std::vector<pt_table> tables;
  for (std::size_t i = 0; i < entries.size(); i += kEntries) {
    tables.push_back({.entries = &entries[i],
                      .physical = physical + i * PT_TOPA_ENTRY_BYTES,
                      .capacity = static_cast<std::uint32_t>(kEntries)});
  }
  return tables;
}

MsrProgram memory_of(const pt_topa& topa) {
  MsrProgram memory;
  for (std::uint32_t table = 0; table < topa.table_count; ++table) {
    for (std::uint64_t i = 0;; ++i) {
      const std::uint64_t entry = topa.tables[table].entries[i];
      memory.push_back({Access::MEMORY, topa.tables[table].physical + i * PT_TOPA_ENTRY_BYTES, entry,
                        words_of_entry(entry)});
      if ((entry & bit(PT_TOPA_END)) != 0) break;
    }
  }
  return memory;
}

// A PMI comes when a region is full, so no region is larger than the bytes before the next PMI.
std::uint8_t largest_size(const TopaOptions& options) {
  std::uint8_t size = options.largest_size;
  while (options.interrupt_bytes != 0 && size > 0 && kPage << size > options.interrupt_bytes) --size;
  return size;
}

}  // namespace

MsrProgram program(Sequence sequence, const RegisterValues& values, const RegisterValues& next) {
  const std::uint64_t loaded = sequence == Sequence::SWITCH ? next.ctl : values.ctl;
  Recorder recorder{.steps = {}, .topa = (loaded & bit(PT_CTL_TOPA)) != 0};
  const pt_ops ops{
      .write = &record_write, .read = &record_read, .barrier = &record_barrier, .ctx = &recorder};
  pt_state state = state_of(values);
  const pt_state other = state_of(next);
  bool pending = false;
  switch (sequence) {
    case Sequence::START:
      pt_seq_start(&ops, &state);
      break;
    case Sequence::PAUSE:
      pt_seq_pause(&ops, &state);
      break;
    case Sequence::RESUME:
      pt_seq_resume(&ops, &state);
      break;
    case Sequence::STOP:
      pt_seq_stop(&ops, &state);
      break;
    case Sequence::SWITCH:
      pt_seq_switch(&ops, &state, &other);
      break;
    case Sequence::INTERRUPT:
      pt_seq_interrupt(&ops, &state, &pending);
      break;
  }
  return recorder.steps;
}

base::Result<OutputPlan> plan_single_range(const Region& region) {
  pt_output output{};
  if (pt_single_range(region.base, region.bytes, &output) != 0) {
    return base::bad_config(
        region_text(region) +
        ": one range is a power of two from 128 bytes to 4 GiB, at a multiple of its size");
  }
  return OutputPlan{.base = output.base, .mask_ptrs = output.mask_ptrs, .memory = {}, .bytes = region.bytes};
}

base::Result<OutputPlan> plan_topa(std::uint64_t table, std::span<const Region> regions,
                                   const TopaOptions& options, const Capabilities& capabilities) {
  std::vector<pt_region> wanted;
  for (const Region& region : regions) wanted.push_back({.base = region.base, .bytes = region.bytes});
  const auto count = static_cast<std::uint32_t>(wanted.size());
  const pt_topa_options how{.interrupt_bytes = options.interrupt_bytes,
                            .ring = options.ring,
                            .one_entry = !capabilities.topa_multiple(),
                            .largest_size = largest_size(options),
                            .physical_bits = capabilities.physical_bits};
  if (options.largest_size > PT_TOPA_LARGEST_SIZE)
    return base::bad_config("the largest size of a ToPA region is 15");
  const std::uint64_t needed = pt_topa_entries(wanted.data(), count, &how);
  if (needed == 0) return refused_regions(regions, capabilities);
  if (how.one_entry && needed != 1)
    return base::bad_config(
        "this processor takes one ToPA region only (CPUID.(EAX=14H,ECX=0):ECX[1]), and this takes " +
        std::to_string(needed));
  const std::uint64_t pages = (needed + kEntries - 2) / (kEntries - 1);
  if (pages > kMostTables) return base::bad_config(std::to_string(needed) + " ToPA regions are too many");
  std::vector<std::uint64_t> entries(pages * kEntries);
  const std::vector<pt_table> tables = tables_over(entries, table);
  pt_topa topa{};
  if (pt_topa_build(&topa, tables.data(), static_cast<std::uint32_t>(tables.size()), wanted.data(), count,
                    &how) != 0)
    return base::bad_config("a ToPA table at " + base::hexadecimal(table) +
                            ": it must begin at a multiple of 4096, in memory");
  pt_output output{};
  pt_topa_output(&topa, 0, &output);
  return OutputPlan{
      .base = output.base, .mask_ptrs = output.mask_ptrs, .memory = memory_of(topa), .bytes = topa.bytes};
}

base::Result<BtsPlan> plan_bts(const BtsOptions& options) {
  constexpr std::array<std::string_view, 4> kFields{"BTS buffer base", "BTS index: the next record",
                                                    "BTS absolute maximum: after the buffer",
                                                    "BTS interrupt threshold"};
  pt_ds_area area{};
  if (options.area % 8 != 0)
    return base::bad_config("a DS area at " + base::hexadecimal(options.area) + ": it is aligned to 8");
  if (pt_bts_layout(&area, options.buffer.base, options.buffer.bytes, options.reserve) != 0)
    return base::bad_config(
        "a BTS buffer of " + region_text(options.buffer) +
        ": it begins at a multiple of 8 and has room for records of 24 bytes, more than the " +
        std::to_string(options.reserve) + " after the threshold");
  BtsPlan plan;
  const std::uint64_t values[] = {area.bts_base, area.bts_index, area.bts_maximum, area.bts_threshold};
  for (std::size_t i = 0; i < kFields.size(); ++i)
    plan.memory.push_back({Access::MEMORY, options.area + 8 * i, values[i], std::string(kFields[i])});
  Recorder recorder;
  const pt_ops ops{
      .write = &record_write, .read = &record_read, .barrier = &record_barrier, .ctx = &recorder};
  pt_bts_state state{.ds_area = options.area,
                     .debugctl = pt_bts_debugctl(options.os, options.user, options.reserve != 0),
                     .saved_ds_area = 0};
  pt_bts_start(&ops, &state);
  plan.start = std::exchange(recorder.steps, {});
  pt_bts_stop(&ops, &state);
  plan.stop = std::move(recorder.steps);
  return plan;
}

}  // namespace ptkit::msr
