#include "capture/system_processes.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/paths.h"
#include "image/code_file.h"
#include "image/elf.h"

namespace ptkit::capture {

namespace {

constexpr const char* kVdso = "[vdso]";
constexpr std::uint64_t kMostVdsoBytes = 1 << 20;
constexpr int kDeepest = 100;  // of families

trace::Sideband sideband(trace::SidebandKind kind, const SystemRecord& record) {
  trace::Sideband out;
  out.kind = kind;
  out.tsc = record.tsc;
  out.pid = record.pid;
  out.tid = record.tid;
  return out;
}

// A thread of the kernel, which has no memory of its own.
bool is_kernels(const SystemRecord& record) {
  return record.tables_known ? record.kernel_cr3 == 0 : record.pid == 0;
}

// No memory that has no name in a folder ("//anon").
bool is_file(const std::string& path) {
  return path.size() > 1 && path.front() == '/' && path[1] != '/' && path.rfind("/memfd:", 0) != 0;
}

trace::TraceBuffer read_vdso(std::int64_t pid, std::uint64_t address, std::uint64_t bytes) {
  std::vector<std::uint8_t> out(std::min(bytes, kMostVdsoBytes));
  out.resize(Memory(static_cast<pid_t>(pid)).read(address, out));
  return trace::TraceBuffer::from_vector(std::move(out));
}

}  // namespace

const SystemProcesses::Part* SystemProcesses::Parts::last_over(const Part& part) const {
  std::optional<std::uint64_t> found;
  places_.for_each_over(part.address, part.address + (part.bytes - 1),
                        [&](std::uint64_t number) { found = std::max(found.value_or(0), number); });
  return found ? &all_.at(*found) : nullptr;
}

void SystemProcesses::Parts::add(Part part) {
  places_.assign(part.address, part.address + (part.bytes - 1), next_);
  all_.emplace(next_++, std::move(part));
}

// Once in a while, so that none costs more than a few steps.
void SystemProcesses::Parts::forget_hidden() {
  constexpr std::size_t kFew = 64;
  if (all_.size() < 2 * at_last_look_ + kFew) return;
  std::set<std::uint64_t> seen;
  for (const auto& [first, entry] : places_) seen.insert(entry.value);
  std::erase_if(all_, [&](const auto& one) { return seen.count(one.first) == 0; });
  at_last_look_ = all_.size();
}

void SystemProcesses::begin(std::int64_t pid, std::uint64_t tsc) {
  SystemRecord record;
  record.tsc = tsc;
  record.pid = record.tid = static_cast<std::int32_t>(pid);
  note(trace::SidebandKind::PROCESS, record, 0, {});
  note(trace::SidebandKind::EXEC, record, 0, program_path(record.pid));
  known(pid, tsc);
}

void SystemProcesses::save_code(std::int64_t pid) {
  if (const auto at = processes_.find(pid); at != processes_.end()) save(pid, at->second);
}

void SystemProcesses::find_all(std::uint64_t tsc) {
  for (const std::int64_t pid : processes()) {
    known(pid, tsc);
    if (often_) often_();
  }
}

std::vector<std::string> SystemProcesses::warnings() const {
  const auto list = [](const std::set<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
  };
  std::vector<std::string> out;
  std::set<std::string> made_code;
  for (const auto& [space, name] : made_code_) {
    if (!dumps_.has(space)) made_code.insert(name);
  }
  if (!made_code.empty())
    out.push_back("Code that programs make while they run is not in the bundle (" + list(made_code) + ").");
  if (!replaced_.empty()) {
    out.push_back("Files were replaced after they had been mapped (" + list(replaced_) +
                  "): their code is what the memory of processes had, where that could be read.");
  }
  out.insert(out.end(), dumps_.warnings().begin(), dumps_.warnings().end());
  for (std::string& warning : output_.reader().warnings()) out.push_back(std::move(warning));
  return out;
}

void SystemProcesses::save_made_code() {
  dumps_.save(output_, [this](std::int64_t pid, trace::SpaceId space) {
    std::vector<JitDumps::Mapped> files;
    const auto at = processes_.find(pid);
    if (at == processes_.end() || at->second.space != space) return files;
    for (const auto& [number, part] : at->second.parts.all()) {
      if (is_file(part.path)) files.push_back({part.address, part.bytes, part.tsc});
    }
    return files;
  });
}

trace::SpaceId SystemProcesses::space_of(std::int64_t pid) const {
  const auto at = processes_.find(pid);
  return at == processes_.end() ? trace::kAnySpace : at->second.space;
}

void SystemProcesses::is_program(trace::SpaceId space) {
  if (programs_.size() <= space) programs_.resize(space + std::size_t{1});
  programs_[space] = true;
}

bool SystemProcesses::alive(std::int64_t pid) const {
  const auto is_family = [&](std::int64_t one) {
    for (int depth = 0; depth < kDeepest && one != pid; ++depth) {
      const auto at = processes_.find(one);
      if (at == processes_.end()) return false;
      one = at->second.parent;
    }
    return one == pid;
  };
  return std::any_of(processes_.begin(), processes_.end(),
                     [&](const auto& one) { return !one.second.threads.empty() && is_family(one.first); });
}

// Records of what they did may still come: what they had mapped stays.
void SystemProcesses::forget_ended() {
  for (auto& [pid, process] : processes_) {
    if (!process.threads.empty() && ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH)
      process.threads.clear();
  }
}

std::vector<trace::Switch> SystemProcesses::take_switches(std::uint32_t stream) {
  return std::exchange(switches_[stream], {});
}

SystemProcesses::Process& SystemProcesses::known(std::int64_t pid, std::uint64_t tsc) {
  const auto [at, fresh] = processes_.try_emplace(pid);
  Process& process = at->second;
  if (!fresh) return process;
  SystemRecord record;
  record.tsc = tsc;
  record.pid = record.tid = static_cast<std::int32_t>(pid);
  for (const std::int64_t tid : threads_of(static_cast<pid_t>(pid))) {
    process.threads.emplace(tid, 0);
    record.tid = static_cast<std::int32_t>(tid);
    note(trace::SidebandKind::THREAD, record, 0, thread_name(record.pid, record.tid));
  }
  new_space(pid, process);
  read_maps_of(pid, process, tsc);
  return process;
}

void SystemProcesses::new_space(std::int64_t pid, Process& process) {
  process.space = output_.space(pid);
  process.kernel_cr3 = process.user_cr3 = 0;
  process.parts = {};
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
    add_part(process, record);
  }
}

void SystemProcesses::add_part(Process& process, const SystemRecord& mapping) {
  if (mapping.bytes == 0 || mapping.address + mapping.bytes < mapping.address) return;
  is_program(process.space);
  Part part{mapping.tsc,
            mapping.address,
            mapping.bytes,
            mapping.file_offset,
            std::string(base::without_mark(mapping.text)),
            mapping.build_id,
            mapping.device,
            mapping.inode};
  // What lies there now came last: what had been there before may come again.
  if (const Part* last = process.parts.last_over(part); last != nullptr) {
    if (*last == part) return;
    part.tsc_from = mapping.tsc;
  }
  if (process.saved) save(mapping.pid, process, part);
  process.parts.add(std::move(part));
  if (process.saved) process.parts.forget_hidden();
}

void SystemProcesses::note_mapping(std::int64_t pid, const Part& part, std::int32_t file) {
  trace::Sideband record;
  record.kind = trace::SidebandKind::MAP;
  record.tsc = part.tsc;
  record.pid = pid;
  record.address = part.address;
  record.size = part.bytes;
  record.file = file;
  record.file_offset = part.file_offset;
  if (file < 0) record.text = part.path;
  output_.sideband(record);
}

// -1: memory that shows no file.
BundleOutput::File SystemProcesses::file_of(std::int64_t pid, const Part& part) {
  const std::string& path = part.path;
  if (path == kVdso) {
    const std::int32_t number = output_.file(path, [&] {
      const trace::TraceBuffer bytes = read_vdso(pid, part.address, part.bytes);
      return trace::ImageFile{
          path, image::elf_build_id(bytes.bytes()), {}, image::read_symbols(bytes.bytes())};
    });
    return {number, {}};
  }
  return is_file(path) ? output_.file(static_cast<pid_t>(pid), part.mapping()) : BundleOutput::File();
}

void SystemProcesses::save(std::int64_t pid, Process& process) {
  if (process.saved || !user_) return;
  process.saved = true;
  for (const auto& [number, part] : process.parts.all()) {
    save(pid, process, part);
    if (often_) often_();
  }
}

// The bytes of a part of a file go into the bundle once; other spaces refer to the file.
void SystemProcesses::save(std::int64_t pid, const Process& process, const Part& part) {
  if (dumps_.add(pid, process.space, part.tsc, part.mapping())) return;
  const BundleOutput::File file = file_of(pid, part);
  note_mapping(pid, part, file.number);
  if (file.number < 0) {
    const bool kernels = !part.path.empty() && part.path.front() == '[';
    if (!kernels && made_code_.count(process.space) == 0)
      made_code_[process.space] = thread_name(static_cast<pid_t>(pid), static_cast<pid_t>(pid));
    return;
  }
  trace::CodeRegion region;
  region.space = process.space;
  region.address = part.address;
  region.size = part.bytes;
  region.tsc_from = part.tsc_from;
  region.file = file.number;
  region.file_offset = part.file_offset;
  region.shared = true;
  if (!saved_.emplace(file.number, part.file_offset, part.bytes).second) return output_.code({region});
  save_bytes(pid, part, file, region);
}

// Parts with bytes, and what lies between them without.
void SystemProcesses::save_bytes(std::int64_t pid, const Part& part, const BundleOutput::File& file,
                                 const trace::CodeRegion& whole) {
  std::uint64_t done = 0;
  const auto put = [&](std::uint64_t size, trace::TraceBuffer bytes) {
    if (size == 0) return;
    trace::CodeRegion region = whole;
    region.address += done;
    region.file_offset += done;
    region.size = size;
    region.bytes = std::move(bytes);
    output_.code({region});
    done += size;
  };
  const bool saved = read_bytes(pid, part, file, [&](std::uint64_t at, const trace::TraceBuffer& bytes) {
    put(at - done, {});
    put(bytes.size(), bytes);
    if (often_) often_();
  });
  put(part.bytes - done, {});
  if (!saved) saved_.erase({file.number, part.file_offset, part.bytes});
}

bool SystemProcesses::read_bytes(std::int64_t pid, const Part& part, const BundleOutput::File& file,
                                 const CodeReader::Take& take) {
  bool any = false;
  const auto look = [&](std::uint64_t at, trace::TraceBuffer bytes) {
    any = true;
    take(at, std::move(bytes));
  };
  const Mapping mapping = part.mapping();
  CodeReader& reader = output_.reader();
  if (is_file(part.path)) {
    const MappedFile opened = reader.open(static_cast<pid_t>(pid), mapping);
    const bool other = opened.found == MappedFile::Found::ANOTHER ||
                       (!part.build_id.empty() && file.build_id != part.build_id);
    if (other) replaced_.insert(part.path);
    if (!other) reader.read_part(opened, part.path, part.file_offset, part.bytes, look);
  }
  if (any) return true;
  reader.read_memory(static_cast<pid_t>(pid), mapping, look);
  return any && !is_file(part.path);
}

void SystemProcesses::take(const SystemRecord& record, std::uint32_t stream) {
  using Kind = SystemRecord::Kind;
  switch (record.kind) {
    case Kind::SWITCH:
      return on_switch(record, stream);
    case Kind::FORK:
      return on_fork(record);
    case Kind::EXEC:
      return on_exec(record, stream);
    case Kind::MAP:
      return on_map(record);
    case Kind::EXIT:
      return on_exit(record);
    case Kind::NAME:
      return note(trace::SidebandKind::THREAD, record, 0, record.text);
    default:
      return;
  }
}

// Page tables that are not those of the space: an exec() that nobody told of.
void SystemProcesses::set_tables(const SystemRecord& record, Process& process) {
  tables_known_ = tables_known_ || record.tables_known;
  if (!record.tables_known || process.kernel_cr3 == record.kernel_cr3) return;
  if (process.kernel_cr3 != 0) {
    new_space(record.pid, process);
    read_maps_of(record.pid, process, record.tsc);
  }
  process.kernel_cr3 = record.kernel_cr3;
  process.user_cr3 = record.user_cr3;
  trace::Space space{record.pid, record.kernel_cr3, true};
  space.user_cr3 = record.user_cr3;
  output_.describe(process.space, space);
}

void SystemProcesses::on_switch(const SystemRecord& record, std::uint32_t stream) {
  trace::Switch to{record.since != 0 ? record.since : record.tsc, record.pid, record.tid, trace::kAnySpace,
                   record.place};
  trace::SpaceId& last = last_space_[stream];
  if (record.pid < 0) {
    to.pid = to.tid = trace::kNoId;
  } else if (is_kernels(record)) {
    to.space = last;
  } else {
    Process& process = known(record.pid, record.tsc);
    set_tables(record, process);
    // Half way between two records may be before that.
    if (record.tid >= 0) to.tsc = std::max(to.tsc, process.threads.emplace(record.tid, 0).first->second);
    save(record.pid, process);
    to.space = last = process.space;
  }
  // `since` is the middle of two records, or where the recording begins.
  const std::uint64_t width = record.since > 1 ? record.tsc - std::min(record.tsc, record.since) : 0;
  if (width > usual_) widths_[{stream, to.tsc}] = width;
  add_switch(stream, to);
}

// Places are told again and again, whoever runs.
void SystemProcesses::add_switch(std::uint32_t stream, const trace::Switch& to) {
  if (by_place_) {
    const auto [last, fresh] = last_.try_emplace(stream, to);
    const trace::Switch& before = last->second;
    if (!fresh && before.pid == to.pid && before.tid == to.tid && before.space == to.space) return;
    last->second = to;
  }
  switches_[stream].push_back(to);
}

void SystemProcesses::on_fork(const SystemRecord& record) {
  if (record.pid == record.parent_pid) {
    known(record.pid, record.tsc).threads[record.tid] = record.tsc;
    return note(trace::SidebandKind::THREAD, record, 0, {});
  }
  const Parts parts = known(record.parent_pid, record.tsc).parts;
  Process& child = processes_[record.pid];
  new_space(record.pid, child);
  child.parts = parts;
  if (!parts.all().empty()) is_program(child.space);
  if (child.parent != record.parent_pid) {
    if (const auto before = processes_.find(child.parent); before != processes_.end())
      --before->second.children;
    ++processes_[record.parent_pid].children;
    child.parent = record.parent_pid;
  }
  child.ended = child.due = false;
  child.threads = {{record.tid, record.tsc}};
  trace::Sideband out = sideband(trace::SidebandKind::PROCESS, record);
  out.parent = record.parent_pid;
  output_.sideband(out);
}

// Its mappings follow.
void SystemProcesses::on_exec(const SystemRecord& record, std::uint32_t stream) {
  Process& process = known(record.pid, record.tsc);
  // Found just now, /proc shows what it is by now; otherwise this is another image.
  new_space(record.pid, process);
  process.threads = {{record.tid, record.tsc}};
  process.named = false;
  process.saved = user_;
  if (!is_kernels(record)) set_tables(record, process);
  last_space_[stream] = process.space;
  // By place the next one tells.
  if (!by_place_) switches_[stream].push_back({record.tsc, record.pid, record.tid, process.space});
}

void SystemProcesses::on_map(const SystemRecord& record) {
  Process& process = known(record.pid, record.tsc);
  if (!process.named && !record.text.empty() && record.text.front() == '/') {
    process.named = true;
    note(trace::SidebandKind::EXEC, record, 0, record.text);
  }
  add_part(process, record);
}

void SystemProcesses::on_exit(const SystemRecord& record) {
  if (const auto at = processes_.find(record.pid); at != processes_.end()) {
    at->second.threads.erase(record.tid);
    if (at->second.threads.empty()) end(record.pid, at->second);
  }
  note(trace::SidebandKind::EXIT, record, record.status, {});
}

// What it had mapped is in the bundle, or was never executed. The rest is kept for a while: records of it may
// come late.
void SystemProcesses::end(std::int64_t pid, Process& process) {
  constexpr std::size_t kKept = 4096;
  process.threads.clear();
  if (!dumps_.waits_for(process.space)) process.parts = {};
  process.ended = true;
  ended_.push_back(pid);
  if (ended_.size() <= kKept) return;
  const std::int64_t oldest = ended_.front();
  ended_.pop_front();
  forget(oldest);
}

// Those that began others stay as long as these do: they are one family. A number may be another process's by
// now.
void SystemProcesses::forget(std::int64_t pid) {
  auto at = processes_.find(pid);
  if (at != processes_.end()) at->second.due = at->second.ended;
  while (at != processes_.end() && at->second.due && at->second.children == 0) {
    if (dumps_.waits_for(at->second.space)) return;
    const std::int64_t parent = at->second.parent;
    processes_.erase(at);
    at = processes_.find(parent);
    if (at != processes_.end()) --at->second.children;
  }
}

void SystemProcesses::note(trace::SidebandKind kind, const SystemRecord& record, std::int64_t value,
                           std::string text) {
  trace::Sideband out = sideband(kind, record);
  out.value = value;
  out.text = std::move(text);
  output_.sideband(out);
}

}  // namespace ptkit::capture
