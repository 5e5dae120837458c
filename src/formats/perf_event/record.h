// Records of perf's ring buffers and files, and their trailers (include/uapi/linux/perf_event.h, struct
// sample_id; tools/lib/perf/include/perf/event.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"

namespace ptkit::formats::perf {

enum RecordType : std::uint32_t {
  MMAP = 1,
  LOST = 2,
  COMM = 3,
  EXIT = 4,
  FORK = 7,
  SAMPLE = 9,
  MMAP2 = 10,
  AUX = 11,
  ITRACE_START = 12,
  LOST_SAMPLES = 13,
  SWITCH = 14,
  SWITCH_CPU_WIDE = 15,
  KSYMBOL = 17,
  TEXT_POKE = 20,
  AUX_OUTPUT_HW_ID = 21,
  LAST_OF_KERNEL = 22,
  HEADER_ATTR = 64,
  HEADER_TRACING_DATA = 66,
  HEADER_BUILD_ID = 67,
  ID_INDEX = 69,
  AUXTRACE_INFO = 70,
  AUXTRACE = 71,
  AUXTRACE_ERROR = 72,
  TIME_CONV = 79,
  HEADER_FEATURE = 80,
  COMPRESSED = 81,
  COMPRESSED2 = 83,   // COMPRESSED, padded: begins with the number of bytes
  LAST_OF_PERF = 87,  // the first unknown type
};

inline constexpr std::uint16_t kMiscSwitchOut = 1U << 13U;    // SWITCH, SWITCH_CPU_WIDE
inline constexpr std::uint16_t kMiscMmapData = 1U << 13U;     // MMAP, MMAP2: no code
inline constexpr std::uint16_t kMiscCommExec = 1U << 13U;     // COMM
inline constexpr std::uint16_t kMiscForkExec = 1U << 13U;     // synthesised FORK: mappings follow
inline constexpr std::uint16_t kMiscMmapBuildId = 1U << 14U;  // MMAP2
// SWITCH, SWITCH_CPU_WIDE, out: the thread was preempted in state TASK_RUNNING (since Linux 4.17).
inline constexpr std::uint16_t kMiscSwitchOutPreempt = 1U << 14U;
inline constexpr std::uint64_t kAuxTruncated = 1;  // AUX: trace after the data is lost
inline constexpr std::uint64_t kAuxOverwrite = 2;
inline constexpr std::uint64_t kAuxPartial = 4;    // part of the data was not traced (VMX)
inline constexpr std::uint64_t kAuxCollision = 8;  // collided with another sample's AUX data
// After AUX data with a loss at its end, `ptkit export` writes at least kLossZeros zeros, an OVF, and
// possibly a TIP.PGE: at most kMostLossPadding bytes.
inline constexpr std::uint64_t kLossZeros = 9;
inline constexpr std::uint64_t kMostLossPadding = 28;
inline constexpr std::uint16_t kMiscCpumode = 7;  // PERF_RECORD_MISC_CPUMODE_MASK
inline constexpr std::uint16_t kGuestKernel = 4;
inline constexpr std::uint16_t kGuestUser = 5;
inline constexpr std::size_t kRecordHeaderBytes = 8;

struct Record {
  std::uint64_t offset = 0;  // in the file; of an unpacked record: of its COMPRESSED record
  std::uint32_t type = 0;
  std::uint16_t misc = 0;
  base::Bytes body;     // after the header
  base::Bytes payload;  // AUXTRACE: the trace after the record
};

// Reads consecutive little-endian fields. After the end, fields are 0 and ok() is false.
class Fields {
 public:
  explicit Fields(base::Bytes bytes, std::size_t at = 0) : bytes_(bytes), at_(at) {}

  template <std::size_t N>
  [[nodiscard]] std::uint64_t take() noexcept {
    if (!has(N)) return 0;
    const std::uint64_t value = base::load_le<N>(bytes_.data() + at_);
    at_ += N;
    return value;
  }
  [[nodiscard]] std::uint64_t u64() noexcept { return take<8>(); }
  [[nodiscard]] std::uint32_t u32() noexcept { return static_cast<std::uint32_t>(take<4>()); }
  [[nodiscard]] std::uint16_t u16() noexcept { return static_cast<std::uint16_t>(take<2>()); }
  [[nodiscard]] std::int64_t id() noexcept { return static_cast<std::int32_t>(u32()); }  // -1: none
  [[nodiscard]] base::Bytes take_bytes(std::size_t count) noexcept;
  [[nodiscard]] std::string text() noexcept;  // up to a zero or the end; does not advance
  void skip(std::size_t count) noexcept { static_cast<void>(take_bytes(count)); }
  // Bytes that can be taken: none after a failure.
  [[nodiscard]] std::size_t left() const noexcept { return ok_ ? bytes_.size() - at_ : 0; }
  [[nodiscard]] bool ok() const noexcept { return ok_; }

 private:
  [[nodiscard]] bool has(std::size_t count) noexcept {
    ok_ = ok_ && count <= left();
    return ok_;
  }

  base::Bytes bytes_;
  std::size_t at_;
  bool ok_ = true;
};

// The used fields of perf_event_attr. Fields that older files do not have are 0.
struct Attr {
  std::uint32_t type = 0;
  std::uint64_t config = 0;
  std::uint64_t period = 0;
  std::uint64_t sample_type = 0;
  std::uint64_t read_format = 0;
  std::uint64_t flags = 0;
  std::uint64_t branch_type = 0;
  std::uint64_t user_regs = 0;  // masks
  std::uint64_t interrupt_regs = 0;
  std::vector<std::uint64_t> ids;

  [[nodiscard]] bool has(unsigned sample_bit) const noexcept { return (sample_type >> sample_bit & 1) != 0; }
  [[nodiscard]] bool flag(unsigned bit) const noexcept { return (flags >> bit & 1) != 0; }
};

// PERF_SAMPLE_*: bit numbers in sample_type.
enum SampleBit : unsigned {
  SAMPLE_IP = 0,
  SAMPLE_TID = 1,
  SAMPLE_TIME = 2,
  SAMPLE_ADDR = 3,
  SAMPLE_READ = 4,
  SAMPLE_CALLCHAIN = 5,
  SAMPLE_ID = 6,
  SAMPLE_CPU = 7,
  SAMPLE_PERIOD = 8,
  SAMPLE_STREAM_ID = 9,
  SAMPLE_RAW = 10,
  SAMPLE_BRANCH_STACK = 11,
  SAMPLE_REGS_USER = 12,
  SAMPLE_STACK_USER = 13,
  SAMPLE_WEIGHT = 14,
  SAMPLE_DATA_SRC = 15,
  SAMPLE_IDENTIFIER = 16,
  SAMPLE_TRANSACTION = 17,
  SAMPLE_REGS_INTR = 18,
  SAMPLE_PHYS_ADDR = 19,
  SAMPLE_AUX = 20,
  SAMPLE_CGROUP = 21,
  SAMPLE_DATA_PAGE_SIZE = 22,
  SAMPLE_CODE_PAGE_SIZE = 23,
  SAMPLE_WEIGHT_STRUCT = 24,
};

inline constexpr std::uint32_t kTypeTracepoint = 2;  // Attr::type
inline constexpr unsigned kExcludeUser = 4;          // flags
inline constexpr unsigned kExcludeKernel = 5;
inline constexpr unsigned kSampleIdAll = 18;

[[nodiscard]] std::optional<Attr> parse_attr(base::Bytes bytes);

// struct sample_id at the end of a record: thread, CPU, time, event.
struct Trailer {
  std::int64_t pid = -1;
  std::int64_t tid = -1;
  std::int64_t cpu = -1;
  std::uint64_t time = 0;  // nanoseconds of perf's clock
  bool time_known = false;
  std::uint64_t id = 0;   // of the event; 0: not known
  std::size_t bytes = 0;  // its size
};

// Finds the attributes of a record, and reads its trailer by them.
class Trailers {
 public:
  explicit Trailers(std::span<const Attr> attrs);
  [[nodiscard]] std::optional<Trailer> read(const Record& record) const;
  [[nodiscard]] const Attr* of_sample(base::Bytes body) const;  // nullptr: unknown event

 private:
  [[nodiscard]] const Attr* of_id(base::Bytes body, std::size_t at) const;

  std::span<const Attr> attrs_;
  std::unordered_map<std::uint64_t, const Attr*> by_id_;
  // Position of the ID in samples, equal for all attributes. Empty with one attribute.
  std::optional<std::size_t> id_in_sample_;
  bool by_identifier_ = false;  // records other than samples end with the ID
};

// Calls `callback` for each record. The callback returns false to end the walk.
struct Walked {
  std::size_t end = 0;   // of the last complete record
  bool damaged = false;  // no valid record follows
};
[[nodiscard]] Walked walk(base::Bytes bytes, std::uint64_t offset, bool is_pipe,
                          const std::function<bool(const Record&)>& callback);

}  // namespace ptkit::formats::perf
