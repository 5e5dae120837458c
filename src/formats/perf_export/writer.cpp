#include "formats/perf_export/writer.h"

#include <algorithm>
#include <memory>

#include "base/fields.h"
#include "formats/common/files.h"
#include "formats/perf_data/file.h"
#include "formats/perf_export/aux_trace.h"
#include "formats/perf_export/branches.h"
#include "formats/perf_export/code.h"
#include "formats/perf_export/config.h"
#include "formats/perf_export/kernel.h"
#include "formats/perf_export/output.h"
#include "trace/warning_codes.h"

namespace ptkit::formats {

using trace::WarningCode;

namespace {

using perf::Output;

constexpr std::uint64_t kHeaderBytes = 104;

std::vector<std::uint8_t> numbers(std::initializer_list<std::uint64_t> values) {
  std::vector<std::uint8_t> bytes;
  for (const std::uint64_t value : values) base::append_le(bytes, value);
  return bytes;
}

base::Failure refused(const std::string& path, const std::string& why) {
  return {base::Status::UNSUPPORTED, 0, path + ": " + why};
}

// Returns a PID, TID or CPU that perf's records cannot hold.
std::optional<std::int64_t> large_id(const trace::TraceBundle& bundle) {
  std::int64_t most = trace::kNoId;
  std::int64_t least = trace::kNoId;
  const auto look = [&](std::initializer_list<std::int64_t> ids) {
    most = std::max(most, std::max(ids));
    least = std::min(least, std::min(ids));
  };
  for (const trace::Space& space : bundle.spaces) look({space.pid});
  for (const trace::Thread& thread : bundle.threads) look({thread.pid, thread.tid});
  for (const trace::Sideband& record : bundle.sideband) look({record.pid, record.tid, record.parent});
  for (const trace::Stream& stream : bundle.streams) {
    look({stream.cpu, stream.pid, stream.tid});
    for (const trace::Switch& one : stream.switches) look({one.pid, one.tid});
  }
  if (least < trace::kNoId) return least;
  if (most > perf::kMostId) return most;
  return std::nullopt;
}

// Returns the names of branch-record streams if the bundle has other streams, too.
std::string branch_record_streams(const trace::TraceBundle& bundle) {
  std::string names;
  std::size_t count = 0;
  for (const trace::Stream& stream : bundle.streams) {
    if (stream.kind != trace::StreamKind::BRANCH_RECORDS) continue;
    names += (count++ == 0 ? "'" : ", '") + stream.name + "'";
  }
  return count == bundle.streams.size() ? std::string() : names;
}

std::optional<base::Failure> check_exportable(const trace::TraceBundle& bundle, const std::string& path) {
  const auto is_empty = [](const trace::Stream& stream) { return stream.data.size() == 0; };
  if (std::ranges::all_of(bundle.streams, is_empty)) return refused(path, "there is no trace to write");
  if (const std::string names = branch_record_streams(bundle); !names.empty()) {
    return refused(
        path,
        "the recording has Processor Trace and branch records, and perf.data holds only one of the two; "
        "leave out these streams of branch records, or all others: " +
            names);
  }
  const auto has_time = [](const trace::Switch& one) { return one.tsc != trace::kTscMin; };
  for (const trace::Stream& stream : bundle.streams) {
    const bool by_offset = stream.kind == trace::StreamKind::BRANCH_RECORDS;
    if (stream.switches.empty() || stream.switches_by_offset == by_offset) continue;
    if (!by_offset && std::ranges::all_of(stream.switches, has_time)) continue;
    return refused(path, "stream '" + stream.name +
                             (by_offset ? "' has context switches by time; branch records need context "
                                          "switches by stream offset"
                                        : "' has context switches by stream offset; perf.data needs "
                                          "context switches by time"));
  }
  if (const auto id = large_id(bundle)) {
    return refused(path, "perf.data cannot hold the PID, TID or CPU " + std::to_string(*id));
  }
  return std::nullopt;
}

class Writer {
 public:
  Writer(const trace::TraceBundle& bundle, const std::string& path, const PerfDataOptions& options)
      : bundle_(bundle),
        path_(without_slashes(path)),
        options_(options),
        clock_(perf::written_clock(bundle.configuration.clock)),
        records_(clock_),
        tasks_(bundle, written_.notes),
        code_(bundle, options.code, perf::is_32_bit(bundle)) {}

  base::Result<PerfDataWritten> write() {
    auto packets = perf::survey_packets(bundle_, options_.go_on);
    if (!packets) return interrupted();
    packets_ = std::move(*packets);
    event_ = perf::written_event(bundle_, packets_, written_.notes);
    features_ = perf::written_features(bundle_, event_, written_.notes);
    note_what_is_dropped();
    tasks_.write(records_);
    code_.write(tasks_.images(), records_);
    note_filter();
    written_.is_folder = perf::has_kernel(bundle_);
    auto code = write_code();
    if (!code.ok()) return code.failure();
    if (const auto failure = written_.is_folder ? write_folder() : write_file(path_)) return *failure;
    // The code folder is replaced last, so that an existing file and its code folder fit together until then.
    if (code.value()) {
      if (const auto failure = code.value()->rename(base::sudo_caller())) return *failure;
    }
    return std::move(written_);
  }

 private:
  [[nodiscard]] base::Failure interrupted() const {
    return {base::Status::INTERRUPTED, 0, path_ + ": interrupted"};
  }

  void note_what_is_dropped() {
    if (event_.kind == perf::TraceKind::INTEL_BTS) perf::note_dropped_fields(bundle_, written_.notes);
    if (std::ranges::any_of(packets_, [](const auto& one) { return !one.non_root.empty(); })) {
      written_.notes.push_back(warn(WarningCode::EXPORT_GUEST_AS_HOST));
    }
    const auto signals = std::ranges::count_if(bundle_.sideband, [](const trace::Sideband& record) {
      return record.kind == trace::SidebandKind::SIGNAL;
    });
    if (signals != 0) written_.notes.push_back(warn(WarningCode::EXPORT_SIGNALS, signals));
    if (!bundle_.configuration.clock.perf_time_known) {
      const bool are_ticks = clock_.time_mult == 1 && clock_.time_shift == 0;
      written_.notes.push_back(are_ticks ? warn(WarningCode::EXPORT_TSC_AS_NS)
                                         : warn(WarningCode::EXPORT_CLOCK_UNKNOWN));
    }
  }

  void note_filter() {
    if (perf::has_ranges(bundle_.configuration) && !code_.filter())
      written_.notes.push_back(warn(WarningCode::EXPORT_FILTER));
  }

  std::optional<base::Failure> write_folder() {
    auto folder = perf::create_folder(path_, "data");
    if (!folder.ok()) return folder.failure();
    const std::string& at = folder.value().written();
    if (auto failure = perf::write_kernel(bundle_, at, records_)) return failure;
    features_.push_back({perf::FEATURE_DIR_FORMAT, numbers({0})});
    if (auto failure = write_file(at + "/data")) return failure;
    return folder.value().rename(base::sudo_caller());
  }

  std::optional<base::Failure> write_file(const std::string& path) {
    auto output = Output::create(path);
    if (!output.ok()) return output.failure();
    Output& out = output.value();
    if (!write_data(out)) return interrupted();
    written_.bytes = out.size();
    return out.keep();
  }

  // Writes header, event, records, trace, features.
  bool write_data(Output& out) {
    const std::vector<std::uint8_t> attr = perf::attr_bytes(event_);
    const std::uint64_t ids_at = kHeaderBytes;
    const std::uint64_t attrs_at = ids_at + 8;
    const std::uint64_t data_at = attrs_at + attr.size() + 16;
    out.skip_to(ids_at);
    out.put(numbers({perf::kEventId}));
    out.put(attr);
    out.put(numbers({ids_at, 8}));
    const auto trace = make_aux_writer();
    if (!trace->write_aux_records(records_)) return false;
    out.put(perf::auxtrace_info(bundle_, event_, clock_, tasks_.any_cpu(), code_.filter()));
    out.put(perf::time_conversion(clock_));
    records_.for_each([&](base::Bytes record) { out.put(record); });
    if (!trace->write(out)) return false;
    const std::uint64_t data_bytes = out.size() - data_at;
    if (auto ids = perf::build_id_table(code_.files()); !ids.empty())
      features_.push_back({perf::FEATURE_BUILD_ID, std::move(ids)});
    features_.push_back({perf::FEATURE_AUXTRACE, trace->index()});
    features_.push_back({perf::FEATURE_SAMPLE_TIME, numbers({records_.first_ns(), records_.last_ns()})});
    std::ranges::sort(features_, {}, &perf::WrittenFeature::number);
    std::uint64_t bitmap = 0;
    write_features(out, bitmap);
    const std::vector<std::uint8_t> head =
        numbers({0x32454c4946524550, kHeaderBytes, attr.size() + 16, attrs_at, attr.size() + 16, data_at,
                 data_bytes, 0, 0, bitmap, 0, 0, 0});  // "PERFILE2"
    out.put_at(0, head);
    return true;
  }

  std::unique_ptr<perf::AuxWriter> make_aux_writer() {
    if (event_.kind == perf::TraceKind::INTEL_BTS)
      return std::make_unique<perf::BtsWriter>(bundle_, tasks_.queues(), !event_.exclude_kernel,
                                               options_.go_on);
    return std::make_unique<perf::PtWriter>(bundle_, tasks_.queues(), packets_, options_.go_on);
  }

  void write_features(Output& out, std::uint64_t& bitmap) {
    std::uint64_t at = out.size() + features_.size() * 16;
    for (const perf::WrittenFeature& feature : features_) {
      bitmap |= std::uint64_t{1} << feature.number;
      out.put(numbers({at, feature.bytes.size()}));
      at += feature.bytes.size();
    }
    for (const perf::WrittenFeature& feature : features_) out.put(feature.bytes);
  }

  // Writes the code folder of the file; nullopt: perf needs none.
  base::Result<std::optional<base::NewFolder>> write_code() {
    std::optional<base::NewFolder> none;
    if (std::ranges::none_of(code_.files(), &perf::CodeFile::is_written)) return none;
    const std::string name = path_ + ".debug";
    auto folder = perf::create_folder(name, ".build-id");
    if (!folder.ok()) return folder.failure();
    if (auto failure = perf::write_code_folder(code_.files(), folder.value().written())) return *failure;
    written_.code_folder = name;
    return std::optional<base::NewFolder>(std::move(folder.value()));
  }

  const trace::TraceBundle& bundle_;
  const std::string path_;
  const PerfDataOptions& options_;
  PerfDataWritten written_;
  trace::Clock clock_;
  perf::Records records_;
  perf::Tasks tasks_;
  perf::Code code_;
  std::vector<perf::StreamPackets> packets_;  // by stream
  perf::WrittenEvent event_;
  std::vector<perf::WrittenFeature> features_;
};

}  // namespace

base::Result<PerfDataWritten> write_perf_data(const trace::TraceBundle& bundle, const std::string& path,
                                              const PerfDataOptions& options) {
  if (auto failure = check_exportable(bundle, path)) return *failure;
  return Writer(bundle, path, options).write();
}

}  // namespace ptkit::formats
