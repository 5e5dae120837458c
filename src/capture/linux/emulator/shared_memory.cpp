#include "capture/linux/emulator/shared_memory.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "base/posix/map_memory.h"

namespace ptkit::capture {

namespace {

constexpr std::uint64_t kLogOffset = plugin::kPageBytes;

template <typename T>
T load(const T& from) noexcept {
  return __atomic_load_n(&from, __ATOMIC_ACQUIRE);
}

template <typename T>
void store(T& to, T value) noexcept {
  __atomic_store_n(&to, value, __ATOMIC_SEQ_CST);
}

void wake_if(const std::uint32_t& waiting, std::uint32_t& wake) noexcept {
  if (__atomic_load_n(&waiting, __ATOMIC_SEQ_CST) == 0) return;
  __atomic_fetch_add(&wake, 1, __ATOMIC_SEQ_CST);
  static_cast<void>(::syscall(SYS_futex, &wake, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0));
}

base::Failure failed(const char* what) {
  return {base::Status::NO_MEMORY, 0,
          std::string("cannot make a memory file for a process: ") + what + ": " + std::strerror(errno)};
}

}  // namespace

// Only the used pages of a memfd take memory. No file system can be full, so an access raises no SIGBUS.
base::Result<SharedMemory> SharedMemory::create(const SharedMemoryLayout& layout) {
  const std::uint64_t bytes =
      kLogOffset + layout.log_bytes + layout.slots * (plugin::kPageBytes + layout.lines_bytes);
  Fd file(::memfd_create("ptkit", MFD_CLOEXEC));
  if (file.get() < 0) return failed("memfd_create");
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return failed("ftruncate");
  void* memory = base::map_memory(bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return failed("mmap");
  return SharedMemory(layout, std::move(file), memory, bytes);
}

SharedMemory::SharedMemory(const SharedMemoryLayout& layout, Fd file, void* memory, std::uint64_t bytes)
    : layout_(layout), file_(std::move(file)), memory_(static_cast<std::uint8_t*>(memory)), bytes_(bytes) {
  plugin::SharedMemoryHeader& head = header();
  head.magic = plugin::kChannelMagic;
  head.version = plugin::kChannelVersion;
  head.log_offset = kLogOffset;
  head.log_bytes = layout_.log_bytes;
  head.slots_offset = kLogOffset + layout_.log_bytes;
  head.slot_bytes = slot_bytes();
  head.lines_offset = plugin::kPageBytes;
  head.lines_bytes = layout_.lines_bytes;
  head.line_bytes = layout_.line_bytes;
  head.slots = layout_.slots;
  head.block_times = layout_.block_times ? 1 : 0;
  head.recorder_pid = ::getpid();
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : layout_(other.layout_),
      file_(std::move(other.file_)),
      memory_(std::exchange(other.memory_, nullptr)),
      bytes_(other.bytes_),
      log_read_(other.log_read_),
      record_(std::move(other.record_)),
      damaged_(other.damaged_) {}

SharedMemory::~SharedMemory() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

plugin::SharedMemoryHeader& SharedMemory::header() const noexcept {
  return *reinterpret_cast<plugin::SharedMemoryHeader*>(memory_);
}

plugin::SlotHeader& SharedMemory::slot(std::uint32_t index) const noexcept {
  return *reinterpret_cast<plugin::SlotHeader*>(memory_ + kLogOffset + layout_.log_bytes +
                                                index * slot_bytes());
}

// The header stays: a process that continues unrecorded reads it.
void SharedMemory::discard() noexcept {
  stop();
  static_cast<void>(::madvise(memory_ + kLogOffset, bytes_ - kLogOffset, MADV_REMOVE));
}

void SharedMemory::heartbeat() noexcept { __atomic_fetch_add(&header().heartbeat, 1, __ATOMIC_RELAXED); }

void SharedMemory::stop() noexcept { store(header().stop, 1U); }

std::uint32_t SharedMemory::lost_threads() const noexcept { return load(header().lost_threads); }
std::uint32_t SharedMemory::lost_children() const noexcept { return load(header().lost_children); }

base::Bytes SharedMemory::next_record() {
  if (damaged_) return {};
  release_log(log_read_);
  const std::uint64_t written = load(header().log_written);
  while (log_read_ != written) {
    const std::uint64_t offset = log_read_ % layout_.log_bytes;
    plugin::LogRecord record;
    std::memcpy(&record, memory_ + kLogOffset + offset, sizeof record);
    const std::uint64_t room = std::min(written - log_read_, layout_.log_bytes - offset);
    const bool filler = record.kind == plugin::LogKind{};
    damaged_ = written - log_read_ > layout_.log_bytes || record.bytes < sizeof record ||
               record.bytes % alignof(std::uint64_t) != 0 || record.bytes > room ||
               (!filler && record.bytes > plugin::kMaxLogRecord);
    if (damaged_) return {};
    log_read_ += record.bytes;
    if (filler) continue;
    const std::uint8_t* at = memory_ + kLogOffset + offset;
    record_.assign(at, at + record.bytes);
    std::memcpy(record_.data(), &record, sizeof record);  // the checked header: the guest may have changed it
    return record_;
  }
  release_log(log_read_);
  return {};
}

void SharedMemory::release_log(std::uint64_t consumed) noexcept {
  if (load(header().log_consumed) == consumed) return;
  store(header().log_consumed, consumed);
  wake_if(header().log_waiting, header().log_wake);
}

std::uint32_t SharedMemory::state(std::uint32_t index) const noexcept { return load(slot(index).state); }

std::int32_t SharedMemory::tid(std::uint32_t index) const noexcept { return load(slot(index).tid); }

void SharedMemory::free_slot(std::uint32_t index) noexcept {
  store(slot(index).state, std::uint32_t{plugin::SLOT_FREE});
}

std::uint64_t SharedMemory::lines(std::uint32_t index) const noexcept { return load(slot(index).lines); }

std::uint64_t SharedMemory::lines_consumed(std::uint32_t index) const noexcept {
  return load(slot(index).consumed);
}

void SharedMemory::copy(std::uint32_t index, std::uint64_t first,
                        std::span<plugin::Line> out) const noexcept {
  const std::uint8_t* lines = reinterpret_cast<const std::uint8_t*>(&slot(index)) + plugin::kPageBytes;
  for (plugin::Line& line : out) {
    const std::uint8_t* const from = lines + (first++ * layout_.line_bytes & (layout_.lines_bytes - 1));
    // Sizes that the compiler knows.
    if (layout_.line_bytes == plugin::kLongLineBytes)
      std::memcpy(&line, from, plugin::kLongLineBytes);
    else
      std::memcpy(&line, from, plugin::kShortLineBytes);
  }
}

void SharedMemory::consume(std::uint32_t index, std::uint64_t lines) noexcept {
  plugin::SlotHeader& head = slot(index);
  store(head.consumed, lines);
  wake_if(head.waiting, head.wake);
}

}  // namespace ptkit::capture
