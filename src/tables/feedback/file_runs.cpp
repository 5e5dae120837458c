#include "tables/feedback/file_runs.h"

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <unordered_map>

#include "code/symbol/row_views.h"

namespace ptkit::tables::feedback {
namespace {

constexpr std::size_t kLeastAtOnce = std::size_t{1} << 16U;
constexpr std::size_t kLongestInsn = 15;
constexpr std::size_t kElfClass = 4;  // EI_CLASS
constexpr std::uint8_t kElf32 = 1;    // ELFCLASS32

// Files that are the same program or library, also under another path.
[[nodiscard]] std::vector<std::int32_t> first_files(const trace::TraceBundle& bundle) {
  std::vector<std::int32_t> first;
  std::unordered_map<std::string, std::int32_t> known;
  for (const trace::ImageFile& file : bundle.files) {
    const std::string key = file.build_id.empty() ? "path " + file.path : "id " + file.build_id;
    first.push_back(known.try_emplace(key, static_cast<std::int32_t>(first.size())).first->second);
  }
  return first;
}

}  // namespace

FileRuns::FileRuns(const code::image::Image& image, const code::symbol::LoadAddresses& loads,
                   const columns::IpSet& ips)
    : image_(image), loads_(loads), ips_(ips), first_(first_files(image.bundle())) {}

void FileRuns::add(const Run& run, const Executions& executions) {
  raw_.add(run, executions);
  // As many as there are runs of files: each of these is looked up twice at most, for each time it is new.
  if (raw_.size() >= std::max(kLeastAtOnce, files_.size() * 2)) flush();
}

void FileRuns::flush() {
  for (const auto& [run, executions] : raw_.entries()) look_up(run, executions);
  raw_.clear();
}

FileRuns::Location FileRuns::locate(const code::image::CodeView* view, std::uint64_t ip) const {
  if (view == nullptr) return {};
  const code::image::Provenance found = code::symbol::file_at(image_, *view, ip);
  if (found.file < 0 || static_cast<std::size_t>(found.file) >= first_.size()) return {};
  return {first_[static_cast<std::size_t>(found.file)], loads_.rva(found.region, ip)};
}

// Rows of branches do not have the mode.
code::insn::ExecMode FileRuns::mode_of(std::int32_t file) const noexcept {
  const base::Bytes bytes = image_.bundle().files[static_cast<std::size_t>(file)].contents.bytes();
  const bool is_elf = bytes.size() > kElfClass && bytes[0] == 0x7f && bytes[1] == 'E';
  const bool is_32_bit = is_elf && bytes[kElfClass] == kElf32;
  return is_32_bit ? code::insn::ExecMode::BITS32 : code::insn::ExecMode::BITS64;
}

// Finds the last instruction of a run that no branch ends. False: its code is not known.
bool FileRuns::find_last(Run& run, std::int32_t file) const {
  const code::insn::ExecMode mode = mode_of(file);
  std::uint64_t ip = run.begin;
  for (std::uint64_t left = run.instructions; left > 1; --left) {
    std::array<std::uint8_t, kLongestInsn> bytes{};
    const std::size_t size = run.view->read(ip, bytes);
    code::insn::Insn insn;
    if (code::insn::decode(mode, base::Bytes(bytes).first(size), insn) != base::Status::OK) return false;
    ip = code::insn::next_ip(insn, mode, ip);
  }
  run.end = ip;
  run.flags |= std::uint8_t{RUN_CUT};
  return true;
}

void FileRuns::look_up(Run run, const Executions& executions) {
  const std::uint64_t instructions = run.instructions * executions.count;
  const bool has_from = (run.flags & RUN_FROM) != 0;
  const bool has_begin = (run.flags & RUN_BEGIN) != 0;
  totals_.instructions += instructions;
  if (has_from) totals_.branches += executions.count;
  const Location from = has_from ? locate(run.from_view, run.from_ip) : Location{};
  const Location begin = has_begin ? locate(run.view, run.begin) : Location{};
  std::uint64_t* lost = nullptr;  // where the instructions are counted; null: in the run
  if (!has_begin) {
    lost = &totals_.unknown_instructions;
  } else if (begin.file < 0) {
    lost = &totals_.outside_instructions;
  } else if (run.instructions != 0) {
    if ((run.flags & RUN_END) == 0 && !find_last(run, begin.file)) {
      lost = &totals_.unknown_instructions;
    } else {
      const Location end = locate(run.view, run.end);
      const bool is_one = end.file == begin.file && end.rva - begin.rva == run.end - run.begin;
      if (!is_one) lost = &totals_.crossing_instructions;
    }
  }
  const bool is_located = lost == nullptr && run.instructions != 0;
  const bool meets_run =
      is_located && (ips_.empty() || ips_.meets(run.begin, std::max(run.begin, run.end), run.view->space()));
  if (is_located && !meets_run) lost = &totals_.unselected_instructions;
  if (lost != nullptr) *lost += instructions;
  bool meets_branch = has_from;
  if (has_from && !ips_.empty()) {
    meets_branch = ips_.has(run.from_ip, run.from_view->space()) ||
                   (has_begin && ips_.has(run.begin, run.view->space()));
    if (!meets_branch) totals_.unselected_branches += executions.count;
  }
  if (meets_branch && from.file < 0 && begin.file < 0) {
    totals_.outside_branches += executions.count;
    meets_branch = false;
  }
  if (!meets_branch && !meets_run) return;
  FileRun found;
  if (meets_branch) {
    found.flags |= RUN_FROM;
    found.kind = run.kind;
    found.from = from.rva;
    found.from_file = from.file;
  }
  if (begin.file >= 0) {
    found.flags |= RUN_BEGIN;
    found.begin = begin.rva;
    found.file = begin.file;
  }
  if (meets_run) {
    found.flags |= run.flags & (RUN_END | RUN_CUT);
    found.end = begin.rva + (run.end - run.begin);
    found.instructions = run.instructions;
  }
  files_.add(found, executions);
}

void FileRuns::add_all(FileRuns&& others) {
  others.flush();
  files_.add_all(others.files_);
  totals_ += others.totals_;
  others.files_ = {};
  others.totals_ = {};
}

void FileRuns::sort() {
  flush();
  std::ranges::sort(files_.entries(), {}, [](const auto& entry) {
    const FileRun& run = entry.key;
    return std::tuple(run.file, run.begin, run.end, run.instructions, run.flags, run.from_file, run.from,
                      run.kind);
  });
}

}  // namespace ptkit::tables::feedback
