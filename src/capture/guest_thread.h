// One thread in the emulator: its lines become the bytes of a stream.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "capture/block_encoder.h"
#include "capture/guest_process.h"

namespace ptkit::capture {

class GuestThread {
 public:
  GuestThread(GuestProcess& process, std::uint32_t slot);
  ~GuestThread();

  [[nodiscard]] pid_t tid() const noexcept { return tid_; }
  [[nodiscard]] bool exited() const noexcept { return exited_; }
  [[nodiscard]] std::uint64_t backlog() const noexcept;  // lines that were not read yet
  // Reads up to `limit` lines; how many it did. The last complete line may have to wait for the next one,
  // whose time tells when it ended.
  std::uint64_t read(std::uint64_t limit);
  // Hands over the packets that are made, so that the bundle has them.
  void flush();
  // Reads what is left, also the line that is not complete, and ends the stream. `tsc`: nothing happened
  // after that.
  void finish(std::uint64_t tsc);

 private:
  static constexpr std::size_t kBatchLines = 64;

  [[nodiscard]] std::size_t read_fast(std::span<const qemu::Line> lines);
  [[nodiscard]] std::size_t read(std::span<const qemu::Line> lines);
  [[nodiscard]] bool read(const qemu::Line& line, std::uint64_t tsc_end);
  void read_unfinished(const qemu::Line& line);
  void read_plain(std::span<const std::uint32_t> blocks, std::uint64_t tsc, std::uint64_t tsc_end);
  void read_timed(std::span<const qemu::TimedBlock> blocks, std::uint64_t line_tsc);
  void write_group(std::uint64_t tsc_end);
  void on_mark(const qemu::MarkLine& mark);
  void on_syscall_end(const qemu::MarkLine& mark);
  void on_resume(const qemu::MarkLine& mark, std::uint64_t tsc);
  [[nodiscard]] bool known(std::span<const std::uint32_t> blocks);
  [[nodiscard]] std::uint64_t time(std::uint64_t tsc) noexcept;
  void follow_pauses();
  [[nodiscard]] std::size_t find_start(std::span<const std::uint32_t> blocks);
  [[nodiscard]] bool recorded();
  void begin_stream();
  void count();

  GuestProcess& process_;
  Recording& recording_;
  Arena& arena_;
  std::uint32_t slot_;
  pid_t tid_;
  std::uint64_t consumed_;  // lines
  bool plain_;              // only lines have times, not blocks
  std::uint64_t now_ = 0;   // nothing that was read so far can be later
  std::uint64_t last_tsc_ = 0;
  std::unique_ptr<BlockEncoder> encoder_;  // made when the first block is executed
  std::uint32_t stream_ = 0;
  bool exited_ = false;       // by itself: the bundle knows
  bool suspended_ = false;    // recording is paused
  qemu::MarkLine syscall_{};  // the last one's
  // Blocks with their times, where packets are made as if only the time of each line's begin were known.
  std::vector<std::uint32_t> group_;
  std::vector<std::uint64_t> group_times_;
  std::array<qemu::Line, kBatchLines> batch_;
  Recording::Counts counted_;
  Recording::Counts flushed_;
};

}  // namespace ptkit::capture
