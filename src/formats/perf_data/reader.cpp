// Reads recordings of perf record: a file, a folder (--kcore, --threads), or a pipe.
#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/bits.h"
#include "base/system/this_linux.h"
#include "code/image/elf/elf.h"
#include "formats/common/files.h"
#include "formats/common/readers.h"
#include "formats/perf_data/attrs.h"
#include "formats/perf_data/branches.h"
#include "formats/perf_data/file.h"
#include "formats/perf_data/filter.h"
#include "formats/perf_data/ids.h"
#include "formats/perf_data/kernel.h"
#include "formats/perf_data/owners.h"
#include "formats/perf_data/processes.h"
#include "formats/perf_data/streams.h"
#include "formats/perf_event/jit.h"
#include "formats/perf_event/sample.h"
#include "processes/switch_alignment.h"
#include "ptkit/rtit_regs.h"
#include "trace/module_names.h"
#include "trace/warning_codes.h"

namespace ptkit::formats {

namespace {

using perf::Record;
using perf::TraceKind;
using perf::Trailer;
using trace::WarningCode;

std::string data_path(const std::string& path) { return is_folder(path) ? join(path, "data") : path; }

constexpr std::string_view kMagic = "PERFILE2";

bool sniff_perf_data(const std::string& path) {
  return first_bytes(data_path(path), kMagic.size()) == kMagic;
}

bool sniff_perf_data_bytes(base::Bytes bytes) {
  return bytes.size() >= kMagic.size() && std::equal(kMagic.begin(), kMagic.end(), bytes.begin());
}

// As `uname -m` prints it: "x86_64", "i386" to "i686"; "x86" and "amd64" of other tools. Empty: not recorded.
bool is_x86(std::string_view architecture) noexcept {
  const bool is_32_bit =
      architecture.size() == 4 && architecture.starts_with('i') && architecture.ends_with("86");
  return architecture.empty() || architecture.starts_with("x86") || architecture == "amd64" || is_32_bit;
}

class PerfDataReader {
 public:
  PerfDataReader(const std::string& path, perf::File file, const OpenOptions& options)
      : path_(path),
        file_(std::move(file)),
        trailers_(file_.attrs()),
        binaries_(bundle_, is_folder(path) ? path : parent_folder(path), without_slashes(path) + ".debug",
                  options.binaries) {}

  base::Result<trace::TraceBundle> read() {
    switches_ = perf::find_sched_switch(file_.feature(perf::FEATURE_TRACING_DATA));
    file_.for_each([this](const Record& record) { read_record(record); }, [this] { miss_records(); });
    if (!failure_ && info_.kind == TraceKind::NONE && branches_.empty()) {
      refuse("contains no Intel PT, BTS or LBR data (record with -e intel_pt//, -e intel_bts// or -b)");
    }
    if (failure_) return with_damage(*failure_);
    perf::configure(info_, file_.attrs(), bundle_.configuration);
    sideband_.finish(bundle_.configuration.clock);
    if (const auto failure = make_streams()) return *failure;
    if (bundle_.streams.empty()) {
      return with_damage(
          bad_file(path_, "contains no trace: perf recorded none, or lost all of it (no AUXTRACE record)"));
    }
    describe();
    read_build_ids();
    binaries_.recorded_at(data_path(path_));
    if (is_this_machine()) binaries_.is_here();
    const bool has_kernel = add_code();
    perf::Processes processes(bundle_, binaries_, is_here(), file_.size());
    perf::assign_owners(bundle_, sideband_, owners_, processes);
    static_cast<void>(processes::align_switches_to_pips(
        bundle_, {.records_lost = records_missing(), .processes = processes::spaces_with_code(bundle_)}));
    perf::mark_32_bit_code(bundle_);
    if (!info_.filter.empty()) perf::apply_filter(info_.filter, bundle_);
    finish(has_kernel);
    return std::move(bundle_);
  }

 private:
  void read_auxtrace_info(const Record& record) {
    if (info_.kind != TraceKind::NONE) return;
    const std::uint32_t kind = perf::Fields(record.body).u32();
    const auto info = perf::parse_info(record.body);
    if (kind != static_cast<std::uint32_t>(TraceKind::INTEL_PT) &&
        kind != static_cast<std::uint32_t>(TraceKind::INTEL_BTS)) {
      refuse("has AUX data of another architecture (AUXTRACE_INFO of type " + std::to_string(kind) + ")");
    } else if (!info) {
      refuse("has a cut AUXTRACE_INFO record");
    } else {
      perf::keep_time_conversion(std::exchange(info_, *info), info_);
    }
  }

  void refuse(const std::string& why) {
    failure_ = base::Failure{base::Status::UNSUPPORTED, 0, path_ + " " + why};
  }

  // Appends warnings of the file to a failure: damage may be its cause.
  [[nodiscard]] base::Failure with_damage(base::Failure failure) const {
    for (const trace::Warning& warning : file_.warnings) failure.detail += "; " + warning.text();
    return failure;
  }

  void miss_records() {
    damaged_ = true;
    sideband_.forget_running();
    branches_.note_loss();
  }

  // Returns true if context switches may be among lost records.
  [[nodiscard]] bool records_missing() const {
    return sideband_.lost() != 0 || damaged_ || malformed_ != 0 || (switches_ && lost_samples_ != 0);
  }

  std::optional<base::Failure> make_streams() {
    const bool is_bts = info_.kind == TraceKind::INTEL_BTS;
    auto streams = streams_.build({info_.snapshots, is_bts, is_bts ? perf::kBtsRecordBytes : 1});
    if (!streams.ok()) return streams.failure();
    const trace::Clock& clock = bundle_.configuration.clock;
    if (is_bts) {
      const bool kernel = perf::traces_kernel(info_, file_.attrs());
      for (perf::BranchStream& one : perf::bts_streams(streams.value(), sideband_.running(), clock, kernel))
        add(std::move(one));
    } else {
      for (perf::AuxStream& one : streams.value()) add({std::move(one.stream), {}});
    }
    const std::size_t depth = perf::lbr_depth_of(file_.feature(perf::FEATURE_CPU_PMU_CAPS));
    for (perf::BranchStream& one : branches_.build(clock, depth)) add(std::move(one));
    return std::nullopt;
  }

  void add(perf::BranchStream one) {
    if (one.stream.data.size() == 0) return;
    bundle_.streams.push_back(std::move(one.stream));
    owners_.push_back(std::move(one.owners));
  }

  void read_record(const Record& record) {
    if (record.type >= perf::HEADER_ATTR) return read_perf_record(record);
    if (record.type == perf::SAMPLE) return read_sample(record);
    if (record.type >= perf::LAST_OF_KERNEL) {
      ++unknown_[record.type];
      return;
    }
    auto trailer = trailers_.read(record);
    if (trailer) {
      ids_.complete(*trailer);
      sideband_.update_time(*trailer);
    }
    if (!trailer || !read_kernel_record(record, *trailer)) ++malformed_;
  }

  void read_sample(const Record& record) {
    const perf::Attr* const attr = trailers_.of_sample(record.body);
    auto sample = attr != nullptr ? perf::parse_sample(*attr, record.body) : std::nullopt;
    if (sample) {
      ids_.complete(sample->trailer);
      sideband_.update_time(sample->trailer);
    }
    if (!sample) {
      ++malformed_;
    } else if (ids_.is_of_guest(sample->trailer)) {
      return;
    } else if (attr->type == perf::kTypeTracepoint && switches_ && attr->config == switches_->event) {
      if (!sideband_.take_switch(*switches_, *sample)) ++malformed_;
    } else if (!sample->trace.empty()) {
      streams_.add_sample(file_.part(sample->trace), sample->trailer);
    } else if (info_.kind != TraceKind::NONE || !branches_.add_sample(*attr, *sample)) {
      if (!sample->branches.empty()) ++stacks_;
      ++samples_;
    }
  }

  void read_perf_record(const Record& record) {
    if (record.type >= perf::LAST_OF_PERF) ++unknown_[record.type];
    if (record.type == perf::AUXTRACE_INFO) return read_auxtrace_info(record);
    if (record.type == perf::ID_INDEX && !ids_.read_id_index(record.body)) ++malformed_;
    if (record.type == perf::AUXTRACE && !streams_.add_auxtrace(record, file_.part(record.payload)))
      ++malformed_;
    if (record.type == perf::HEADER_BUILD_ID) read_build_id(record);
    if (record.type == perf::AUXTRACE_ERROR) read_auxtrace_error(record);
    if (record.type == perf::TIME_CONV) static_cast<void>(perf::take_time_conversion(record.body, info_));
  }

  // An AUXTRACE_ERROR record: an earlier decoder (perf inject) could not decode the trace there.
  void read_auxtrace_error(const Record& record) {
    constexpr std::size_t kMessageAt = 40;
    perf::Fields fields(record.body);
    fields.skip(kMessageAt);
    if (++auxtrace_errors_ == 1 && fields.ok()) first_error_ = fields.text();
  }

  bool read_kernel_record(const Record& record, const Trailer& trailer) {
    const unsigned mode = record.misc & perf::kMiscCpumode;
    const bool is_mapping = record.type == perf::MMAP || record.type == perf::MMAP2;
    if (ids_.is_of_guest(trailer)) return true;
    if (is_mapping && (mode == perf::kGuestKernel || mode == perf::kGuestUser)) {
      ++of_guests_;
      return true;
    }
    const base::Bytes body = record.body.first(record.body.size() - trailer.bytes);
    if (record.type == perf::AUX)
      return streams_.add_aux_record({record.offset, record.type, record.misc, body, {}}, trailer);
    if (record.type == perf::AUX_OUTPUT_HW_ID) return ids_.add_counter(body, trailer);
    if (record.type == perf::LOST) branches_.note_loss();
    if (record.type == perf::LOST_SAMPLES) return read_lost_samples(body);
    if (record.type == perf::KSYMBOL || record.type == perf::TEXT_POKE)
      return changes_.add(record, file_.part(body), trailer);
    return sideband_.take(record, body, trailer);
  }

  bool read_lost_samples(base::Bytes body) {
    perf::Fields fields(body);
    lost_samples_ += fields.u64();
    branches_.note_loss();
    return fields.ok();
  }

  // Layout (perf_record_header_build_id): pid, 24 bytes of build-id (byte 20 is its size; before perf 5.13 it
  // is 0; some versions write the size of ids that do not fit), path.
  void read_build_id(const Record& record) {
    const unsigned mode = record.misc & perf::kMiscCpumode;
    perf::Fields fields(record.body);
    fields.skip(4);
    const base::Bytes id = fields.take_bytes(24);
    if (!fields.ok() || mode == perf::kGuestKernel || mode == perf::kGuestUser) return;
    const bool has_size = id[20] != 0;
    const std::size_t size = has_size ? std::min<std::size_t>(id[20], 20) : 20;
    binaries_.has_build_id(fields.text(), {code::image::build_id_text(id.first(size)), !has_size});
  }

  void read_build_ids() {
    static_cast<void>(
        perf::walk(file_.feature(perf::FEATURE_BUILD_ID), 0, false, [this](const Record& record) {
          read_build_id(record);
          return true;
        }));
  }

  // Adds the JIT code of each process that has mapped a jitdump.
  void add_jit_dumps() {
    std::set<std::pair<std::int64_t, std::string>> known;
    std::vector<perf::Event> loads;
    for (const perf::Event& event : sideband_.events()) {
      if (!trace::is_jit_dump(event.text) || !known.emplace(event.pid, event.text).second) continue;
      if (loads.size() > kMostLoads) {
        bundle_.warnings.push_back(warn(WarningCode::JIT_LIMIT, kMostLoads));
        break;
      }
      const trace::TraceBuffer dump = binaries_.contents_of(event.text);
      if (dump.size() == 0) {
        binaries_.add_missing(event.text);
        continue;
      }
      if (const auto warning = perf::read_jit_dump(bundle_, dump, event, loads))
        bundle_.warnings.push_back(warning->at(event.text));
    }
    sideband_.add(std::move(loads));
  }

  // Adds the code that does not come from mapped files. Returns true if the recording has the kernel's code.
  bool add_code() {
    const std::string architecture = file_.feature_text(perf::FEATURE_ARCH);
    if (!is_x86(architecture)) {
      add(warn(WarningCode::ARCHITECTURE_OTHER, architecture));
      binaries_.refuse_code();
      return true;
    }
    const bool has_kernel = is_folder(path_) && perf::add_kernel(bundle_, join(path_, "kcore_dir"));
    changes_.add_to(bundle_, file_.feature(perf::FEATURE_BPF_PROG_INFO));
    add_jit_dumps();
    return has_kernel;
  }

  // Host names repeat. Machines with one name mostly differ in their processors.
  [[nodiscard]] bool is_this_machine() const {
    const std::uint32_t cpus = perf::Fields(file_.feature(perf::FEATURE_NRCPUS)).u32();
    const std::uint32_t own = base::linux_cpus();
    return is_here() && (cpus == 0 || own == 0 || cpus == own);
  }

  // Returns true if the recording has this machine's host name.
  [[nodiscard]] bool is_here() const {
    const std::string name = base::linux_host_name();
    return !name.empty() && file_.feature_text(perf::FEATURE_HOSTNAME) == name;
  }

  void describe() {
    if (const std::string cpu = file_.feature_text(perf::FEATURE_CPUID); !cpu.empty()) {
      if (!perf::parse_cpuid(cpu, bundle_.configuration.cpu)) add(warn(WarningCode::PERF_CPUID_UNKNOWN, cpu));
    }
    if (info_.kind == TraceKind::INTEL_PT)
      bundle_.configuration.ip_payloads = perf::ip_payloads_of(file_.feature(perf::FEATURE_PMU_CAPS));
    nlohmann::json meta = {{"backend", "perf"}};
    if (const auto command = file_.command(); !command.empty()) meta["command"] = command;
    const auto put = [&](const char* name, unsigned feature) {
      if (const std::string text = file_.feature_text(feature); !text.empty()) meta[name] = text;
    };
    put("machine", perf::FEATURE_HOSTNAME);
    put("kernel", perf::FEATURE_OSRELEASE);
    put("perf", perf::FEATURE_VERSION);
    if (!is_x86(file_.feature_text(perf::FEATURE_ARCH))) put("architecture", perf::FEATURE_ARCH);
    if (!info_.filter.empty()) meta["filter"] = info_.filter;
    if (samples_ != 0) meta["samples"] = samples_;
    describe_counters(meta);
    bundle_.metadata = meta.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

  // Lists the events of PEBS records in the trace, by hardware counter.
  void describe_counters(nlohmann::json& meta) {
    ids_.read_event_desc(file_.feature(perf::FEATURE_EVENT_DESC));
    for (const perf::CounterUse& use : ids_.counters()) {
      nlohmann::json one = {{"counter", use.counter}, {"event", use.event}, {"id", use.id}};
      if (use.cpu != trace::kNoId) one["cpu"] = use.cpu;
      if (use.tid != trace::kNoId) one["tid"] = use.tid;
      one["tsc"] = perf::tsc_of(bundle_.configuration.clock, use.ns);
      meta["pebs_events"].push_back(std::move(one));
    }
  }

  void finish(bool has_kernel) {
    bundle_.warnings.insert(bundle_.warnings.end(), file_.warnings.begin(), file_.warnings.end());
    if (!bundle_.configuration.clock.perf_time_known) add(warn(WarningCode::NO_TIME_CONVERSION));
    if (!has_kernel && (bundle_.configuration.rtit_ctl & base::bit(PT_CTL_OS)) != 0)
      add(warn(WarningCode::KCORE_MISSING));
    if (sideband_.lost() != 0) add(warn(WarningCode::PERF_RECORDS_LOST, sideband_.lost()));
    if (lost_samples_ != 0) add(warn(WarningCode::PERF_SAMPLES_LOST, lost_samples_));
    if (streams_.partial() != 0) add(warn(WarningCode::AUX_PARTIAL, streams_.partial()));
    if (branches_.may_repeat() != 0) add(warn(WarningCode::LBR_NEWEST_TWICE, branches_.may_repeat()));
    warn_of_skipped_records();
    binaries_.list_missing();
  }

  void warn_of_skipped_records() {
    if (of_guests_ != 0) add(warn(WarningCode::GUEST_MAPPINGS_SKIPPED, of_guests_));
    if (auxtrace_errors_ != 0) add(warn(WarningCode::AUXTRACE_ERRORS, auxtrace_errors_, first_error_));
    if (malformed_ != 0) add(warn(WarningCode::PERF_RECORDS_SHORT, malformed_));
    if (stacks_ != 0 && info_.kind != TraceKind::NONE) add(warn(WarningCode::BRANCH_STACKS_SKIPPED, stacks_));
    for (const auto& [type, count] : unknown_) add(warn(WarningCode::RECORD_TYPE_UNKNOWN, count, type));
    for (const trace::Warning& warning : ids_.warnings()) add(warning);
  }

  void add(const trace::Warning& warning) { bundle_.warnings.push_back(warning.at(path_)); }

  static constexpr std::size_t kMostLoads = 4'000'000;  // any number of processes could map one jitdump

  std::string path_;
  perf::File file_;
  perf::Trailers trailers_;
  perf::Ids ids_;
  trace::TraceBundle bundle_;
  perf::Binaries binaries_;
  perf::TraceInfo info_;
  perf::AuxStreams streams_;
  perf::SampledBranches branches_;
  std::vector<std::vector<perf::Owner>> owners_;  // by stream
  perf::Sideband sideband_;
  perf::KernelChanges changes_;
  std::map<std::uint32_t, std::uint64_t> unknown_;  // number of records by unknown type
  std::uint64_t malformed_ = 0;
  std::uint64_t lost_samples_ = 0;
  bool damaged_ = false;               // records cannot be read
  std::uint64_t samples_ = 0;          // samples without trace
  std::uint64_t of_guests_ = 0;        // mappings of virtual machines
  std::uint64_t auxtrace_errors_ = 0;  // AUXTRACE_ERROR records
  std::string first_error_;
  std::uint64_t stacks_ = 0;  // branch stacks, which samples_ counts, too
  std::optional<perf::SchedSwitch> switches_;
  std::optional<base::Failure> failure_;
};

base::Result<trace::TraceBundle> read_perf_data(const std::string& path, const OpenOptions& options) {
  auto file = perf::File::open(data_path(path), is_folder(path) ? path : std::string());
  if (!file.ok()) return file.failure();
  return PerfDataReader(path, std::move(file.value()), options).read();
}

base::Result<trace::TraceBundle> read_perf_data_bytes(const std::string& name,
                                                      const trace::TraceBuffer& bytes,
                                                      const OpenOptions& options) {
  auto file = perf::File::of(name, bytes);
  if (!file.ok()) return file.failure();
  return PerfDataReader(name, std::move(file.value()), options).read();
}

}  // namespace

const Format kPerfDataFormat{"perf.data",
                             "a recording by Linux perf (file, folder or pipe)",
                             &sniff_perf_data,
                             &read_perf_data,
                             &sniff_perf_data_bytes,
                             &read_perf_data_bytes};

}  // namespace ptkit::formats
