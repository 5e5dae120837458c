// Records of perf.data in the making: put in any order, given by time. For .cpp files of this folder only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "formats/perf_record.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

inline constexpr std::uint64_t kEventId = 1;  // of the one event that the file has
inline constexpr std::uint16_t kCpuModeUser = 2;
inline constexpr std::uint16_t kCpuModeKernel = 1;
// What each record ends with: who, when, where, of which event.
inline constexpr std::uint64_t kWrittenSampleType =
    (1U << SAMPLE_TID) | (1U << SAMPLE_TIME) | (1U << SAMPLE_CPU) | (1U << SAMPLE_IDENTIFIER);

struct Stamp {
  std::int64_t pid = trace::kNoId;
  std::int64_t tid = trace::kNoId;
  std::int64_t cpu = trace::kNoId;
  std::uint64_t tsc = trace::kTscMin;  // kTscMin: from the beginning on
};

struct WrittenMapping {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t file_offset = 0;
  std::string path;
  std::string build_id;  // hex; empty: none
};

// Of a build-id, 20 bytes at most.
[[nodiscard]] std::vector<std::uint8_t> bytes_of_hex(const std::string& hex);
// A conversion for what the trace unit's clock says; where none is known, nanoseconds are its ticks.
[[nodiscard]] trace::Clock written_clock(const trace::Clock& known);

// One record, header included. What is longer than a record can be is cut.
class RecordBytes {
 public:
  RecordBytes(std::uint32_t type, std::uint16_t misc);
  template <typename... Numbers>
  RecordBytes& add(Numbers... numbers) {
    (base::append_le(bytes_, numbers), ...);
    return *this;
  }
  RecordBytes& id(std::int64_t number) { return add(static_cast<std::uint32_t>(number)); }
  RecordBytes& text(const std::string& text);  // with zeros up to a multiple of eight
  [[nodiscard]] base::Bytes bytes();

 private:
  std::vector<std::uint8_t> bytes_;
};

class Records {
 public:
  explicit Records(const trace::Clock& clock) : clock_(clock) {}

  void fork(const Stamp& who, std::int64_t parent_pid, std::int64_t parent_tid);
  void exit(const Stamp& who);
  void comm(const Stamp& who, const std::string& name, bool exec);
  void map(const Stamp& who, const WrittenMapping& mapping, bool kernel = false);
  void itrace_start(const Stamp& who);
  void switch_to(const Stamp& from, const Stamp& to);  // from's out, to's in
  void aux(const Stamp& who, std::uint64_t begin, std::uint64_t size, std::uint64_t flags);

  // In the order of time; at the same time tasks begin first and end last.
  void for_each(const std::function<void(base::Bytes)>& give);
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
  void put(RecordBytes& record, const Stamp& who, std::uint8_t rank);

  const trace::Clock clock_;
  std::vector<std::uint8_t> bytes_;
  std::vector<Entry> entries_;
  std::uint64_t first_ns_ = 0;  // of those that have a time; 0: none has
  std::uint64_t last_ns_ = 0;
};

}  // namespace ptkit::formats::perf
