#include "capture/linux/emulator/guest_thread.h"

#include <sys/syscall.h>

#include <algorithm>
#include <cstring>

#include "capture/linux/process/tsc_clock.h"
#include "trace/warning_codes.h"

namespace ptkit::capture {

namespace {

// Lines are released in batches, a quarter of a ring, so that a guest that waits is rarely woken.
constexpr std::uint64_t kConsumeBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kCloneThread = 0x00010000;  // CLONE_THREAD (sched.h)

// Returns false for marks and partly filled lines, too: kMark and kNoBlock are above all block numbers.
bool all_below(std::span<const std::uint32_t> blocks, std::uint32_t end) {
  // The highest bit of `above` is set if a block or its distance below `end` has that bit. This takes fewer
  // vector instructions than comparisons of unsigned numbers.
  std::uint32_t above = end;
  for (const std::uint32_t block : blocks) above |= block | (end - 1 - block);
  return above >> 31 == 0;
}

bool is_mark(const plugin::Line& line) { return line.blocks[0] == plugin::kMark; }

plugin::MarkLine as_mark(const plugin::Line& line) {
  plugin::MarkLine mark;
  std::memcpy(&mark, &line, sizeof mark);
  return mark;
}

std::string name_in(const plugin::MarkLine& mark) {
  std::array<char, 2 * sizeof mark.values[1]> name{};
  std::memcpy(name.data(), &mark.values[1], name.size());
  return {name.data(), strnlen(name.data(), name.size() - 1)};
}

}  // namespace

GuestThread::GuestThread(GuestProcess& process, std::uint32_t slot)
    : process_(process),
      recording_(process.recording()),
      shared_(process.shared()),
      slot_(slot),
      tid_(shared_.tid(slot)),
      consumed_(shared_.lines_consumed(slot)),
      line_times_only_(!recording_.block_times()),
      line_blocks_(recording_.line_blocks()) {}

GuestThread::~GuestThread() = default;

std::uint64_t GuestThread::backlog() const noexcept { return shared_.lines(slot_) - consumed_; }

std::uint64_t GuestThread::read(std::uint64_t limit) {
  const std::uint64_t lines = shared_.lines(slot_);
  const std::uint64_t first = consumed_;
  if (lines - first > shared_.capacity()) {
    process_.drop("a thread's count of lines is wrong");
    return 0;
  }
  now_ = read_tsc();
  std::uint64_t released = first;
  while (consumed_ < lines && consumed_ - first < limit && !process_.dropped() && !recording_.full()) {
    const auto batch = std::span(batch_).first(std::min<std::uint64_t>(lines - consumed_, kBatchLines));
    shared_.copy(slot_, consumed_, batch);
    update_pause();
    const std::size_t done = line_times_only_ && encoder_ && !suspended_ ? read_fast(batch) : read(batch);
    consumed_ += done;
    count();
    if (recording_.snapshot_requested()) {
      flush();
      recording_.snapshot();
    }
    if (done == 0) break;
    if ((consumed_ - released) * shared_.layout().line_bytes < kConsumeBytes) continue;
    shared_.consume(slot_, consumed_);
    released = consumed_;
  }
  if (released != consumed_) shared_.consume(slot_, consumed_);
  return consumed_ - first;
}

// Fast path of read(): full lines of known blocks.
std::size_t GuestThread::read_fast(std::span<const plugin::Line> lines) {
  const std::uint32_t known = process_.code().size();
  const bool has_inherited_blocks = process_.has_inherited_blocks();
  std::size_t done = 0;
  for (; done + 1 < lines.size() && !recording_.full(); ++done) {
    const plugin::Line& line = lines[done];
    const std::span<const std::uint32_t> blocks = blocks_of(line);
    if (!all_below(blocks, known)) break;
    if (has_inherited_blocks) process_.executed(blocks);
    const std::uint64_t begin = time(line.tsc);
    encoder_->blocks(blocks, begin, std::clamp(lines[done + 1].tsc, begin, std::max(begin, now_)));
  }
  return done + read(lines.subspan(done, std::min<std::size_t>(2, lines.size() - done)));
}

// Leaves the last line to the next batch if its end is not known.
std::size_t GuestThread::read(std::span<const plugin::Line> lines) {
  std::size_t done = 0;
  for (; done < lines.size() && !recording_.full(); ++done) {
    const plugin::Line& line = lines[done];
    const bool open = line_times_only_ && !is_mark(line);
    if (open && done + 1 == lines.size()) break;
    if (!read(line, open ? lines[done + 1].tsc : line.tsc)) break;
  }
  return done;
}

bool GuestThread::read(const plugin::Line& line, std::uint64_t tsc_end) {
  if (is_mark(line)) {
    on_mark(as_mark(line));
    return !process_.dropped();
  }
  if (!line_times_only_) {
    const auto* end =
        std::find_if(std::begin(line.timed), std::end(line.timed),
                     [](const plugin::TimedBlock& one) { return one.block == plugin::kNoBlock; });
    read_timed_blocks({std::begin(line.timed), end}, line.tsc);
  } else {
    const auto blocks = blocks_of(line);
    read_untimed_blocks({blocks.begin(), std::find(blocks.begin(), blocks.end(), plugin::kNoBlock)}, line.tsc,
                        tsc_end);
  }
  return !process_.dropped();
}

// Reads the line that the thread was filling when it ended. An unused line of the ring may still hold old
// data.
void GuestThread::read_unfinished(const plugin::Line& line) {
  if (is_mark(line) || line.tsc < last_tsc_ || line.tsc > now_) return;
  static_cast<void>(read(line, now_));
}

void GuestThread::flush() {
  if (!encoder_ || flushed_.instructions == counted_.instructions) return;
  encoder_->flush();
  count();
  flushed_ = counted_;
}

void GuestThread::finish(std::uint64_t tsc) {
  const std::uint64_t end = shared_.lines(slot_);
  while (consumed_ < end && read(end - consumed_) != 0) {
  }
  now_ = std::max(now_, tsc);
  std::array<plugin::Line, 2> rest{};  // a line that waits for its end, an incomplete line
  const std::uint64_t lines = shared_.lines(slot_);
  const auto left = std::span(rest).first(std::min<std::uint64_t>(lines - consumed_ + 1, rest.size()));
  shared_.copy(slot_, consumed_, left);
  if (!process_.dropped() && !recording_.full()) {
    const bool next_is_known = left.size() == 2 && left[1].tsc >= left[0].tsc && left[1].tsc <= now_;
    if (left.size() == 2) static_cast<void>(read(left[0], next_is_known ? left[1].tsc : tsc));
    read_unfinished(left.back());
  }
  if (!encoder_) return;
  write_group(time(tsc));
  encoder_->end(time(tsc));
  count();
  process_.end_stream(tid_, time(tsc));
  if (encoder_->log_failed())
    recording_.add_warning(
        warn(trace::WarningCode::EXECUTION_LOG_FAILED).at(recording_.options().log_folder()));
  if (const std::uint64_t times = encoder_->unexplained(); times != 0) {
    recording_.add_warning(
        warn(trace::WarningCode::GUEST_INTERRUPTS, times).at("Thread " + std::to_string(tid_)));
  }
  encoder_.reset();
}

// The guest writes the times, so they are clamped: no time before the last one or after now.
std::uint64_t GuestThread::time(std::uint64_t tsc) noexcept {
  last_tsc_ = std::clamp(tsc, last_tsc_, std::max(last_tsc_, now_));
  return last_tsc_;
}

bool GuestThread::are_known(std::span<const std::uint32_t> blocks) {
  const std::uint32_t highest = *std::max_element(blocks.begin(), blocks.end());
  if (highest < process_.code().size() || process_.read_log_to(highest)) return true;
  process_.drop("a thread executed a block that was never translated");
  return false;
}

void GuestThread::update_pause() {
  const bool paused = recording_.paused();
  if (paused && !suspended_ && encoder_) {
    write_group(last_tsc_);
    encoder_->end(last_tsc_);
  }
  suspended_ = paused;
}

// The number of blocks before recording begins.
std::size_t GuestThread::find_start(std::span<const std::uint32_t> blocks) {
  const std::size_t skipped = process_.filter_triggers().find_start(process_.code(), blocks);
  update_pause();
  return skipped;
}

// Begins a stream if there is none. Returns false while recording is paused.
bool GuestThread::ensure_stream() {
  if (!suspended_ && !encoder_) begin_stream();
  return !suspended_;
}

void GuestThread::read_untimed_blocks(std::span<const std::uint32_t> blocks, std::uint64_t tsc,
                                      std::uint64_t tsc_end) {
  if (blocks.empty() || !are_known(blocks)) return;
  if (recording_.waits_for_start()) blocks = blocks.subspan(find_start(blocks));
  if (blocks.empty() || !ensure_stream()) return;
  process_.executed(blocks);
  const std::uint64_t begin = time(tsc);
  encoder_->blocks(blocks, begin, std::clamp(tsc_end, begin, std::max(begin, now_)));
}

void GuestThread::read_timed_blocks(std::span<const plugin::TimedBlock> blocks, std::uint64_t line_tsc) {
  if (blocks.empty()) return;
  std::array<std::uint32_t, plugin::kLineTimedBlocks> copy{};
  const auto numbers = std::span(copy).first(blocks.size());
  std::transform(blocks.begin(), blocks.end(), numbers.begin(), [](const auto& one) { return one.block; });
  if (!are_known(numbers)) return;
  const std::size_t first = recording_.waits_for_start() ? find_start(numbers) : 0;
  if (first == numbers.size() || !ensure_stream()) return;
  process_.executed(numbers.subspan(first));
  for (std::size_t i = first; i < numbers.size(); ++i) {
    const std::uint64_t tsc = time(line_tsc + (blocks[i].tsc - static_cast<std::uint32_t>(line_tsc)));
    if (group_.size() == line_blocks_) write_group(tsc);
    group_.push_back(numbers[i]);
    group_times_.push_back(tsc);
    group_sps_.push_back(blocks[i].sp);
  }
}

void GuestThread::write_group(std::uint64_t tsc_end) {
  if (group_.empty()) return;
  encoder_->blocks(group_, group_times_.front(), tsc_end, group_times_, group_sps_);
  group_.clear();
  group_times_.clear();
  group_sps_.clear();
}

void GuestThread::begin_stream() {
  stream_ = process_.begin_stream(tid_);
  const RecordOptions& options = recording_.options();
  const std::string name = "/stream-" + std::to_string(stream_);
  BlockLogs logs;
  if (const std::string& folder = options.truth_folder; !folder.empty()) {
    logs.instructions = ExecutionLog(folder + name + ".u64");
    logs.branches = ExecutionLog(folder + name + ".branches");
  }
  if (const std::string& folder = options.transfers_folder; !folder.empty())
    logs.transfers = TransferLog(ExecutionLog(folder + name + ".transfers"));
  encoder_ = std::make_unique<BlockEncoder>(
      recording_.generator_config(), process_.code(),
      [this](base::Bytes bytes) {
        process_.write_code();
        recording_.output().data(stream_, bytes);
      },
      std::move(logs), process_.filter_triggers().filter(),
      [this](std::uint32_t id, std::uint64_t) { recording_.count_event(id); });
}

void GuestThread::count() {
  if (!encoder_) return;
  const EmulatorRecording::Counts now{encoder_->instructions(), encoder_->branches(), encoder_->bytes()};
  recording_.count({now.instructions - counted_.instructions, now.branches - counted_.branches,
                    now.trace_bytes - counted_.trace_bytes});
  counted_ = now;
}

void GuestThread::on_mark(const plugin::MarkLine& mark) {
  const std::uint64_t tsc = time(mark.tsc);
  if (!group_.empty()) write_group(tsc);
  const bool encodes = encoder_ != nullptr && !suspended_;
  switch (mark.kind) {
    case plugin::MarkKind::SYSCALL:
      syscall_ = mark;
      if (encodes) encoder_->syscall(tsc);
      return;
    case plugin::MarkKind::SYSCALL_END:
      if (encodes) encoder_->syscall_end(tsc);
      return on_syscall_end(mark);
    case plugin::MarkKind::INTERRUPT:
      if (encodes) encoder_->interrupted(mark.values[0], tsc, mark.values[1]);
      return;
    case plugin::MarkKind::RESUME:
      return on_resume(mark, tsc);
    case plugin::MarkKind::TRANSLATED:
      if (!process_.read_log_to(static_cast<std::uint32_t>(mark.values[0])))
        process_.drop("a block that was translated is not in its log");
      return;
    case plugin::MarkKind::THREAD_EXIT:
      exited_ = true;
      return process_.note(trace::SidebandKind::EXIT, tid_, tsc, static_cast<std::uint8_t>(mark.values[0]),
                           {});
    case plugin::MarkKind::PROCESS_EXIT:
      return process_.set_exit_status(static_cast<std::uint8_t>(mark.values[0]));
    case plugin::MarkKind::NAME:
      return process_.name_thread(static_cast<pid_t>(mark.values[0]), name_in(mark), tsc);
    case plugin::MarkKind::EXEC:
    case plugin::MarkKind::EXEC_FAILED:
      return;
  }
  process_.drop("a thread wrote a mark of unknown kind " +
                std::to_string(static_cast<std::uint32_t>(mark.kind)));
}

void GuestThread::on_syscall_end(const plugin::MarkLine& mark) {
  const std::uint64_t number = mark.values[0];
  const auto result = static_cast<std::int64_t>(mark.values[1]);
  const bool thread = number == SYS_clone && (syscall_.values[1] & kCloneThread) != 0;
  if ((number == SYS_fork || number == SYS_vfork || number == SYS_clone) && !thread && result > 0)
    recording_.expect_child(process_.pid(), static_cast<pid_t>(result));
}

void GuestThread::on_resume(const plugin::MarkLine& mark, std::uint64_t tsc) {
  const int signal = mark.values[3] != 0 ? static_cast<int>(mark.values[2]) : 0;
  if (encoder_ != nullptr && !suspended_) encoder_->resumed(mark.values[0], tsc, signal);
  if (signal == 0) return;
  process_.note(trace::SidebandKind::SIGNAL, tid_, tsc, signal, {});
  recording_.signal(signal);
}

}  // namespace ptkit::capture
