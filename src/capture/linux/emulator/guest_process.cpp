#include "capture/linux/emulator/guest_process.h"

#include <algorithm>
#include <cstring>

#include "capture/linux/emulator/guest_thread.h"
#include "capture/linux/files/file_table.h"
#include "trace/warning_codes.h"

namespace ptkit::capture {

using trace::WarningCode;

namespace {

constexpr int kUnknownStatus = -1;
constexpr std::size_t kCommBytes = 15;  // length of a thread's name (TASK_COMM_LEN - 1)

// Copies a record's fixed part. Returns false if the record is too short for it or for the bytes that follow.
template <typename T>
bool parse(base::Bytes record, T& out, std::uint32_t T::*following) {
  if (record.size() < sizeof out) return false;
  std::memcpy(&out, record.data(), sizeof out);
  return out.*following <= record.size() - sizeof out;
}

std::string text_at(base::Bytes bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace

GuestProcess::GuestProcess(EmulatorRecording& recording, SharedMemory shared, Origin origin,
                           GuestProcess* parent, std::uint32_t inherited)
    : recording_(recording),
      shared_(std::move(shared)),
      origin_(std::move(origin)),
      space_(recording.output().space(origin_.pid)),
      code_(parent != nullptr ? GuestCode(parent->code_, inherited) : GuestCode()),
      bytes_(std::make_shared<BlockBytes>(parent != nullptr ? parent->bytes_ : nullptr, code_.size())),
      store_(space_),
      inherited_(code_.size()),
      inherited_seen_(inherited_),
      filter_triggers_(recording, store_),
      slots_(shared_.layout().slots) {
  begin();
  if (parent != nullptr) inherit_mappings(*parent);
}

GuestProcess::~GuestProcess() = default;

void GuestProcess::begin() {
  trace::Sideband record;
  record.kind = origin_.parent != 0 ? trace::SidebandKind::PROCESS : trace::SidebandKind::EXEC;
  record.tsc = origin_.tsc;
  record.pid = record.tid = origin_.pid;
  if (origin_.parent != 0)
    record.parent = origin_.parent;
  else
    record.text = origin_.program;
  recording_.output().sideband(record);
}

void GuestProcess::note(trace::SidebandKind kind, pid_t tid, std::uint64_t tsc, std::int64_t value,
                        std::string text) {
  trace::Sideband record;
  record.kind = kind;
  record.tsc = tsc;
  record.pid = origin_.pid;
  record.tid = tid;
  record.value = value;
  record.text = std::move(text);
  recording_.output().sideband(record);
}

trace::Stream GuestProcess::stream_of(pid_t tid, const ThreadName& thread_name) const {
  trace::Stream stream;
  stream.pid = origin_.pid;
  stream.tid = tid;
  stream.space = space_;
  stream.name = "thread " + std::to_string(tid) + " (" + thread_name.name + ")";
  return stream;
}

// Linux names a process after its program until the process names itself. An emulated process has the
// emulator's name instead.
void GuestProcess::name_thread(pid_t tid, std::string name, std::uint64_t tsc) {
  if (name.empty() || name.rfind("qemu-", 0) == 0) name = base_name(origin_.program).substr(0, kCommBytes);
  note(trace::SidebandKind::THREAD, tid, tsc, 0, name);
  const std::lock_guard lock(names_mutex_);
  ThreadName& thread_name = names_[tid];
  if (tsc < thread_name.since) return;  // another thread has reported a later name
  thread_name.since = tsc;
  if (thread_name.name == name) return;
  thread_name.name = std::move(name);
  // Another thread may have named this thread before its end. That thread's lines may be read later.
  if (thread_name.stream && tsc <= thread_name.end.value_or(tsc))
    recording_.output().add_to(*thread_name.stream, stream_of(tid, thread_name));
}

std::uint32_t GuestProcess::begin_stream(pid_t tid) {
  const std::lock_guard lock(names_mutex_);
  ThreadName& thread_name = names_[tid];
  if (thread_name.name.empty()) thread_name.name = base_name(origin_.program).substr(0, kCommBytes);
  thread_name.stream = recording_.output().stream(stream_of(tid, thread_name));
  thread_name.end.reset();
  return *thread_name.stream;
}

void GuestProcess::end_stream(pid_t tid, std::uint64_t tsc) {
  const std::lock_guard lock(names_mutex_);
  names_[tid].end = tsc;
}

// ---- workers

bool GuestProcess::read(const ReadPass& pass) {
  const bool ended = end_.load(std::memory_order_acquire) != End::NONE;
  const auto slots = static_cast<std::uint32_t>(slots_.size());
  bool progressed = false;
  bool final = ended;
  // Threads take slots in order: after the last used slot, at most one is new.
  for (std::uint32_t i = 0; i < std::min(used_slots_.load(std::memory_order_relaxed) + 1, slots); ++i) {
    ThreadSlot& thread_slot = slots_[i];
    if (thread_slot.busy.test_and_set(std::memory_order_acquire)) {
      final = false;
      continue;
    }
    // A thread stays with its worker unless that worker falls behind.
    const bool others = thread_slot.thread && thread_slot.worker != pass.worker && !ended;
    if (!others || thread_slot.thread->backlog() > shared_.capacity() / 2) {
      thread_slot.worker = pass.worker;
      progressed |= read(thread_slot, i, pass);
    }
    final &= thread_slot.final;
    thread_slot.busy.clear(std::memory_order_release);
  }
  if (final && !finishing_.test_and_set()) finish();
  return progressed;
}

bool GuestProcess::read(ThreadSlot& thread_slot, std::uint32_t slot, const ReadPass& pass) {
  // Loaded before the lines: after the end no more lines come.
  const bool ended = end_.load(std::memory_order_acquire) != End::NONE;
  const std::uint32_t state = shared_.state(slot);
  const bool used = state == plugin::SLOT_USED || state == plugin::SLOT_ENDED;
  if (state > plugin::SLOT_TAKEN) drop("a thread is in no known state");
  if (!thread_slot.thread && used && !thread_slot.final) {
    thread_slot.thread = std::make_unique<GuestThread>(*this, slot);
    std::uint32_t known = used_slots_.load(std::memory_order_relaxed);
    while (known <= slot && !used_slots_.compare_exchange_weak(known, slot + 1, std::memory_order_relaxed)) {
    }
  }
  bool progressed = false;
  if (thread_slot.thread) {
    progressed = thread_slot.thread->read(pass.limit / shared_.layout().line_bytes) != 0;
    if (pass.flush) thread_slot.thread->flush();
    if (!progressed && (ended || state == plugin::SLOT_ENDED)) {
      finish_thread(thread_slot, ended ? end_tsc_ : 0);  // 0: with its last mark
      if (!ended) shared_.free_slot(slot);
      progressed = true;
    }
  }
  thread_slot.final = ended && !thread_slot.thread;
  return progressed;
}

void GuestProcess::finish_thread(ThreadSlot& thread_slot, std::uint64_t tsc) {
  GuestThread& thread = *thread_slot.thread;
  thread.finish(tsc);
  if (end_ == End::EXITED && !thread.exited()) {
    const int marked = exit_mark_;
    note(trace::SidebandKind::EXIT, thread.tid(), tsc,
         status_.value_or(marked >= 0 ? marked : kUnknownStatus), {});
  }
  thread_slot.thread.reset();
}

void GuestProcess::end(End reason, std::uint64_t tsc, std::optional<int> status) {
  if (end_ != End::NONE) return;
  end_tsc_ = tsc;
  status_ = status;
  end_.store(reason, std::memory_order_release);
}

void GuestProcess::finish() {
  {
    const std::lock_guard lock(log_mutex_);
    for (base::Bytes record = shared_.next_record(); !record.empty(); record = shared_.next_record())
      read_log_record(record);
    recording_.add_ranges(filter_triggers_.ranges());
    recording_.jit_names().executed(space_, std::exchange(jit_executions_, {}));
  }
  write_code();
  warn_of_losses();
  if (end_ != End::CUT) shared_.discard();  // after CUT the process still uses the memory
  done_.store(true, std::memory_order_release);
}

void GuestProcess::warn_of_losses() {
  const std::string label = process_label(origin_.pid) + " (" + base_name(origin_.program) + ")";
  if (const std::uint32_t lost = shared_.lost_threads(); lost != 0)
    recording_.add_warning(warn(WarningCode::GUEST_THREAD_LIMIT, lost, slots_.size()).at(label));
  if (const std::uint32_t lost = shared_.lost_children(); lost != 0)
    recording_.add_warning(warn(WarningCode::GUEST_CHILDREN_UNREACHED, lost).at(label));
  if (code_.changes() != 0 && !recording_.options().timing_packets().tsc)
    recording_.add_warning(warn(WarningCode::GUEST_CODE_UNTIMED).at(label));
}

void GuestProcess::drop(const std::string& why) {
  if (dropped_.exchange(true)) return;
  shared_.stop();
  recording_.add_warning(warn(WarningCode::GUEST_DATA_DAMAGED, why).at(process_label(origin_.pid)));
}

// ---- the log

bool GuestProcess::read_log_to(std::uint32_t block) {
  const std::lock_guard lock(log_mutex_);
  while (code_.size() <= block) {
    const base::Bytes record = shared_.next_record();
    if (record.empty()) return false;
    read_log_record(record);
  }
  return true;
}

void GuestProcess::read_log_record(base::Bytes record) {
  plugin::LogRecord head;
  std::memcpy(&head, record.data(), sizeof head);
  switch (head.kind) {
    case plugin::LogKind::BLOCK:
      return on_block(record);
    case plugin::LogKind::MAP:
      return on_map(record);
    case plugin::LogKind::NOTE:
      return on_note(record);
  }
  drop("its log has a record of unknown kind " + std::to_string(static_cast<unsigned>(head.kind)));
}

void GuestProcess::on_block(base::Bytes record) {
  plugin::LogBlock block;
  if (!parse(record, block, &plugin::LogBlock::size)) return drop("its log has a block of a wrong size");
  const base::Bytes bytes = record.subspan(sizeof block, block.size);
  const bool changed = store_.add(block.pc, bytes, block.tsc);
  if (!store_.is_of_file(block.pc)) jit_executions_.push_back({block.pc, block.tsc, changed});
  bytes_->add(block.pc, bytes);
  code_.add(block.pc, bytes, changed ? block.tsc : 0);
}

void GuestProcess::on_map(base::Bytes record) {
  plugin::LogMap map;
  if (!parse(record, map, &plugin::LogMap::path_bytes)) return drop("its log has a mapping of a wrong size");
  if (map.begin >= map.end) return drop("its log has a mapping that ends before it begins");
  add_mapping({map.begin, map.end, map.offset, text_at(record.subspan(sizeof map, map.path_bytes))}, map.tsc);
}

void GuestProcess::add_mapping(FileMapping mapping, std::uint64_t tsc) {
  trace::Sideband record;
  record.kind = trace::SidebandKind::MAP;
  record.tsc = tsc;
  record.pid = origin_.pid;
  record.address = mapping.begin;
  record.size = mapping.end - mapping.begin;
  record.file = recording_.output().file(origin_.pid, mapping.path);
  record.file_offset = mapping.offset;
  recording_.output().sideband(record);
  store_.map(mapping.begin, mapping.end, record.file, mapping.offset);
  filter_triggers_.map(origin_.pid, mapping.begin, mapping.end, mapping.offset, mapping.path);
  if (record.file >= 0) {
    // A region without bytes: decoders name the file if they need code that was not executed.
    trace::CodeRegion region;
    region.space = space_;
    region.address = record.address;
    region.size = record.size;
    region.file = record.file;
    region.file_offset = record.file_offset;
    recording_.output().code({region});
  }
  std::erase_if(mappings_,
                [&](const FileMapping& one) { return one.begin >= mapping.begin && one.end <= mapping.end; });
  mappings_.push_back(std::move(mapping));
}

// The plugin in a forked child does not log the mappings that it logged in the parent.
void GuestProcess::inherit_mappings(GuestProcess& parent) {
  std::vector<FileMapping> mappings;
  {
    const std::lock_guard lock(parent.log_mutex_);
    mappings = parent.mappings_;
  }
  for (FileMapping& mapping : mappings) add_mapping(std::move(mapping), origin_.tsc);
}

void GuestProcess::on_note(base::Bytes record) {
  plugin::LogNote note;
  if (!parse(record, note, &plugin::LogNote::text_bytes)) return drop("its log has a note of a wrong size");
  const std::string path = text_at(record.subspan(sizeof note, note.text_bytes));
  const std::string label = process_label(origin_.pid);
  switch (note.kind) {
    case plugin::NoteKind::PROGRAM_NATIVE:
      return recording_.add_warning(warn(WarningCode::GUEST_PROGRAM_NATIVE, path).at(label));
    case plugin::NoteKind::EXEC_FAILED:
      return recording_.add_warning(
          warn(WarningCode::GUEST_EXEC_FAILED, path, std::strerror(note.error)).at(label));
  }
  drop("its log has a note of unknown kind " + std::to_string(static_cast<unsigned>(note.kind)));
}

void GuestProcess::write_code() {
  const std::lock_guard lock(log_mutex_);
  const std::vector<trace::CodeRegion> regions = store_.take();
  if (!regions.empty()) recording_.output().code(regions);
}

void GuestProcess::executed(std::span<const std::uint32_t> blocks) {
  for (const std::uint32_t number : blocks) {
    if (number >= inherited_ || inherited_seen_[number]) continue;
    const BlockBytes::Block block = bytes_->get(number);
    const std::lock_guard lock(log_mutex_);
    if (inherited_seen_[number].exchange(true)) continue;
    static_cast<void>(store_.add(block.pc, block.bytes, origin_.tsc));
  }
}

}  // namespace ptkit::capture
