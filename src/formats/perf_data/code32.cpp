#include "formats/perf_data/code32.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "formats/perf_data/branches.h"
#include "trace/branch_record.h"
#include "trace/branch_records.h"

namespace ptkit::formats::perf {

namespace {

using trace::BranchRecord;

// A process executes a program in this range of time.
struct Program {
  std::uint64_t tsc_from = 0;
  std::uint64_t tsc_to = 0;
  bool narrow = false;  // 32 bits
};

// nullopt: not an x86 program. (x32 programs are ELFCLASS32 files of 64-bit code.)
std::optional<bool> is_narrow(base::Bytes file) {
  constexpr std::size_t kMachineAt = 18;
  if (file.size() < sizeof(Elf32_Ehdr) || std::memcmp(file.data(), ELFMAG, SELFMAG) != 0) return std::nullopt;
  const std::uint64_t machine = base::load_le<2>(file.data() + kMachineAt);
  if (machine == EM_X86_64) return false;
  if (machine == EM_386 && file[EI_CLASS] == ELFCLASS32) return true;
  return std::nullopt;
}

// Returns the programs of each space. The first ELF file that is mapped is the program; later ones are its
// libraries.
std::vector<std::vector<Program>> programs_of(const trace::TraceBundle& bundle) {
  std::vector<std::optional<bool>> narrow;
  for (const trace::ImageFile& file : bundle.files) narrow.push_back(is_narrow(file.contents.bytes()));
  std::vector<std::vector<Program>> programs(bundle.spaces.size());
  for (const trace::CodeRegion& region : bundle.code) {
    if (region.file < 0 || !narrow[static_cast<std::size_t>(region.file)]) continue;
    std::vector<Program>& known = programs[region.space];
    if (!known.empty() && region.tsc_from < known.back().tsc_to) continue;
    known.push_back({region.tsc_from, region.tsc_to, *narrow[static_cast<std::size_t>(region.file)]});
  }
  return programs;
}

bool runs_narrow(const std::vector<Program>& programs, std::uint64_t tsc) {
  const auto after = std::ranges::upper_bound(programs, tsc, {}, &Program::tsc_from);
  if (programs.empty()) return false;
  return after == programs.begin() ? programs.front().narrow : std::prev(after)->narrow;
}

void mark(trace::Stream& stream, const std::vector<std::vector<Program>>& programs) {
  std::vector<BranchRecord> records(stream.data.size() / sizeof(BranchRecord));
  std::memcpy(records.data(), stream.data.bytes().data(), records.size() * sizeof(BranchRecord));
  // A record's time is when the kernel drained the buffer: records before it have no later time.
  std::vector<std::uint64_t> times(records.size());
  std::uint64_t tsc = trace::kTscMax;
  for (std::size_t i = records.size(); i-- > 0;) times[i] = tsc = records[i].tsc != 0 ? records[i].tsc : tsc;
  trace::SpaceId space = stream.space;
  auto next = stream.switches.begin();
  for (std::size_t i = 0; i < records.size(); ++i) {
    for (; next != stream.switches.end() && next->offset <= i * sizeof(BranchRecord); ++next)
      space = next->space;
    if (records[i].to_ip < kEndOf32BitCode && runs_narrow(programs[space], times[i]))
      records[i].flags |= trace::RECORD_CODE32;
  }
  stream.data = trace::to_buffer(std::move(records));
}

}  // namespace

void mark_32_bit_code(trace::TraceBundle& bundle) {
  const std::vector<std::vector<Program>> programs = programs_of(bundle);
  const bool any = std::ranges::any_of(programs, [](const std::vector<Program>& of_space) {
    return std::ranges::any_of(of_space, &Program::narrow);
  });
  if (!any) return;
  for (trace::Stream& stream : bundle.streams) {
    if (stream.kind == trace::StreamKind::BRANCH_RECORDS) mark(stream, programs);
  }
}

}  // namespace ptkit::formats::perf
