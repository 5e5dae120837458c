// A trace of a process by Windows' driver (ipt.sys), saved by ipttool: for each thread a header of 28 bytes
// and the ring. The driver's own header of 8 bytes may come first.
#include <algorithm>

#include "base/addresses.h"
#include "formats/common/files.h"
#include "formats/common/readers.h"
#include "trace/warning_codes.h"

namespace ptkit::formats {

using trace::WarningCode;

namespace {

constexpr std::size_t kHeaderBytes = 28;  // no padding: the next header follows the trace
constexpr std::size_t kDriverHeaderBytes = 8;
constexpr std::uint64_t kDriverVersion = 1;
using base::kPageBytes;
constexpr std::uint32_t kMostTiming = 2;  // none, MTC, CYC
constexpr std::uint32_t kMostMtcFrequency = 15;
constexpr std::uint64_t kMostThreadId = 0xffffffff;

struct Record {
  std::uint64_t thread = 0;
  std::uint32_t timing = 0;
  std::uint32_t mtc_frequency = 0;
  std::uint32_t ring_offset = 0;
  std::uint32_t size = 0;
  std::size_t trace = 0;  // offset in the file
};

Record record_at(base::Bytes bytes, std::size_t offset) {
  const std::uint8_t* at = bytes.data() + offset;
  Record record;
  record.thread = base::load_le<8>(at);
  record.timing = static_cast<std::uint32_t>(base::load_le<4>(at + 8));
  record.mtc_frequency = static_cast<std::uint32_t>(base::load_le<4>(at + 12));
  record.ring_offset = static_cast<std::uint32_t>(base::load_le<4>(at + 20));
  record.size = static_cast<std::uint32_t>(base::load_le<4>(at + 24));
  record.trace = offset + kHeaderBytes;
  return record;
}

bool is_record(const Record& record) noexcept {
  return record.thread <= kMostThreadId && record.timing <= kMostTiming &&
         record.mtc_frequency <= kMostMtcFrequency && record.ring_offset <= record.size && record.size != 0 &&
         record.size % kPageBytes == 0;
}

// Returns the offset of the first record.
std::size_t first_record(base::Bytes bytes) noexcept {
  if (bytes.size() < kDriverHeaderBytes) return 0;
  const bool has_driver_header = base::load_le<2>(bytes.data()) == kDriverVersion &&
                                 base::load_le<4>(bytes.data() + 4) <= bytes.size() - kDriverHeaderBytes &&
                                 base::load_le<4>(bytes.data() + 4) > kHeaderBytes;
  return has_driver_header ? kDriverHeaderBytes : 0;
}

struct Chain {
  std::vector<Record> records;
  std::size_t end = 0;  // offset after the last record
  bool cut = false;     // an incomplete record begins at `end`
};

// Returns all complete records from `begin` on.
Chain chain_of(base::Bytes bytes, std::size_t begin) {
  Chain chain;
  chain.end = begin;
  while (bytes.size() - chain.end > kHeaderBytes) {
    const Record record = record_at(bytes, chain.end);
    chain.cut = is_record(record) && record.size > bytes.size() - record.trace;
    if (!is_record(record) || chain.cut) break;
    chain.end = record.trace + record.size;
    chain.records.push_back(record);
  }
  return chain;
}

// The driver's header, if present, has the size of all records. Bytes after them are unused buffer.
Chain chain_of(base::Bytes bytes) {
  const std::size_t begin = first_record(bytes);
  if (begin != 0) {
    const auto size = static_cast<std::size_t>(base::load_le<4>(bytes.data() + 4));
    Chain chain = chain_of(bytes.first(begin + size), begin);
    if (!chain.records.empty()) return chain;
  }
  return chain_of(bytes, 0);
}

bool sniff_ipttool_bytes(base::Bytes bytes) {
  const Chain chain = chain_of(bytes);
  if (chain.records.empty()) return false;
  const bool whole = bytes.size() - chain.end <= kHeaderBytes;
  const bool driver = chain.records.front().trace == kDriverHeaderBytes + kHeaderBytes;
  return whole || driver || chain.cut;
}

bool sniff_ipttool(const std::string& path) {
  const auto data = trace::TraceBuffer::map_file(path);
  return data.ok() && sniff_ipttool_bytes(data.value().bytes());
}

bool is_zero(std::uint8_t byte) noexcept { return byte == 0; }

trace::Stream stream_of(const trace::TraceBuffer& file, const Record& record) {
  trace::Stream stream;
  stream.tid = static_cast<std::int64_t>(record.thread);
  stream.name = "thread " + std::to_string(stream.tid);
  const base::Bytes ring = file.bytes().subspan(record.trace, record.size);
  const base::Bytes newer = ring.first(record.ring_offset);
  const base::Bytes older = ring.subspan(record.ring_offset);
  // The header does not say whether the ring wrapped.
  if (std::all_of(older.begin(), older.end(), is_zero)) {
    stream.data = file.slice(record.trace, newer.size());
    return stream;
  }
  std::vector<std::uint8_t> bytes(older.begin(), older.end());
  bytes.insert(bytes.end(), newer.begin(), newer.end());
  stream.data = trace::TraceBuffer::from_vector(std::move(bytes));
  stream.losses.push_back({0, base::Status::RING_WRAPPED, 0});
  return stream;
}

void read_clock(const std::string& path, const Chain& chain, trace::TraceBundle& bundle) {
  const Record& first = chain.records.front();
  const auto differs = [&](const Record& one) {
    return one.timing != first.timing || one.mtc_frequency != first.mtc_frequency;
  };
  if (std::any_of(chain.records.begin(), chain.records.end(), differs)) {
    bundle.warnings.push_back(warn(WarningCode::IPTTOOL_MTC_PERIODS).at(path));
  } else if (first.timing != 0) {
    bundle.configuration.clock.mtc_period_known = true;
    bundle.configuration.clock.mtc_period = static_cast<std::uint8_t>(first.mtc_frequency);
  }
}

base::Result<trace::TraceBundle> read_ipttool_bytes(const std::string& path, const trace::TraceBuffer& data,
                                                    const OpenOptions&) {
  const base::Bytes bytes = data.bytes();
  const Chain chain = chain_of(bytes);
  if (chain.records.empty()) {
    return bad_file(path, "expected traces of threads, each after a header of 28 bytes (ipttool), found " +
                              describe(bytes));
  }
  trace::TraceBundle bundle;
  read_clock(path, chain, bundle);
  for (const Record& record : chain.records) {
    bundle.streams.push_back(stream_of(data, record));
    bundle.threads.push_back({trace::kNoId, static_cast<std::int64_t>(record.thread), ""});
  }
  const bool driver = chain.records.front().trace == kDriverHeaderBytes + kHeaderBytes;
  const base::Bytes rest = bytes.subspan(chain.end);
  const bool is_room = rest.size() <= kHeaderBytes && std::all_of(rest.begin(), rest.end(), is_zero);
  if (!driver && !is_room)
    bundle.warnings.push_back(warn(WarningCode::IPTTOOL_CUT, chain.end, bytes.size()).at(path));
  return bundle;
}

base::Result<trace::TraceBundle> read_ipttool(const std::string& path, const OpenOptions& options) {
  auto data = trace::TraceBuffer::map_file(path);
  if (!data.ok()) return data.failure();
  return read_ipttool_bytes(path, data.value(), options);
}

}  // namespace

const Format kIpttoolFormat{
    .name = "ipttool",
    .description = "threads' traces by Windows' driver (ipttool, winipt)",
    .sniff = &sniff_ipttool,
    .read = &read_ipttool,
    .sniff_bytes = &sniff_ipttool_bytes,
    .read_bytes = &read_ipttool_bytes,
    .unverified = true,
};

}  // namespace ptkit::formats
