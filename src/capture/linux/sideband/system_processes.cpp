#include "capture/linux/sideband/system_processes.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/paths.h"
#include "trace/warning_codes.h"

namespace ptkit::capture {

using trace::WarningCode;

namespace {

constexpr const char* kVdso = "[vdso]";
constexpr std::uint64_t kMostVdsoBytes = 1 << 20;
constexpr int kMaxDepth = 100;  // of process trees

trace::Sideband sideband(trace::SidebandKind kind, const SystemRecord& record) {
  trace::Sideband out;
  out.kind = kind;
  out.tsc = record.tsc;
  out.pid = record.pid;
  out.tid = record.tid;
  return out;
}

// A kernel thread has no page tables of its own.
bool is_kernel_thread(const SystemRecord& record) {
  return record.cr3_known ? record.kernel_cr3 == 0 : record.pid == 0;
}

// Whether a mapping has a file. "//anon" and "/memfd:" are anonymous memory.
bool is_file(const std::string& path) {
  return path.size() > 1 && path.front() == '/' && path[1] != '/' && path.rfind("/memfd:", 0) != 0;
}

// The vDSO is read from each process, which can change its own copy.
std::vector<std::uint8_t> read_vdso(std::int64_t pid, std::uint64_t address, std::uint64_t bytes) {
  std::vector<std::uint8_t> out(std::min(bytes, kMostVdsoBytes));
  out.resize(Memory(static_cast<pid_t>(pid)).read(address, out));
  return out;
}

}  // namespace

const SystemProcesses::CodeMapping* SystemProcesses::CodeMappings::newest_over(
    const CodeMapping& mapping) const {
  std::optional<std::uint64_t> found;
  newest_by_address_.for_each_over(
      mapping.address, mapping.address + (mapping.bytes - 1),
      [&](std::uint64_t number) { found = std::max(found.value_or(0), number); });
  return found ? &all_.at(*found) : nullptr;
}

void SystemProcesses::CodeMappings::add(CodeMapping mapping) {
  newest_by_address_.assign(mapping.address, mapping.address + (mapping.bytes - 1), next_);
  all_.emplace(next_++, std::move(mapping));
}

// Runs whenever the number has doubled, so the amortised cost of a mapping is constant.
void SystemProcesses::CodeMappings::erase_hidden() {
  constexpr std::size_t kFew = 64;
  if (all_.size() < 2 * size_after_erase_ + kFew) return;
  std::set<std::uint64_t> seen;
  for (const auto& [first, entry] : newest_by_address_) seen.insert(entry.value);
  std::erase_if(all_, [&](const auto& one) { return seen.count(one.first) == 0; });
  size_after_erase_ = all_.size();
}

void SystemProcesses::begin(std::int64_t pid, std::uint64_t tsc) {
  SystemRecord record;
  record.tsc = tsc;
  record.pid = record.tid = static_cast<std::int32_t>(pid);
  write_record(trace::SidebandKind::PROCESS, record, 0, {});
  write_record(trace::SidebandKind::EXEC, record, 0, program_path(record.pid));
  process_of(pid, tsc);
}

void SystemProcesses::save_code(std::int64_t pid) {
  if (const auto at = processes_.find(pid); at != processes_.end()) save(pid, at->second);
}

void SystemProcesses::find_all(std::uint64_t tsc) {
  for (const std::int64_t pid : processes()) {
    process_of(pid, tsc);
    if (on_progress_) on_progress_();
  }
}

std::vector<trace::Warning> SystemProcesses::warnings() const {
  const auto list = [](const std::set<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
  };
  std::vector<trace::Warning> out;
  std::set<std::string> without_dumps;
  for (const auto& [space, name] : jit_spaces_) {
    if (!dumps_.has(space)) without_dumps.insert(name);
  }
  if (!without_dumps.empty()) out.push_back(warn(WarningCode::JIT_CODE_MISSING, list(without_dumps)));
  if (!replaced_files_.empty()) out.push_back(warn(WarningCode::FILES_REPLACED, list(replaced_files_)));
  out.insert(out.end(), dumps_.warnings().begin(), dumps_.warnings().end());
  for (trace::Warning& warning : jit_names_.warnings()) out.push_back(std::move(warning));
  for (trace::Warning& warning : output_.reader().warnings()) out.push_back(std::move(warning));
  return out;
}

void SystemProcesses::save_jit_code(std::uint64_t tsc) {
  output_.names(jit_names_.read(output_.reader(), tsc));
  dumps_.save(output_, [this](std::int64_t pid, trace::SpaceId space) {
    std::vector<JitDumps::Mapped> files;
    const auto at = processes_.find(pid);
    if (at == processes_.end() || at->second.space != space) return files;
    for (const auto& [number, mapping] : at->second.mappings.all()) {
      if (is_file(mapping.path)) files.push_back({mapping.address, mapping.bytes, mapping.tsc});
    }
    return files;
  });
}

trace::SpaceId SystemProcesses::space_of(std::int64_t pid) const {
  const auto at = processes_.find(pid);
  return at == processes_.end() ? trace::kAnySpace : at->second.space;
}

void SystemProcesses::mark_as_program(trace::SpaceId space) {
  if (programs_.size() <= space) programs_.resize(space + std::size_t{1});
  programs_[space] = true;
}

bool SystemProcesses::alive(std::int64_t pid) const {
  const auto is_descendant = [&](std::int64_t one) {
    for (int depth = 0; depth < kMaxDepth && one != pid; ++depth) {
      const auto at = processes_.find(one);
      if (at == processes_.end()) return false;
      one = at->second.parent;
    }
    return one == pid;
  };
  return std::any_of(processes_.begin(), processes_.end(), [&](const auto& one) {
    return !one.second.threads.empty() && is_descendant(one.first);
  });
}

// Mappings are kept: records of the exited processes may still come.
void SystemProcesses::forget_ended() {
  for (auto& [pid, process] : processes_) {
    if (!process.threads.empty() && ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH)
      process.threads.clear();
  }
}

std::vector<trace::Switch> SystemProcesses::take_switches(std::uint32_t stream) {
  return std::exchange(switches_[stream], {});
}

SystemProcesses::Process& SystemProcesses::process_of(std::int64_t pid, std::uint64_t tsc) {
  const auto [at, fresh] = processes_.try_emplace(pid);
  Process& process = at->second;
  if (!fresh) return process;
  SystemRecord record;
  record.tsc = tsc;
  record.pid = record.tid = static_cast<std::int32_t>(pid);
  for (const std::int64_t tid : threads_of(static_cast<pid_t>(pid))) {
    process.threads.emplace(tid, 0);
    record.tid = static_cast<std::int32_t>(tid);
    write_record(trace::SidebandKind::THREAD, record, 0, thread_name(record.pid, record.tid));
  }
  new_space(pid, process);
  read_maps_of(pid, process, tsc);
  return process;
}

void SystemProcesses::new_space(std::int64_t pid, Process& process) {
  process.space = output_.space(pid);
  process.kernel_cr3 = process.user_cr3 = 0;
  process.mappings = {};
  process.saved = false;
}

void SystemProcesses::read_maps_of(std::int64_t pid, Process& process, std::uint64_t tsc) {
  SystemRecord record;
  record.tsc = tsc;
  record.pid = record.tid = static_cast<std::int32_t>(pid);
  for (const Mapping& mapping : read_maps(record.pid)) {
    if (!mapping.executable) continue;
    record.address = mapping.begin;
    record.bytes = mapping.end - mapping.begin;
    record.file_offset = mapping.offset;
    record.text = mapping.path;
    record.device = mapping.device;
    record.inode = mapping.inode;
    add_mapping(process, record);
  }
}

void SystemProcesses::add_mapping(Process& process, const SystemRecord& record) {
  if (record.bytes == 0 || record.address + record.bytes < record.address) return;
  mark_as_program(process.space);
  CodeMapping mapping{record.tsc,
                      record.address,
                      record.bytes,
                      record.file_offset,
                      std::string(base::without_mark(record.text)),
                      record.build_id,
                      record.device,
                      record.inode};
  // Only the newest mapping of the addresses counts: an older one may return later.
  if (const CodeMapping* last = process.mappings.newest_over(mapping); last != nullptr) {
    if (*last == mapping) return;
    mapping.tsc_from = record.tsc;
  }
  if (process.saved) save(record.pid, process, mapping);
  process.mappings.add(std::move(mapping));
  if (process.saved) process.mappings.erase_hidden();
}

void SystemProcesses::write_mapping(std::int64_t pid, const CodeMapping& mapping, std::int32_t file) {
  trace::Sideband record;
  record.kind = trace::SidebandKind::MAP;
  record.tsc = mapping.tsc;
  record.pid = pid;
  record.address = mapping.address;
  record.size = mapping.bytes;
  record.file = file;
  record.file_offset = mapping.file_offset;
  if (file < 0) record.text = mapping.path;
  output_.sideband(record);
}

// File::number is -1 for memory without a file.
BundleOutput::File SystemProcesses::file_of(std::int64_t pid, const CodeMapping& mapping) {
  const std::string& path = mapping.path;
  if (path == kVdso) {
    const std::int32_t number = output_.file(path, [&] {
      ParsedFile parsed = output_.reader().parse_memory(read_vdso(pid, mapping.address, mapping.bytes), path);
      return trace::ImageFile{
          path, std::move(parsed.build_id), {}, std::move(parsed.symbols), std::move(parsed.unwind)};
    });
    return {number, {}};
  }
  return is_file(path) ? output_.file(static_cast<pid_t>(pid), mapping.mapping()) : BundleOutput::File();
}

void SystemProcesses::save(std::int64_t pid, Process& process) {
  if (process.saved || !user_) return;
  process.saved = true;
  for (const auto& [number, mapping] : process.mappings.all()) {
    save(pid, process, mapping);
    if (on_progress_) on_progress_();
  }
}

// The bytes of a file range are written once. Other spaces refer to the file.
void SystemProcesses::save(std::int64_t pid, const Process& process, const CodeMapping& mapping) {
  if (dumps_.add(pid, process.space, mapping.tsc, mapping.mapping())) return;
  const BundleOutput::File file = file_of(pid, mapping);
  write_mapping(pid, mapping, file.number);
  if (file.number < 0) {
    const bool is_special = !mapping.path.empty() && mapping.path.front() == '[';
    if (!is_special && jit_spaces_.count(process.space) == 0) {
      jit_spaces_[process.space] = thread_name(static_cast<pid_t>(pid), static_cast<pid_t>(pid));
      jit_names_.begin(
          {static_cast<pid_t>(pid), process.space, trace::kAnySpace, mapping.tsc, /*begins=*/false});
    }
    return;
  }
  trace::CodeRegion region;
  region.space = process.space;
  region.address = mapping.address;
  region.size = mapping.bytes;
  region.tsc_from = mapping.tsc_from;
  region.file = file.number;
  region.file_offset = mapping.file_offset;
  region.shared = true;
  if (!saved_ranges_.emplace(file.number, mapping.file_offset, mapping.bytes).second)
    return output_.code({region});
  save_bytes(pid, mapping, file, region);
}

// Writes regions with bytes, and regions without bytes in between.
void SystemProcesses::save_bytes(std::int64_t pid, const CodeMapping& mapping, const BundleOutput::File& file,
                                 const trace::CodeRegion& whole) {
  std::uint64_t done = 0;
  const auto write_region = [&](std::uint64_t size, trace::TraceBuffer bytes) {
    if (size == 0) return;
    trace::CodeRegion region = whole;
    region.address += done;
    region.file_offset += done;
    region.size = size;
    region.bytes = std::move(bytes);
    output_.code({region});
    done += size;
  };
  const bool saved = read_bytes(pid, mapping, file, [&](std::uint64_t at, const trace::TraceBuffer& bytes) {
    write_region(at - done, {});
    write_region(bytes.size(), bytes);
    if (on_progress_) on_progress_();
  });
  write_region(mapping.bytes - done, {});
  if (!saved) saved_ranges_.erase({file.number, mapping.file_offset, mapping.bytes});
}

bool SystemProcesses::read_bytes(std::int64_t pid, const CodeMapping& mapping, const BundleOutput::File& file,
                                 const CodeReader::Take& take) {
  bool any = false;
  const auto take_bytes = [&](std::uint64_t at, trace::TraceBuffer bytes) {
    any = true;
    take(at, std::move(bytes));
  };
  const Mapping mapped = mapping.mapping();
  CodeReader& reader = output_.reader();
  if (is_file(mapping.path)) {
    const MappedFile opened = reader.open(static_cast<pid_t>(pid), mapped);
    const bool replaced = opened.found == MappedFile::Found::ANOTHER ||
                          (!mapping.build_id.empty() && file.build_id != mapping.build_id);
    if (replaced) replaced_files_.insert(mapping.path);
    if (!replaced) reader.read_part(opened, mapping.path, mapping.file_offset, mapping.bytes, take_bytes);
  }
  if (any) return true;
  reader.read_memory(static_cast<pid_t>(pid), mapped, take_bytes);
  return any && !is_file(mapping.path);
}

bool SystemProcesses::ignores(const SystemRecord& record) const {
  using Kind = SystemRecord::Kind;
  if (!ignores_others_ ||
      (record.kind != Kind::EXEC && record.kind != Kind::MMAP && record.kind != Kind::COMM))
    return false;
  const auto at = processes_.find(record.pid);
  return at == processes_.end() || at->second.ended;
}

void SystemProcesses::take(const SystemRecord& record, std::uint32_t stream) {
  using Kind = SystemRecord::Kind;
  if (ignores(record)) return;
  switch (record.kind) {
    case Kind::SWITCH:
      return on_switch(record, stream);
    case Kind::FORK:
      return on_fork(record);
    case Kind::EXEC:
      return on_exec(record, stream);
    case Kind::PROGRAM:
      return on_program(record, stream);
    case Kind::SPACE:
      return on_space(record);
    case Kind::MMAP:
      return on_mmap(record);
    case Kind::EXIT:
      return on_exit(record);
    case Kind::COMM:
      return write_record(trace::SidebandKind::THREAD, record, 0, record.text);
    default:
      return;
  }
}

// A changed CR3 means an exec() without an EXEC record.
void SystemProcesses::set_cr3(const SystemRecord& record, Process& process) {
  cr3_known_ = cr3_known_ || record.cr3_known;
  if (!record.cr3_known || process.kernel_cr3 == record.kernel_cr3) return;
  if (process.kernel_cr3 != 0) {
    new_space(record.pid, process);
    process.has_new_tables = true;
    read_maps_of(record.pid, process, record.tsc);
  }
  process.kernel_cr3 = record.kernel_cr3;
  process.user_cr3 = record.user_cr3;
  trace::Space space{record.pid, record.kernel_cr3, true};
  space.user_cr3 = record.user_cr3;
  output_.describe(process.space, space);
}

void SystemProcesses::on_switch(const SystemRecord& record, std::uint32_t stream) {
  trace::Switch to{record.since != 0 ? record.since : record.tsc,
                   record.pid,
                   record.tid,
                   trace::kAnySpace,
                   record.offset,
                   record.departure};
  trace::SpaceId& last = last_space_[stream];
  if (record.pid < 0) {
    to.pid = to.tid = trace::kNoId;
  } else if (is_kernel_thread(record)) {
    to.space = last;
  } else {
    Process& process = process_of(record.pid, record.tsc);
    set_cr3(record, process);
    // The middle of two records may be before the thread began.
    if (record.tid >= 0) to.tsc = std::max(to.tsc, process.threads.emplace(record.tid, 0).first->second);
    save(record.pid, process);
    to.space = last = process.space;
  }
  // `since` is the middle of two records, or the beginning of the recording. The later record is a bound.
  const std::uint64_t skew = record.since > 1 ? record.tsc - std::min(record.tsc, to.tsc) : 0;
  if (skew > max_skew_) skews_[{stream, to.tsc}] = skew;
  add_switch(stream, to);
}

// With `by_offset_`, each AUX record or sample gives a SWITCH record, even if the thread is the same.
void SystemProcesses::add_switch(std::uint32_t stream, const trace::Switch& to) {
  if (by_offset_) {
    const auto [last, fresh] = last_switch_.try_emplace(stream, to);
    const trace::Switch& before = last->second;
    if (!fresh && before.pid == to.pid && before.tid == to.tid && before.space == to.space) return;
    last->second = to;
  }
  switches_[stream].push_back(to);
}

void SystemProcesses::on_fork(const SystemRecord& record) {
  if (record.pid == record.parent_pid) {
    process_of(record.pid, record.tsc).threads[record.tid] = record.tsc;
    return write_record(trace::SidebandKind::THREAD, record, 0, {});
  }
  const CodeMappings mappings = process_of(record.parent_pid, record.tsc).mappings;
  Process& child = processes_[record.pid];
  new_space(record.pid, child);
  child.mappings = mappings;
  if (!mappings.all().empty()) mark_as_program(child.space);
  if (child.parent != record.parent_pid) {
    if (const auto before = processes_.find(child.parent); before != processes_.end())
      --before->second.children;
    ++processes_[record.parent_pid].children;
    child.parent = record.parent_pid;
  }
  child.ended = child.erasable = child.loading = false;
  child.threads = {{record.tid, record.tsc}};
  set_cr3(record, child);
  trace::Sideband out = sideband(trace::SidebandKind::PROCESS, record);
  out.parent = record.parent_pid;
  output_.sideband(out);
}

// MMAP records of the new program follow, then PROGRAM.
void SystemProcesses::on_exec(const SystemRecord& record, std::uint32_t stream) {
  Process& process = process_of(record.pid, record.tsc);
  // A process that process_of() has just added has mappings of /proc, which may be newer. They are discarded.
  begin_program(record, process, stream);
  process.exec_path_known = false;
  process.loading = true;
}

// Without EXEC and MMAP records, which perf may be refused or have lost, /proc has the mappings.
void SystemProcesses::on_program(const SystemRecord& record, std::uint32_t stream) {
  Process& process = process_of(record.pid, record.tsc);
  if (!std::exchange(process.loading, false)) {
    begin_program(record, process, stream);
    write_record(trace::SidebandKind::EXEC, record, 0, program_path(record.pid));
  }
  set_cr3(record, process);
  if (process.mappings.all().empty()) read_maps_of(record.pid, process, record.tsc);
}

// exec() changes page tables some time before its record, and the thread may be switched out in between.
void SystemProcesses::begin_program(const SystemRecord& record, Process& process, std::uint32_t stream) {
  jit_names_.end(process.space, record.tsc);
  if (!std::exchange(process.has_new_tables, false)) new_space(record.pid, process);
  process.threads = {{record.tid, record.tsc}};
  process.saved = user_;
  last_space_[stream] = process.space;
  // With `by_offset_`, the next SWITCH record has the new space.
  if (!by_offset_) switches_[stream].push_back({record.tsc, record.pid, record.tid, process.space});
}

void SystemProcesses::on_space(const SystemRecord& record) {
  set_cr3(record, process_of(record.pid, record.tsc));
}

void SystemProcesses::on_mmap(const SystemRecord& record) {
  Process& process = process_of(record.pid, record.tsc);
  if (!process.exec_path_known && !record.text.empty() && record.text.front() == '/') {
    process.exec_path_known = true;
    write_record(trace::SidebandKind::EXEC, record, 0, record.text);
  }
  add_mapping(process, record);
}

void SystemProcesses::on_exit(const SystemRecord& record) {
  if (const auto at = processes_.find(record.pid); at != processes_.end()) {
    at->second.threads.erase(record.tid);
    if (at->second.threads.empty()) end(record.pid, at->second, record.tsc);
  }
  write_record(trace::SidebandKind::EXIT, record, record.status, {});
}

// Mappings are in the bundle already, or were never executed. The process is kept for a while, as its records
// may come late.
void SystemProcesses::end(std::int64_t pid, Process& process, std::uint64_t tsc) {
  constexpr std::size_t kKept = 4096;
  process.threads.clear();
  jit_names_.end(process.space, tsc);
  if (!dumps_.waits_for(process.space)) process.mappings = {};
  process.ended = true;
  ended_pids_.push_back(pid);
  if (ended_pids_.size() <= kKept) return;
  const std::int64_t oldest = ended_pids_.front();
  ended_pids_.pop_front();
  erase_process(oldest);
}

// A parent is kept as long as its children (alive() follows parents). A PID may have been reused.
void SystemProcesses::erase_process(std::int64_t pid) {
  auto at = processes_.find(pid);
  if (at != processes_.end()) at->second.erasable = at->second.ended;
  while (at != processes_.end() && at->second.erasable && at->second.children == 0) {
    if (dumps_.waits_for(at->second.space)) return;
    const std::int64_t parent = at->second.parent;
    processes_.erase(at);
    at = processes_.find(parent);
    if (at != processes_.end()) --at->second.children;
  }
}

void SystemProcesses::write_record(trace::SidebandKind kind, const SystemRecord& record, std::int64_t value,
                                   std::string text) {
  trace::Sideband out = sideband(kind, record);
  out.value = value;
  out.text = std::move(text);
  output_.sideband(out);
}

}  // namespace ptkit::capture
