#include "capture/guest_process.h"

#include <algorithm>
#include <cstring>

#include "capture/file_table.h"
#include "capture/guest_thread.h"

namespace ptkit::capture {

namespace {

constexpr int kUnknownStatus = -1;
constexpr std::size_t kCommBytes = 15;  // of a thread's name (TASK_COMM_LEN)

// A copy of a record's fixed part; false if it is shorter, or what follows it does not fit.
template <typename T>
bool parse(base::Bytes record, T& out, std::uint32_t T::*following) {
  if (record.size() < sizeof out) return false;
  std::memcpy(&out, record.data(), sizeof out);
  return out.*following <= record.size() - sizeof out;
}

std::string text_at(base::Bytes bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace

GuestProcess::GuestProcess(Recording& recording, Arena arena, Origin origin, GuestProcess* parent,
                           std::uint32_t inherited)
    : recording_(recording),
      arena_(std::move(arena)),
      origin_(std::move(origin)),
      space_(recording.output().space(origin_.pid)),
      code_(parent != nullptr ? GuestCode(parent->code_, inherited) : GuestCode()),
      bytes_(std::make_shared<BlockBytes>(parent != nullptr ? parent->bytes_ : nullptr, code_.size())),
      store_(space_),
      inherited_(code_.size()),
      inherited_seen_(inherited_),
      conditions_(recording, store_),
      seats_(arena_.shape().slots) {
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

trace::Stream GuestProcess::stream_of(pid_t tid, const Named& named) const {
  trace::Stream stream;
  stream.pid = origin_.pid;
  stream.tid = tid;
  stream.space = space_;
  stream.name = "thread " + std::to_string(tid) + " (" + named.name + ")";
  return stream;
}

// Linux calls a process like its program until it names itself; the emulator's is called like the emulator.
void GuestProcess::name_thread(pid_t tid, std::string name, std::uint64_t tsc) {
  if (name.empty() || name.rfind("qemu-", 0) == 0) name = base_name(origin_.program).substr(0, kCommBytes);
  note(trace::SidebandKind::THREAD, tid, tsc, 0, name);
  const std::lock_guard lock(names_mutex_);
  Named& named = names_[tid];
  if (tsc < named.since) return;  // another thread told a later one
  named.since = tsc;
  if (named.name == name) return;
  named.name = std::move(name);
  // Another thread may have named it before its end, and be read later.
  if (named.stream && tsc <= named.end.value_or(tsc))
    recording_.output().add_to(*named.stream, stream_of(tid, named));
}

std::uint32_t GuestProcess::begin_stream(pid_t tid) {
  const std::lock_guard lock(names_mutex_);
  Named& named = names_[tid];
  if (named.name.empty()) named.name = base_name(origin_.program).substr(0, kCommBytes);
  named.stream = recording_.output().stream(stream_of(tid, named));
  named.end.reset();
  return *named.stream;
}

void GuestProcess::end_stream(pid_t tid, std::uint64_t tsc) {
  const std::lock_guard lock(names_mutex_);
  names_[tid].end = tsc;
}

// ---- workers

bool GuestProcess::visit(const Visit& how) {
  const bool ended = end_.load(std::memory_order_acquire) != End::NONE;
  const auto seats = static_cast<std::uint32_t>(seats_.size());
  bool moved = false;
  bool final = ended;
  // Slots are taken in order: behind the last one that was ever used there is one new one at most to look at.
  for (std::uint32_t i = 0; i < std::min(used_seats_.load(std::memory_order_relaxed) + 1, seats); ++i) {
    Seat& seat = seats_[i];
    if (seat.busy.test_and_set(std::memory_order_acquire)) {
      final = false;
      continue;
    }
    // A thread stays with the worker that knows it, unless that cannot keep up.
    const bool others = seat.thread && seat.worker != how.worker && !ended;
    if (!others || seat.thread->backlog() > arena_.capacity() / 2) {
      seat.worker = how.worker;
      moved |= visit(seat, i, how);
    }
    final &= seat.final;
    seat.busy.clear(std::memory_order_release);
  }
  if (final && !finishing_.test_and_set()) finish();
  return moved;
}

bool GuestProcess::visit(Seat& seat, std::uint32_t slot, const Visit& how) {
  // Looked at before the lines: what is there by then is all that comes.
  const bool ended = end_.load(std::memory_order_acquire) != End::NONE;
  const std::uint32_t state = arena_.state(slot);
  const bool used = state == qemu::SLOT_USED || state == qemu::SLOT_ENDED;
  if (state > qemu::SLOT_TAKEN) drop("a thread is in no known state");
  if (!seat.thread && used && !seat.final) {
    seat.thread = std::make_unique<GuestThread>(*this, slot);
    std::uint32_t known = used_seats_.load(std::memory_order_relaxed);
    while (known <= slot && !used_seats_.compare_exchange_weak(known, slot + 1, std::memory_order_relaxed)) {
    }
  }
  bool moved = false;
  if (seat.thread) {
    moved = seat.thread->read(how.limit) != 0;
    if (how.flush) seat.thread->flush();
    if (!moved && (ended || state == qemu::SLOT_ENDED)) {
      leave(seat, ended ? end_tsc_ : 0);  // 0: with its last mark
      if (!ended) arena_.free_slot(slot);
      moved = true;
    }
  }
  seat.final = ended && !seat.thread;
  return moved;
}

void GuestProcess::leave(Seat& seat, std::uint64_t tsc) {
  GuestThread& thread = *seat.thread;
  thread.finish(tsc);
  if (end_ == End::EXITED && !thread.exited()) {
    const int marked = exit_mark_;
    note(trace::SidebandKind::EXIT, thread.tid(), tsc,
         status_.value_or(marked >= 0 ? marked : kUnknownStatus), {});
  }
  seat.thread.reset();
}

void GuestProcess::end(End how, std::uint64_t tsc, std::optional<int> status) {
  if (end_ != End::NONE) return;
  end_tsc_ = tsc;
  status_ = status;
  end_.store(how, std::memory_order_release);
}

void GuestProcess::finish() {
  {
    const std::lock_guard lock(log_mutex_);
    for (base::Bytes record = arena_.next_record(); !record.empty(); record = arena_.next_record())
      read_log_record(record);
    recording_.ranges_are(conditions_.ranges());
  }
  write_code();
  warn_of_losses();
  if (end_ != End::CUT) arena_.discard();  // else the process still looks at it
  done_.store(true, std::memory_order_release);
}

void GuestProcess::warn_of_losses() {
  const auto times = [](std::uint32_t count) { return count == 1 ? " was" : "s were"; };
  const std::string who =
      "Process " + std::to_string(origin_.pid) + " (" + base_name(origin_.program) + "): ";
  if (const std::uint32_t lost = arena_.lost_threads(); lost != 0)
    recording_.warn(who + std::to_string(lost) + " thread" + times(lost) +
                    " not recorded: there were more at once than " + std::to_string(seats_.size()) + ".");
  if (const std::uint32_t lost = arena_.lost_children(); lost != 0)
    recording_.warn(who + std::to_string(lost) + " child process" + (lost == 1 ? " was" : "es were") +
                    " not recorded: the recorder could not be reached from there.");
  if (code_.changes() != 0 && !recording_.options().tsc)
    recording_.warn(who +
                    "it changed code that it had executed, and without timing packets nobody can tell when: "
                    "parts of the trace may be decoded with the wrong code. Record with timing.");
}

void GuestProcess::drop(const std::string& why) {
  if (dropped_.exchange(true)) return;
  arena_.stop();
  recording_.warn(
      "Process " + std::to_string(origin_.pid) + ": what it told the recorder is damaged (" + why +
      "): its recording ends there. A program that writes to memory that is not its own can cause "
      "this.");
}

// ---- the log

bool GuestProcess::require(std::uint32_t block) {
  const std::lock_guard lock(log_mutex_);
  while (code_.size() <= block) {
    const base::Bytes record = arena_.next_record();
    if (record.empty()) return false;
    read_log_record(record);
  }
  return true;
}

void GuestProcess::read_log_record(base::Bytes record) {
  qemu::LogRecord head;
  std::memcpy(&head, record.data(), sizeof head);
  switch (head.kind) {
    case qemu::LogKind::BLOCK:
      return on_block(record);
    case qemu::LogKind::MAP:
      return on_map(record);
    case qemu::LogKind::NOTE:
      return on_note(record);
  }
  drop("its log has a record of unknown kind " + std::to_string(static_cast<unsigned>(head.kind)));
}

void GuestProcess::on_block(base::Bytes record) {
  qemu::LogBlock block;
  if (!parse(record, block, &qemu::LogBlock::size)) return drop("its log has a block of a wrong size");
  const base::Bytes bytes = record.subspan(sizeof block, block.size);
  const bool changed = store_.add(block.pc, bytes, block.tsc);
  bytes_->add(block.pc, bytes);
  code_.add(block.pc, bytes, changed ? block.tsc : 0);
}

void GuestProcess::on_map(base::Bytes record) {
  qemu::LogMap map;
  if (!parse(record, map, &qemu::LogMap::path_bytes)) return drop("its log has a mapping of a wrong size");
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
  conditions_.map(origin_.pid, mapping.begin, mapping.end, mapping.offset, mapping.path);
  if (record.file >= 0) {
    // Without bytes: what a decoder names if it wants code that was not executed here.
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

// A child is not told again what its parent was told.
void GuestProcess::inherit_mappings(GuestProcess& parent) {
  std::vector<FileMapping> mappings;
  {
    const std::lock_guard lock(parent.log_mutex_);
    mappings = parent.mappings_;
  }
  for (FileMapping& mapping : mappings) add_mapping(std::move(mapping), origin_.tsc);
}

void GuestProcess::on_note(base::Bytes record) {
  qemu::LogNote note;
  if (!parse(record, note, &qemu::LogNote::text_bytes)) return drop("its log has a note of a wrong size");
  recording_.warn("Process " + std::to_string(origin_.pid) + ": " +
                  text_at(record.subspan(sizeof note, note.text_bytes)) + ".");
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
