// Builds perf.data files (tools/perf/Documentation/perf.data-file-format.txt).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/fields.h"

namespace ptkit::formats::test {

constexpr std::uint32_t kPmu = 9;
constexpr std::uint64_t kTscPerNs = 2;  // clock of the test files
constexpr std::uint64_t kOsAndUser = 0;
constexpr std::uint64_t kUserOnly = 1U << 5U;  // exclude_kernel

class Bytes {
 public:
  template <typename... Numbers>
  Bytes& add(Numbers... numbers) {
    (base::append_le(bytes_, numbers), ...);
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

struct SampleId {
  std::uint32_t pid = 10;
  std::uint32_t tid = 10;
  std::uint64_t tsc = 0;
  std::uint32_t cpu = 0;
};

// TID, TIME, CPU, IDENTIFIER.
inline std::string trailer(const SampleId& id) {
  return Bytes().add(id.pid, id.tid, id.tsc / kTscPerNs, id.cpu, std::uint32_t{0}, std::uint64_t{77}).str();
}
inline std::string event(std::uint32_t type, std::uint16_t misc, const std::string& body,
                         const SampleId& id) {
  return record(type, misc, body + trailer(id));
}

inline std::string mmap2(const SampleId& id, std::uint64_t address, std::uint64_t size, std::uint64_t offset,
                         const std::string& path, std::uint32_t protection = 5) {
  Bytes body;
  body.add(id.pid, id.tid, address, size, offset, std::uint32_t{8}, std::uint32_t{1}, std::uint64_t{5},
           std::uint64_t{0}, protection, std::uint32_t{2});
  return event(10, 2, body.text(path).str(), id);
}
inline std::string comm(const SampleId& id, const std::string& name, bool exec) {
  return event(3, exec ? 1U << 13U : 0U, Bytes().add(id.pid, id.tid).text(name).str(), id);
}
inline std::string fork(const SampleId& id, std::uint32_t parent_pid, std::uint32_t parent_tid,
                        std::uint16_t misc = 0) {
  const std::uint64_t time = id.tsc / kTscPerNs;
  return event(7, misc, Bytes().add(id.pid, parent_pid, id.tid, parent_tid, time).str(), id);
}
inline std::string switched(const SampleId& id, bool out, bool preempted = false) {
  const auto misc = static_cast<std::uint16_t>(2U | (out ? 1U << 13U : 0U) | (preempted ? 1U << 14U : 0U));
  return event(15, misc, Bytes().add(std::uint32_t{0}, std::uint32_t{0}).str(), id);
}
inline std::string aux(const SampleId& id, std::uint64_t begin, std::uint64_t size, std::uint64_t flags) {
  return event(11, 0, Bytes().add(begin, size, flags).str(), id);
}

constexpr std::uint32_t kEach = 0xffffffff;  // -1: no CPU, or no thread

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

// TIME_CONV. `is_short`: the counter wraps (cap_user_time_short).
inline std::string time_conversion(std::uint64_t cycles = 0, std::uint64_t mask = ~std::uint64_t{0},
                                   bool is_short = false) {
  Bytes body;
  body.add(std::uint64_t{10}, std::uint64_t{1024 / kTscPerNs}, std::uint64_t{0}, cycles, mask,
           std::uint64_t{is_short ? 0x101U : 1U});
  return record(79, 0, body.str());
}

struct Attribute {
  std::uint32_t type = kPmu;
  std::uint64_t config = 1U << 9U | 1U << 10U | 1U << 13U | 3U << 14U | 1U;  // mtc, tsc, branch, pt
  std::uint64_t sample_type = 1U << 1U | 1U << 2U | 1U << 7U | 1U << 16U;    // the fields of trailer()
  std::uint64_t flags = kUserOnly;
  std::uint64_t id = 77;
  std::uint64_t read_format = 0;
  std::uint64_t branch_type = 0;
  std::uint64_t user_regs = 0;
  std::uint64_t interrupt_regs = 0;
  std::uint64_t period = 1;

  [[nodiscard]] std::string str() const {
    return Bytes()
        .add(type, std::uint32_t{112}, config, period, sample_type, read_format, flags | 1U << 18U)
        .add(std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{0}, branch_type, user_regs)
        .add(std::uint64_t{0}, interrupt_regs, std::uint64_t{0})
        .str();
  }
};

inline std::string text_feature(const std::string& text) {
  const std::string padded = Bytes().text(text, 64).str();
  return Bytes().add(static_cast<std::uint32_t>(padded.size())).raw(padded).str();
}

using Features = std::map<unsigned, std::string>;

inline const std::string kCpuid = text_feature("GenuineIntel,6,142,10");

inline std::string perf_file(const std::vector<Attribute>& attributes, const std::string& records,
                             const Features& features) {
  Bytes ids;
  Bytes attrs;
  for (const Attribute& one : attributes) {
    attrs.raw(one.str()).add(std::uint64_t{104 + ids.size()}, std::uint64_t{8});
    ids.add(one.id);
  }
  const std::uint64_t attrs_at = 104 + ids.size();
  const std::uint64_t data_at = attrs_at + attrs.size();
  std::uint64_t bits = 0;
  Bytes table;
  Bytes contents;
  for (const auto& [number, text] : features) {
    bits |= std::uint64_t{1} << number;
    table.add(std::uint64_t{data_at + records.size() + 16 * features.size() + contents.size()},
              std::uint64_t{text.size()});
    contents.raw(text);
  }
  Bytes out;
  out.raw("PERFILE2")
      .add(std::uint64_t{104}, std::uint64_t{128}, attrs_at, std::uint64_t{attrs.size()}, data_at,
           std::uint64_t{records.size()}, std::uint64_t{0}, std::uint64_t{0})
      .add(bits, std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{0});
  return out.raw(ids.str()).raw(attrs.str()).raw(records).raw(table.str()).raw(contents.str()).str();
}

// A file of one event with the feature CPUID.
inline std::string perf_file(const std::string& records, std::uint64_t exclude = kUserOnly) {
  return perf_file({{.flags = exclude}}, records, {{9, kCpuid}});
}

// The same as a pipe.
inline std::string perf_pipe(const std::string& records) {
  const std::string attr = Attribute().str() + Bytes().add(std::uint64_t{77}).str();
  const std::string cpuid = Bytes().add(std::uint64_t{9}).raw(kCpuid).str();
  return Bytes().raw("PERFILE2").add(std::uint64_t{16}).str() + record(64, 0, attr) + record(80, 0, cpuid) +
         records;
}

}  // namespace ptkit::formats::test
