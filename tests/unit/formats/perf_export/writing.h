// Fixture of tests of written perf.data: small recordings, and access to the output.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "formats/perf_event/record.h"
#include "formats/perf_export/writer.h"
#include "formats/registry.h"
#include "unit/support/scratch.h"

namespace ptkit::formats::test {

constexpr std::uint64_t kTscOnly = 0x2408;  // BranchEn, TSCEn, User

inline trace::TraceBuffer buffer(const std::string& bytes) {
  return trace::TraceBuffer::from_vector({bytes.begin(), bytes.end()});
}

inline std::string text(const trace::TraceBuffer& bytes) {
  return {bytes.bytes().begin(), bytes.bytes().end()};
}

// A PSB+ with a TSC, and packets after it.
inline std::string trace_of(std::uint8_t tsc, std::size_t pads) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += "\x02\x82";
  bytes += '\x19';
  bytes += static_cast<char>(tsc);
  bytes += std::string(6, '\0') + "\x02\x23" + std::string(pads, '\0');
  return bytes;
}

inline trace::TraceBundle small_bundle() {
  trace::TraceBundle bundle;
  bundle.configuration.rtit_ctl = kTscOnly;
  bundle.configuration.rtit_ctl_known = true;
  bundle.spaces.push_back({.pid = 10});
  trace::Stream stream;
  stream.pid = stream.tid = 10;
  stream.space = 1;
  stream.data = buffer(trace_of(5, 3));
  bundle.streams.push_back(std::move(stream));
  return bundle;
}

inline trace::CodeRegion region(std::uint64_t address, const std::string& bytes, std::uint64_t from = 0,
                                std::int32_t file = -1, std::uint64_t offset = 0) {
  trace::CodeRegion one;
  one.space = 1;
  one.address = address;
  one.bytes = buffer(bytes);
  one.size = bytes.size();
  one.tsc_from = from;
  one.file = file;
  one.file_offset = offset;
  return one;
}

class PerfWriting : public ::testing::Test {
 protected:
  PerfDataWritten write(const trace::TraceBundle& bundle, const PerfDataOptions& options = {}) {
    auto written = write_perf_data(bundle, path(), options);
    EXPECT_TRUE(written.ok()) << written.failure().detail;
    return written.ok() ? std::move(written.value()) : PerfDataWritten{};
  }
  trace::TraceBundle write_and_read(const trace::TraceBundle& bundle, const PerfDataOptions& options = {}) {
    static_cast<void>(write(bundle, options));
    auto read = open(path(), {});
    EXPECT_TRUE(read.ok()) << read.failure().detail;
    return read.ok() ? std::move(read.value()) : trace::TraceBundle{};
  }
  std::string failure(const trace::TraceBundle& bundle) {
    const auto written = write_perf_data(bundle, path(), {});
    return written.ok() ? "(it was written)" : written.failure().detail;
  }
  std::string path() { return scratch_.at("out.data"); }
  std::string contents() { return test::read_all(path()); }
  // Returns records of the data section in the file's order.
  std::vector<perf::Record> records() {
    bytes_ = contents();
    const auto* const from = reinterpret_cast<const std::uint8_t*>(bytes_.data());
    std::vector<perf::Record> found;
    static_cast<void>(perf::walk({from + base::load_le<8>(from + 40), base::load_le<8>(from + 48)}, 0, false,
                                 [&](const perf::Record& record) {
                                   found.push_back(record);
                                   return true;
                                 }));
    return found;
  }
  std::vector<perf::Record> records(std::uint32_t type) {
    std::vector<perf::Record> found = records();
    std::erase_if(found, [type](const perf::Record& record) { return record.type != type; });
    return found;
  }
  Scratch scratch_;
  std::string bytes_;
};

}  // namespace ptkit::formats::test
