// A memory image of a BTS buffer, or of a debug store area with its buffer. Neither has a magic, so that it
// is read only if the user names the format.
#include "formats/common/bts_buffer.h"
#include "formats/common/files.h"
#include "formats/common/readers.h"
#include "trace/branch_records.h"
#include "trace/warning_codes.h"

namespace ptkit::formats {

namespace {

bool sniff_bts(const std::string&) { return false; }

// Puts a ring in the order of execution, where that is known. A buffer with empty records has not wrapped.
void put_in_order(trace::DsRecords& all, trace::DsLayout layout, const std::string& path,
                  std::vector<trace::Warning>& warnings) {
  const RingSeam seam = find_seam(all.records, layout);
  if (seam.certain && seam.oldest != 0) {
    begin_with(all.records, seam.oldest);
    warnings.push_back(warn(trace::WarningCode::BTS_RING_ORDERED, seam.oldest).at(path));
  } else if (!seam.certain && all.empty == 0 && all.records.size() > 1) {
    warnings.push_back(warn(trace::WarningCode::BTS_ORDER_UNKNOWN).at(path));
  }
}

template <trace::DsLayout LAYOUT>
base::Result<trace::TraceBundle> read_bts_bytes(const std::string& path, const trace::TraceBuffer& data,
                                                const OpenOptions& options) {
  const std::optional<DsDump> dump = find_bts_buffer(data.bytes(), LAYOUT);
  if (!dump) {
    return bad_file(path,
                    "expected a DS area and its BTS buffer, found an area and not the buffer that it names");
  }
  trace::DsRecords all = trace::read_ds_buffer(dump->buffer, LAYOUT);
  const std::string bytes = std::to_string(trace::record_bytes(LAYOUT));
  if (all.records.empty())
    return bad_file(path, "expected BTS records of " + bytes + " bytes each, found none");
  trace::TraceBundle bundle;
  if (all.left != 0)
    bundle.warnings.push_back(warn(trace::WarningCode::BTS_RECORD_CUT, all.left, bytes).at(path));
  if (const auto index = options.bts_index ? options.bts_index : dump->index) {
    if (auto failure = begin_at_index(all, *index)) return *failure;
  } else {
    put_in_order(all, LAYOUT, path, bundle.warnings);
  }
  trace::Stream stream;
  stream.kind = trace::StreamKind::BRANCH_RECORDS;
  stream.name = path;
  stream.data = trace::to_buffer(std::move(all.records));
  bundle.streams.push_back(std::move(stream));
  return bundle;
}

template <trace::DsLayout LAYOUT>
base::Result<trace::TraceBundle> read_bts(const std::string& path, const OpenOptions& options) {
  if (is_folder(path)) return bad_file(path, "expected a file with BTS records, found a folder");
  auto file = trace::TraceBuffer::map_file(path);
  if (!file.ok()) return file.failure();
  return read_bts_bytes<LAYOUT>(path, file.value(), options);
}

}  // namespace

const Format kBtsFormat{"bts",      "a buffer of Branch Trace Store, records of 24 bytes",
                        &sniff_bts, &read_bts<trace::DsLayout::BITS64>,
                        nullptr,    &read_bts_bytes<trace::DsLayout::BITS64>};
const Format kBts32Format{
    "bts32",    "a buffer of Branch Trace Store of a 32-bit system, records of 12 bytes",
    &sniff_bts, &read_bts<trace::DsLayout::BITS32>,
    nullptr,    &read_bts_bytes<trace::DsLayout::BITS32>};

}  // namespace ptkit::formats
