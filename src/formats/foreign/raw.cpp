// A raw Intel PT stream: any file with a PSB near its start. It has no code, and only the times of its
// packets.
#include "formats/common/files.h"
#include "formats/common/readers.h"
#include "formats/common/stop_byte.h"
#include "trace/branch_records.h"

namespace ptkit::formats {

namespace {

bool sniff_raw(const std::string& path) { return !is_folder(path); }

bool sniff_raw_bytes(base::Bytes) { return true; }

base::Result<trace::TraceBundle> read_raw_bytes(const std::string& path, const trace::TraceBuffer& data,
                                                const OpenOptions& options) {
  if (!options.without_psb && !has_early_psb(data.bytes())) {
    const std::string what = describe(data.bytes());
    const bool is_unknown = what.ends_with("unknown form");
    const bool may_be_bts = is_unknown && data.size() % trace::record_bytes(trace::DsLayout::BITS32) == 0;
    return base::Failure{
        base::Status::BAD_FILE, 0,
        path + " is not a trace: it is " + what +
            " without a PSB packet in its first 64 KiB; ptkit opens .ptk, perf.data, raw PT "
            "streams and others (docs/formats.md)" +
            (is_unknown ? "; for a stream without a PSB: --no-sync, or sync=False" : "") +
            (may_be_bts ? "; for a buffer of Branch Trace Store give the format bts or bts32" : "")};
  }
  trace::TraceBundle bundle;
  trace::Stream stream;
  stream.name = path;
  stream.data = without_stop_byte(data);
  bundle.streams.push_back(std::move(stream));
  return bundle;
}

base::Result<trace::TraceBundle> read_raw(const std::string& path, const OpenOptions& options) {
  if (is_folder(path)) return bad_file(path, "expected a file with an Intel PT stream, found a folder");
  auto data = trace::TraceBuffer::map_file(path);
  if (!data.ok()) return data.failure();
  return read_raw_bytes(path, data.value(), options);
}

}  // namespace

const Format kRawFormat{"raw",     "a raw Intel PT stream", &sniff_raw,
                        &read_raw, &sniff_raw_bytes,        &read_raw_bytes};

}  // namespace ptkit::formats
