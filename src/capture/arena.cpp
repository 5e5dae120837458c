#include "capture/arena.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

namespace ptkit::capture {

namespace {

constexpr std::uint64_t kLogOffset = qemu::kPageBytes;

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

// Of such a file only what is used takes memory, and no file system can be full: a process cannot die of
// SIGBUS here.
base::Result<Arena> Arena::create(const ArenaShape& shape) {
  const std::uint64_t bytes =
      kLogOffset + shape.log_bytes + shape.slots * (qemu::kPageBytes + shape.lines_bytes);
  Fd file(::memfd_create("ptkit", MFD_CLOEXEC));
  if (file.get() < 0) return failed("memfd_create");
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return failed("ftruncate");
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return failed("mmap");
  return Arena(shape, std::move(file), memory, bytes);
}

Arena::Arena(const ArenaShape& shape, Fd file, void* memory, std::uint64_t bytes)
    : shape_(shape), file_(std::move(file)), memory_(static_cast<std::uint8_t*>(memory)), bytes_(bytes) {
  qemu::ArenaHeader& head = header();
  head.magic = qemu::kChannelMagic;
  head.version = qemu::kChannelVersion;
  head.log_offset = kLogOffset;
  head.log_bytes = shape_.log_bytes;
  head.slots_offset = kLogOffset + shape_.log_bytes;
  head.slot_bytes = slot_bytes();
  head.lines_offset = qemu::kPageBytes;
  head.lines_bytes = shape_.lines_bytes;
  head.slots = shape_.slots;
  head.block_times = shape_.block_times ? 1 : 0;
  head.recorder_pid = ::getpid();
}

Arena::Arena(Arena&& other) noexcept
    : shape_(other.shape_),
      file_(std::move(other.file_)),
      memory_(std::exchange(other.memory_, nullptr)),
      bytes_(other.bytes_),
      log_read_(other.log_read_),
      record_(std::move(other.record_)),
      damaged_(other.damaged_) {}

Arena::~Arena() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

qemu::ArenaHeader& Arena::header() const noexcept { return *reinterpret_cast<qemu::ArenaHeader*>(memory_); }

qemu::SlotHeader& Arena::slot(std::uint32_t index) const noexcept {
  return *reinterpret_cast<qemu::SlotHeader*>(memory_ + kLogOffset + shape_.log_bytes + index * slot_bytes());
}

// The header stays: a process that runs on unrecorded looks at it.
void Arena::discard() noexcept {
  stop();
  static_cast<void>(::madvise(memory_ + kLogOffset, bytes_ - kLogOffset, MADV_REMOVE));
}

void Arena::beat() noexcept { __atomic_fetch_add(&header().heartbeat, 1, __ATOMIC_RELAXED); }

void Arena::stop() noexcept { store(header().stop, 1U); }

std::uint32_t Arena::lost_threads() const noexcept { return load(header().lost_threads); }
std::uint32_t Arena::lost_children() const noexcept { return load(header().lost_children); }

base::Bytes Arena::next_record() {
  if (damaged_) return {};
  release_log(log_read_);
  const std::uint64_t written = load(header().log_written);
  while (log_read_ != written) {
    const std::uint64_t place = log_read_ % shape_.log_bytes;
    qemu::LogRecord record;
    std::memcpy(&record, memory_ + kLogOffset + place, sizeof record);
    const std::uint64_t room = std::min(written - log_read_, shape_.log_bytes - place);
    const bool filler = record.kind == qemu::LogKind{};
    damaged_ = written - log_read_ > shape_.log_bytes || record.bytes < sizeof record ||
               record.bytes % alignof(std::uint64_t) != 0 || record.bytes > room ||
               (!filler && record.bytes > qemu::kMaxLogRecord);
    if (damaged_) return {};
    log_read_ += record.bytes;
    if (filler) continue;
    const std::uint8_t* at = memory_ + kLogOffset + place;
    record_.assign(at, at + record.bytes);
    std::memcpy(record_.data(), &record, sizeof record);  // what was checked, not what is there now
    return record_;
  }
  release_log(log_read_);
  return {};
}

void Arena::release_log(std::uint64_t consumed) noexcept {
  if (load(header().log_consumed) == consumed) return;
  store(header().log_consumed, consumed);
  wake_if(header().log_waiting, header().log_wake);
}

std::uint32_t Arena::state(std::uint32_t index) const noexcept { return load(slot(index).state); }

std::int32_t Arena::tid(std::uint32_t index) const noexcept { return load(slot(index).tid); }

void Arena::free_slot(std::uint32_t index) noexcept {
  store(slot(index).state, std::uint32_t{qemu::SLOT_FREE});
}

std::uint64_t Arena::lines(std::uint32_t index) const noexcept { return load(slot(index).lines); }

std::uint64_t Arena::lines_consumed(std::uint32_t index) const noexcept { return load(slot(index).consumed); }

void Arena::copy(std::uint32_t index, std::uint64_t first, std::span<qemu::Line> out) const noexcept {
  const std::uint64_t place = first % capacity();
  const std::size_t head = std::min<std::uint64_t>(out.size(), capacity() - place);
  const std::uint8_t* lines = reinterpret_cast<const std::uint8_t*>(&slot(index)) + qemu::kPageBytes;
  std::memcpy(out.data(), lines + place * qemu::kLineBytes, head * qemu::kLineBytes);
  std::memcpy(out.data() + head, lines, (out.size() - head) * qemu::kLineBytes);
}

void Arena::consume(std::uint32_t index, std::uint64_t lines) noexcept {
  qemu::SlotHeader& head = slot(index);
  store(head.consumed, lines);
  wake_if(head.waiting, head.wake);
}

}  // namespace ptkit::capture
