// perf.data files made by hand, byte by byte (tools/perf/Documentation/perf.data-file-format.txt).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/ptk_format.h"

namespace ptkit::formats::test {

constexpr std::uint32_t kPmu = 9;
constexpr std::uint64_t kTscPerNs = 2;  // of the samples' clock
constexpr std::uint64_t kOsAndUser = 0;
constexpr std::uint64_t kUserOnly = 1U << 5U;  // exclude_kernel

class Bytes {
 public:
  template <typename... Numbers>
  Bytes& add(Numbers... numbers) {
    (ptk::append_le(bytes_, numbers), ...);
    return *this;
  }
  Bytes& text(const std::string& text, std::size_t multiple = 8) {
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    bytes_.push_back(0);
    while (bytes_.size() % multiple != 0) bytes_.push_back(0);
    return *this;
  }
  Bytes& raw(const std::string& bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  [[nodiscard]] std::string str() const { return {bytes_.begin(), bytes_.end()}; }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }

 private:
  std::vector<std::uint8_t> bytes_;
};

inline std::string record(std::uint32_t type, std::uint16_t misc, const std::string& body) {
  return Bytes().add(type, misc, static_cast<std::uint16_t>(8 + body.size())).raw(body).str();
}

struct Who {
  std::uint32_t pid = 10;
  std::uint32_t tid = 10;
  std::uint64_t tsc = 0;
  std::uint32_t cpu = 0;
};

// TID, TIME, CPU, IDENTIFIER.
inline std::string trailer(const Who& who) {
  return Bytes()
      .add(who.pid, who.tid, who.tsc / kTscPerNs, who.cpu, std::uint32_t{0}, std::uint64_t{77})
      .str();
}
inline std::string event(std::uint32_t type, std::uint16_t misc, const std::string& body, const Who& who) {
  return record(type, misc, body + trailer(who));
}

inline std::string mmap2(const Who& who, std::uint64_t address, std::uint64_t size, std::uint64_t offset,
                         const std::string& path, std::uint32_t protection = 5) {
  Bytes body;
  body.add(who.pid, who.tid, address, size, offset, std::uint32_t{8}, std::uint32_t{1}, std::uint64_t{5},
           std::uint64_t{0}, protection, std::uint32_t{2});
  return event(10, 2, body.text(path).str(), who);
}
inline std::string comm(const Who& who, const std::string& name, bool exec) {
  return event(3, exec ? 1U << 13U : 0U, Bytes().add(who.pid, who.tid).text(name).str(), who);
}
inline std::string fork(const Who& who, std::uint32_t parent_pid, std::uint32_t parent_tid) {
  const std::uint64_t time = who.tsc / kTscPerNs;
  return event(7, 0, Bytes().add(who.pid, parent_pid, who.tid, parent_tid, time).str(), who);
}
inline std::string switched(const Who& who, bool out) {
  const auto misc = static_cast<std::uint16_t>(2U | (out ? 1U << 13U : 0U));
  return event(15, misc, Bytes().add(std::uint32_t{0}, std::uint32_t{0}).str(), who);
}
inline std::string aux(const Who& who, std::uint64_t begin, std::uint64_t size, std::uint64_t flags) {
  return event(11, 0, Bytes().add(begin, size, flags).str(), who);
}

constexpr std::uint32_t kEach = 0xffffffff;  // no CPU, or no thread

inline std::string auxtrace(std::uint32_t index, std::uint32_t tid, std::uint32_t cpu, std::uint64_t begin,
                            std::string bytes) {
  bytes.resize((bytes.size() + 7) / 8 * 8);
  Bytes body;
  body.add(static_cast<std::uint64_t>(bytes.size()), begin, std::uint64_t{0}, index, tid, cpu,
           std::uint32_t{0});
  return record(71, 0, body.str()) + bytes;
}

inline std::string auxtrace_info(bool snapshots = false) {
  Bytes body;
  body.add(std::uint32_t{1}, std::uint32_t{0}, std::uint64_t{kPmu});
  // ns = tsc * mult >> shift
  body.add(std::uint64_t{10}, std::uint64_t{1024 / kTscPerNs}, std::uint64_t{0}, std::uint64_t{1});
  body.add(std::uint64_t{1U << 10U}, std::uint64_t{1U << 11U}, std::uint64_t{3}, std::uint64_t{snapshots});
  body.add(std::uint64_t{1}, std::uint64_t{1U << 9U}, std::uint64_t{0xfU << 14U}, std::uint64_t{84},
           std::uint64_t{2}, std::uint64_t{2}, std::uint64_t{24}, std::uint64_t{0});
  return record(70, 0, body.str());
}

inline std::string attribute(std::uint64_t exclude = kUserOnly) {
  constexpr std::uint64_t kSampleType = 1U << 1U | 1U << 2U | 1U << 7U | 1U << 16U;
  constexpr std::uint64_t kConfig =
      1U << 9U | 1U << 10U | 1U << 13U | 3U << 14U | 1U;  // mtc, tsc, branch, pt
  Bytes attr;
  attr.add(kPmu, std::uint32_t{64}, kConfig, std::uint64_t{1}, kSampleType, std::uint64_t{0},
           exclude | 1U << 18U, std::uint64_t{0}, std::uint64_t{0});
  return attr.str();
}

inline std::string text_feature(const std::string& text) {
  const std::string padded = Bytes().text(text, 64).str();
  return Bytes().add(static_cast<std::uint32_t>(padded.size())).raw(padded).str();
}

// A file of one event, with the processor among its features.
inline std::string perf_file(const std::string& records, std::uint64_t exclude = kUserOnly) {
  const std::string ids = Bytes().add(std::uint64_t{77}).str();
  const std::uint64_t ids_at = 104;
  const std::uint64_t attrs_at = ids_at + ids.size();
  const std::string attr =
      attribute(exclude) + Bytes().add(ids_at, static_cast<std::uint64_t>(ids.size())).str();
  const std::uint64_t data_at = attrs_at + attr.size();
  const std::string cpuid = text_feature("GenuineIntel,6,142,10");
  Bytes out;
  out.raw("PERFILE2")
      .add(std::uint64_t{104}, static_cast<std::uint64_t>(attr.size()), attrs_at,
           static_cast<std::uint64_t>(attr.size()), data_at, static_cast<std::uint64_t>(records.size()),
           std::uint64_t{0}, std::uint64_t{0});
  out.add(std::uint64_t{1U << 9U}, std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{0});
  const std::uint64_t cpuid_at = data_at + records.size() + 16;
  out.raw(ids).raw(attr).raw(records).add(cpuid_at, static_cast<std::uint64_t>(cpuid.size())).raw(cpuid);
  return out.str();
}

// The same as it comes out of a pipe.
inline std::string perf_pipe(const std::string& records) {
  const std::string attr = attribute() + Bytes().add(std::uint64_t{77}).str();
  const std::string cpuid = Bytes().add(std::uint64_t{9}).raw(text_feature("GenuineIntel,6,142,10")).str();
  return Bytes().raw("PERFILE2").add(std::uint64_t{16}).str() + record(64, 0, attr) + record(80, 0, cpuid) +
         records;
}

}  // namespace ptkit::formats::test
