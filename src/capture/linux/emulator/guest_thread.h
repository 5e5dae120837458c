// One thread in the emulator. Reads its lines and encodes them into a stream.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "capture/linux/emulator/guest_process.h"
#include "capture/linux/encode/block_encoder.h"

namespace ptkit::capture {

class GuestThread {
 public:
  GuestThread(GuestProcess& process, std::uint32_t slot);
  ~GuestThread();

  [[nodiscard]] pid_t tid() const noexcept { return tid_; }
  [[nodiscard]] bool exited() const noexcept { return exited_; }
  [[nodiscard]] std::uint64_t backlog() const noexcept;  // unread lines
  // Reads up to `limit` lines and returns their number. The last complete line may have to wait for the next
  // line, as that line's time is its end.
  std::uint64_t read(std::uint64_t limit);
  // Writes all packets to the bundle.
  void flush();
  // Reads the remaining lines, also the incomplete one, and ends the stream. No block began after `tsc`.
  void finish(std::uint64_t tsc);

 private:
  static constexpr std::size_t kBatchLines = 32;

  [[nodiscard]] std::span<const std::uint32_t> blocks_of(const plugin::Line& line) const noexcept {
    return std::span(line.blocks).first(line_blocks_);
  }
  [[nodiscard]] std::size_t read_fast(std::span<const plugin::Line> lines);
  [[nodiscard]] std::size_t read(std::span<const plugin::Line> lines);
  [[nodiscard]] bool read(const plugin::Line& line, std::uint64_t tsc_end);
  void read_unfinished(const plugin::Line& line);
  void read_untimed_blocks(std::span<const std::uint32_t> blocks, std::uint64_t tsc, std::uint64_t tsc_end);
  void read_timed_blocks(std::span<const plugin::TimedBlock> blocks, std::uint64_t line_tsc);
  void write_group(std::uint64_t tsc_end);
  void on_mark(const plugin::MarkLine& mark);
  void on_syscall_end(const plugin::MarkLine& mark);
  void on_resume(const plugin::MarkLine& mark, std::uint64_t tsc);
  [[nodiscard]] bool are_known(std::span<const std::uint32_t> blocks);
  [[nodiscard]] std::uint64_t time(std::uint64_t tsc) noexcept;
  void update_pause();
  [[nodiscard]] std::size_t find_start(std::span<const std::uint32_t> blocks);
  [[nodiscard]] bool ensure_stream();
  void begin_stream();
  void count();

  GuestProcess& process_;
  EmulatorRecording& recording_;
  SharedMemory& shared_;
  std::uint32_t slot_;
  pid_t tid_;
  std::uint64_t consumed_;  // lines
  bool line_times_only_;    // lines have times, blocks have none
  std::size_t line_blocks_;
  std::uint64_t now_ = 0;  // upper bound of the times of lines read so far
  std::uint64_t last_tsc_ = 0;
  std::unique_ptr<BlockEncoder> encoder_;  // null until the first block
  std::uint32_t stream_ = 0;
  bool exited_ = false;         // by exit(): the bundle has its EXIT record
  bool suspended_ = false;      // recording is paused
  plugin::MarkLine syscall_{};  // the last SYSCALL mark
  // Blocks with block times that are encoded as if only the line's time were known.
  std::vector<std::uint32_t> group_;
  std::vector<std::uint64_t> group_times_;
  std::vector<std::uint64_t> group_sps_;
  std::array<plugin::Line, kBatchLines> batch_;
  EmulatorRecording::Counts counted_;
  EmulatorRecording::Counts flushed_;
};

}  // namespace ptkit::capture
