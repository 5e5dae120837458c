// The recorder's mapping of the memory file that it shares with a process in the emulator
// (src/capture/linux/emulator/plugin/channel.h). The guest can write to the file, too: data is copied, then
// checked, then used.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "capture/linux/emulator/plugin/channel.h"
#include "capture/linux/process/process.h"

namespace ptkit::capture {

struct SharedMemoryLayout {
  std::uint64_t log_bytes = std::uint64_t{4} << 20U;    // a multiple of kPageBytes, at least kMaxLogRecord
  std::uint64_t lines_bytes = std::uint64_t{4} << 20U;  // per slot; a power of two, at least kPageBytes
  std::uint32_t slots = 256;                            // unused slots take no memory
  std::uint64_t line_bytes = plugin::kLongLineBytes;    // or kShortLineBytes
  bool block_times = false;
};

class SharedMemory {
 public:
  [[nodiscard]] static base::Result<SharedMemory> create(const SharedMemoryLayout& layout);
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;
  ~SharedMemory();

  [[nodiscard]] const SharedMemoryLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] int file() const noexcept { return file_.get(); }
  void close_file() { file_ = Fd(); }  // the process has the file now
  void discard() noexcept;             // frees the memory of the log and the lines

  void heartbeat() noexcept;  // the recorder is alive
  void stop() noexcept;       // makes the plugin stop recording
  [[nodiscard]] std::uint32_t lost_threads() const noexcept;
  [[nodiscard]] std::uint32_t lost_children() const noexcept;

  // The next record of the log with its header; empty if there is none yet. Valid until the next call, which
  // releases the record.
  [[nodiscard]] base::Bytes next_record();
  [[nodiscard]] bool damaged() const noexcept { return damaged_; }  // the log is invalid: no more records

  [[nodiscard]] std::uint32_t state(std::uint32_t slot) const noexcept;
  [[nodiscard]] std::int32_t tid(std::uint32_t slot) const noexcept;
  void free_slot(std::uint32_t slot) noexcept;
  [[nodiscard]] std::uint64_t lines(std::uint32_t slot) const noexcept;  // all complete lines so far
  [[nodiscard]] std::uint64_t lines_consumed(std::uint32_t slot) const noexcept;
  [[nodiscard]] std::uint64_t capacity() const noexcept { return layout_.lines_bytes / layout_.line_bytes; }
  // Copies the lines from number `first` on.
  void copy(std::uint32_t slot, std::uint64_t first, std::span<plugin::Line> out) const noexcept;
  void consume(std::uint32_t slot, std::uint64_t lines) noexcept;

 private:
  SharedMemory(const SharedMemoryLayout& layout, Fd file, void* memory, std::uint64_t bytes);
  [[nodiscard]] plugin::SharedMemoryHeader& header() const noexcept;
  [[nodiscard]] plugin::SlotHeader& slot(std::uint32_t index) const noexcept;
  [[nodiscard]] std::uint64_t slot_bytes() const noexcept { return plugin::kPageBytes + layout_.lines_bytes; }
  void release_log(std::uint64_t consumed) noexcept;

  SharedMemoryLayout layout_;
  Fd file_;
  std::uint8_t* memory_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::uint64_t log_read_ = 0;  // bytes
  std::vector<std::uint8_t> record_;
  bool damaged_ = false;
};

}  // namespace ptkit::capture
