#include "trace_unit/msr/program.h"

#include <utility>

#include "base/bits.h"
#include "base/hexadecimal.h"
#include "common/pt_sequence.h"
#include "common/pt_topa.h"
#include "trace_unit/msr/caps.h"
#include "trace_unit/msr/explain.h"
#include "trace_unit/msr/step_recorder.h"

namespace ptkit::trace_unit::msr {

namespace {

constexpr std::uint64_t kPage = PT_TOPA_LEAST_BYTES;
constexpr std::uint64_t kEntries = kPage / PT_TOPA_ENTRY_BYTES;
constexpr std::uint64_t kMostTables = 4096;  // 2 million regions

using base::bit;

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
                      .begin = 0,
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
  StepRecorder recorder;
  recorder.topa = (loaded & bit(PT_CTL_TOPA)) != 0;
  const pt_ops ops = recorder.ops();
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
      add_interrupt_end(recorder.steps);
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
  std::vector<pt_table> tables = tables_over(entries, table);
  pt_topa topa{};
  if (pt_topa_build(&topa, tables.data(), static_cast<std::uint32_t>(tables.size()), wanted.data(), count,
                    &how) != 0)
    return base::bad_config("a ToPA table at " + base::hexadecimal(table) +
                            ": it must begin at a multiple of 4096, in memory");
  pt_output output{};
  pt_topa_output(&topa, 0, &output);
  MsrProgram memory = memory_of(topa);
  if (options.interrupt_bytes != 0) memory.push_back(interrupt_entry());
  return OutputPlan{
      .base = output.base, .mask_ptrs = output.mask_ptrs, .memory = std::move(memory), .bytes = topa.bytes};
}

}  // namespace ptkit::trace_unit::msr
