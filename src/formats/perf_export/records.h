// Collects records of perf.data in any order and sorts them by time. For .cpp files of this folder only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "formats/perf_event/record.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

inline constexpr std::uint64_t kEventId = 1;  // id of the file's only event
inline constexpr std::uint16_t kCpuModeUser = 2;
inline constexpr std::uint16_t kCpuModeKernel = 1;
// Fields of each record's trailer: thread, time, CPU, event id.
inline constexpr std::uint64_t kWrittenSampleType =
    (1U << SAMPLE_TID) | (1U << SAMPLE_TIME) | (1U << SAMPLE_CPU) | (1U << SAMPLE_IDENTIFIER);

struct Stamp {
  std::int64_t pid = trace::kNoId;
  std::int64_t tid = trace::kNoId;
  std::int64_t cpu = trace::kNoId;
  std::uint64_t tsc = trace::kTscMin;  // kTscMin: since the beginning
};

struct WrittenMapping {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t file_offset = 0;
  std::string path;
  std::string build_id;  // hex; empty: none
};

// Converts a build-id; at most 20 bytes.
[[nodiscard]] std::vector<std::uint8_t> bytes_of_hex(const std::string& hex);
// Returns a clock with a time conversion. If the TSC's rate is unknown, nanoseconds are TSC ticks.
[[nodiscard]] trace::Clock written_clock(const trace::Clock& known);

// One record, header included. A text that exceeds the size of a record is cut.
class RecordBytes {
 public:
  RecordBytes(std::uint32_t type, std::uint16_t misc);
  template <typename... Numbers>
  RecordBytes& add(Numbers... numbers) {
    (base::append_le(bytes_, numbers), ...);
    return *this;
  }
  RecordBytes& id(std::int64_t number) { return add(static_cast<std::uint32_t>(number)); }
  RecordBytes& text(const std::string& text);  // padded with zeros to a multiple of eight
  [[nodiscard]] base::Bytes bytes();

 private:
  std::vector<std::uint8_t> bytes_;
};

class Records {
 public:
  explicit Records(const trace::Clock& clock) : clock_(clock) {}

  void fork(const Stamp& stamp, std::int64_t parent_pid, std::int64_t parent_tid);
  void exit(const Stamp& stamp);
  void comm(const Stamp& stamp, const std::string& name, bool exec);
  void map(const Stamp& stamp, const WrittenMapping& mapping, bool kernel = false);
  void itrace_start(const Stamp& stamp);
  // from's out, to's in
  void switch_to(const Stamp& from, const Stamp& to, trace::Departure departure);
  void aux(const Stamp& stamp, std::uint64_t begin, std::uint64_t size, std::uint64_t flags);

  // Calls `each` in the order of time. At the same time FORK records come first and EXIT records last.
  void for_each(const std::function<void(base::Bytes)>& each);
  [[nodiscard]] std::uint64_t ns(std::uint64_t tsc) const noexcept;
  [[nodiscard]] std::uint64_t first_ns() const noexcept { return first_ns_; }
  [[nodiscard]] std::uint64_t last_ns() const noexcept { return last_ns_; }

 private:
  struct Entry {
    std::uint64_t ns = 0;
    std::uint8_t rank = 0;
    std::uint16_t size = 0;
    std::size_t at = 0;
  };
  void put(RecordBytes& record, const Stamp& stamp, std::uint8_t rank);

  const trace::Clock clock_;
  std::vector<std::uint8_t> bytes_;
  std::vector<Entry> entries_;
  std::uint64_t first_ns_ = 0;  // first time of a record; 0: no record has a time
  std::uint64_t last_ns_ = 0;
};

}  // namespace ptkit::formats::perf
