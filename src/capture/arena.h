// The recorder's end of a memory file that a process in the emulator writes (src/qemu/channel.h). The guest
// can write to it too, on purpose or not: what is read is copied, then checked, then used.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "capture/tracee.h"
#include "qemu/channel.h"

namespace ptkit::capture {

struct ArenaShape {
  std::uint64_t log_bytes = std::uint64_t{4} << 20U;    // a multiple of kPageBytes, kMaxLogRecord at least
  std::uint64_t lines_bytes = std::uint64_t{4} << 20U;  // of a slot; a power of two, kPageBytes at least
  std::uint32_t slots = 256;                            // what is not used takes no memory
  bool block_times = false;
};

class Arena {
 public:
  [[nodiscard]] static base::Result<Arena> create(const ArenaShape& shape);
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&&) = delete;
  ~Arena();

  [[nodiscard]] const ArenaShape& shape() const noexcept { return shape_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] int file() const noexcept { return file_.get(); }
  void close_file() { file_ = Fd(); }  // the process has it
  void discard() noexcept;             // everything was read, nothing more comes: frees the memory

  void beat() noexcept;  // the recorder is alive
  void stop() noexcept;  // the plugin records no more
  [[nodiscard]] std::uint32_t lost_threads() const noexcept;
  [[nodiscard]] std::uint32_t lost_children() const noexcept;

  // The next record of the log, header included; empty if there is none yet. Good until the next call, which
  // frees its place.
  [[nodiscard]] base::Bytes next_record();
  [[nodiscard]] bool damaged() const noexcept { return damaged_; }  // the log is: nothing more comes of it

  [[nodiscard]] std::uint32_t state(std::uint32_t slot) const noexcept;
  [[nodiscard]] std::int32_t tid(std::uint32_t slot) const noexcept;
  void free_slot(std::uint32_t slot) noexcept;
  [[nodiscard]] std::uint64_t lines(std::uint32_t slot) const noexcept;  // complete ones, ever
  [[nodiscard]] std::uint64_t lines_consumed(std::uint32_t slot) const noexcept;
  [[nodiscard]] std::uint64_t capacity() const noexcept { return shape_.lines_bytes / qemu::kLineBytes; }
  // Copies lines from number `first` on.
  void copy(std::uint32_t slot, std::uint64_t first, std::span<qemu::Line> out) const noexcept;
  void consume(std::uint32_t slot, std::uint64_t lines) noexcept;

 private:
  Arena(const ArenaShape& shape, Fd file, void* memory, std::uint64_t bytes);
  [[nodiscard]] qemu::ArenaHeader& header() const noexcept;
  [[nodiscard]] qemu::SlotHeader& slot(std::uint32_t index) const noexcept;
  [[nodiscard]] std::uint64_t slot_bytes() const noexcept { return qemu::kPageBytes + shape_.lines_bytes; }
  void release_log(std::uint64_t consumed) noexcept;

  ArenaShape shape_;
  Fd file_;
  std::uint8_t* memory_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::uint64_t log_read_ = 0;  // bytes
  std::vector<std::uint8_t> record_;
  bool damaged_ = false;
};

}  // namespace ptkit::capture
