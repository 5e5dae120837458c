// What perf record wrote: a file, a folder (--kcore), or what came out of a pipe.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "formats/files.h"
#include "formats/perf_branches.h"
#include "formats/perf_code32.h"
#include "formats/perf_config.h"
#include "formats/perf_file.h"
#include "formats/perf_ids.h"
#include "formats/perf_jit.h"
#include "formats/perf_kernel.h"
#include "formats/perf_kernel_changes.h"
#include "formats/perf_owners.h"
#include "formats/perf_processes.h"
#include "formats/perf_sample.h"
#include "formats/perf_streams.h"
#include "formats/perf_tracepoint.h"
#include "formats/readers.h"
#include "formats/switch_places.h"
#include "image/elf.h"

namespace ptkit::formats {

namespace {

using perf::Record;
using perf::TraceKind;
using perf::Trailer;

std::string data_path(const std::string& path) { return is_folder(path) ? join(path, "data") : path; }

constexpr std::string_view kMagic = "PERFILE2";

bool sniff(const std::string& path) { return first_bytes(data_path(path), kMagic.size()) == kMagic; }

bool sniff_bytes(base::Bytes bytes) {
  return bytes.size() >= kMagic.size() && std::equal(kMagic.begin(), kMagic.end(), bytes.begin());
}

class Reader {
 public:
  Reader(const std::string& path, perf::File file, const OpenOptions& options)
      : path_(path),
        file_(std::move(file)),
        trailers_(file_.attrs()),
        binaries_(bundle_, is_folder(path) ? path : parent_folder(path), without_slashes(path) + ".debug",
                  options.binaries) {}

  base::Result<trace::TraceBundle> read() {
    switches_ = perf::find_sched_switch(file_.feature(perf::FEATURE_TRACING_DATA));
    file_.for_each([this](const Record& record) { take(record); }, [this] { miss_records(); });
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
    take_build_ids();
    const bool has_kernel = is_folder(path_) && perf::add_kernel(bundle_, join(path_, "kcore_dir"));
    changes_.add_to(bundle_, file_.feature(perf::FEATURE_BPF_PROG_INFO));
    add_jit_dumps();
    perf::Processes processes(bundle_, binaries_, is_here(), file_.size());
    perf::assign_owners(bundle_, sideband_, owners_, processes);
    static_cast<void>(
        place_switches(bundle_, {.records_lost = records_missing(), .processes = spaces_with_code(bundle_)}));
    perf::mark_32_bit_code(bundle_);
    finish(has_kernel);
    return std::move(bundle_);
  }

 private:
  void take_info(const Record& record) {
    if (info_.kind != TraceKind::NONE) return;
    const std::uint32_t kind = perf::Fields(record.body).u32();
    const auto info = perf::parse_info(record.body);
    if (kind != static_cast<std::uint32_t>(TraceKind::INTEL_PT) &&
        kind != static_cast<std::uint32_t>(TraceKind::INTEL_BTS)) {
      refuse("has a trace of another kind of processor (AUXTRACE_INFO of type " + std::to_string(kind) + ")");
    } else if (!info) {
      refuse("has an AUXTRACE_INFO record that is cut");
    } else {
      perf::keep_time_conversion(std::exchange(info_, *info), info_);
    }
  }

  void refuse(const std::string& why) {
    failure_ = base::Failure{base::Status::UNSUPPORTED, 0, path_ + " " + why};
  }

  // Damage may be the reason.
  [[nodiscard]] base::Failure with_damage(base::Failure failure) const {
    for (const std::string& warning : file_.warnings) failure.detail += "; " + warning;
    return failure;
  }

  void miss_records() {
    damaged_ = true;
    sideband_.lose_track();
    branches_.lost();
  }

  // Some may have told of switches.
  [[nodiscard]] bool records_missing() const {
    return sideband_.lost() != 0 || damaged_ || malformed_ != 0 || (switches_ && lost_samples_ != 0);
  }

  std::optional<base::Failure> make_streams() {
    const bool is_store = info_.kind == TraceKind::INTEL_BTS;
    auto streams = streams_.make({info_.snapshots, is_store, is_store ? perf::kStoreRecordBytes : 1});
    if (!streams.ok()) return streams.failure();
    const trace::Clock& clock = bundle_.configuration.clock;
    if (is_store) {
      const bool kernel = perf::traces_kernel(info_, file_.attrs());
      for (perf::BranchStream& one : perf::from_stores(streams.value(), sideband_.running(), clock, kernel))
        add(std::move(one));
    } else {
      for (perf::AuxStream& one : streams.value()) add({std::move(one.stream), {}});
    }
    for (perf::BranchStream& one : branches_.make(clock)) add(std::move(one));
    return std::nullopt;
  }

  void add(perf::BranchStream one) {
    if (one.stream.data.size() == 0) return;
    bundle_.streams.push_back(std::move(one.stream));
    owners_.push_back(std::move(one.owners));
  }

  void take(const Record& record) {
    if (record.type >= perf::HEADER_ATTR) return take_of_perf(record);
    if (record.type == perf::SAMPLE) return take_sample(record);
    if (record.type >= perf::LAST_OF_KERNEL) {
      ++unknown_[record.type];
      return;
    }
    auto who = trailers_.read(record);
    if (who) {
      ids_.complete(*who);
      sideband_.note_time(*who);
    }
    if (!who || !take_of_kernel(record, *who)) ++malformed_;
  }

  void take_sample(const Record& record) {
    const perf::Attr* const attr = trailers_.of_sample(record.body);
    auto sample = attr != nullptr ? perf::parse_sample(*attr, record.body) : std::nullopt;
    if (sample) {
      ids_.complete(sample->who);
      sideband_.note_time(sample->who);
    }
    if (!sample) {
      ++malformed_;
    } else if (ids_.is_of_guest(sample->who)) {
      return;
    } else if (attr->type == perf::kTypeTracepoint && switches_ && attr->config == switches_->event) {
      if (!sideband_.take_switch(*switches_, *sample)) ++malformed_;
    } else if (!sample->trace.empty()) {
      streams_.add_sample(file_.part(sample->trace), sample->who);
    } else if (info_.kind != TraceKind::NONE || !branches_.take(*attr, *sample)) {
      if (!sample->branches.empty()) ++stacks_;
      ++samples_;
    }
  }

  void take_of_perf(const Record& record) {
    if (record.type >= perf::LAST_OF_PERF) ++unknown_[record.type];
    if (record.type == perf::AUXTRACE_INFO) return take_info(record);
    if (record.type == perf::ID_INDEX && !ids_.take_index(record.body)) ++malformed_;
    if (record.type == perf::AUXTRACE && !streams_.add(record, file_.part(record.payload))) ++malformed_;
    if (record.type == perf::HEADER_BUILD_ID) take_build_id(record);
    if (record.type == perf::AUXTRACE_ERROR) take_error(record);
    if (record.type == perf::TIME_CONV) static_cast<void>(perf::take_time_conversion(record.body, info_));
  }

  // What somebody who decoded the trace before could not make sense of (perf inject).
  void take_error(const Record& record) {
    constexpr std::size_t kMessageAt = 40;
    perf::Fields fields(record.body);
    fields.skip(kMessageAt);
    if (++told_errors_ == 1 && fields.ok()) first_error_ = fields.text();
  }

  bool take_of_kernel(const Record& record, const Trailer& who) {
    const unsigned mode = record.misc & perf::kMiscCpumode;
    const bool is_mapping = record.type == perf::MMAP || record.type == perf::MMAP2;
    if (ids_.is_of_guest(who)) return true;
    if (is_mapping && (mode == perf::kGuestKernel || mode == perf::kGuestUser)) {
      ++of_guests_;
      return true;
    }
    const base::Bytes body = record.body.first(record.body.size() - who.bytes);
    if (record.type == perf::AUX)
      return streams_.note({record.offset, record.type, record.misc, body, {}}, who);
    if (record.type == perf::AUX_OUTPUT_HW_ID) return ids_.take_counter(body, who);
    if (record.type == perf::LOST) branches_.lost();
    if (record.type == perf::LOST_SAMPLES) return take_lost_samples(body);
    if (record.type == perf::KSYMBOL || record.type == perf::TEXT_POKE)
      return changes_.take(record, file_.part(body), who);
    return sideband_.take(record, body, who);
  }

  bool take_lost_samples(base::Bytes body) {
    perf::Fields fields(body);
    lost_samples_ += fields.u64();
    branches_.lost();
    return fields.ok();
  }

  // pid, 24 bytes of build-id (its size is the 21st), path.
  void take_build_id(const Record& record) {
    const unsigned mode = record.misc & perf::kMiscCpumode;
    perf::Fields fields(record.body);
    fields.skip(4);
    const base::Bytes id = fields.take_bytes(24);
    if (!fields.ok() || mode == perf::kGuestKernel || mode == perf::kGuestUser) return;
    const std::size_t size = id[20] != 0 && id[20] <= 20 ? id[20] : 20;
    binaries_.has_build_id(fields.text(), image::build_id_text(id.first(size)));
  }

  void take_build_ids() {
    static_cast<void>(
        perf::walk(file_.feature(perf::FEATURE_BUILD_ID), 0, false, [this](const Record& record) {
          take_build_id(record);
          return true;
        }));
  }

  // Code that programs made, of each that has mapped a dump of it.
  void add_jit_dumps() {
    std::set<std::pair<std::int64_t, std::string>> known;
    std::vector<perf::Event> loads;
    for (const perf::Event& event : sideband_.events()) {
      if (!perf::is_jit_dump(event.text) || !known.emplace(event.pid, event.text).second) continue;
      if (loads.size() > kMostLoads) {
        bundle_.warnings.push_back("Processes made more than " + std::to_string(kMostLoads) +
                                   " functions; the code of some is not known.");
        break;
      }
      const trace::TraceBuffer dump = binaries_.contents_of(event.text);
      if (dump.size() == 0) {
        binaries_.miss(event.text);
        continue;
      }
      const std::string wrong = perf::read_jit_dump(bundle_, dump, event, loads);
      if (!wrong.empty()) bundle_.warnings.push_back(event.text + " " + wrong + ".");
    }
    sideband_.add(std::move(loads));
  }

  // Whether the recording was made on this machine, as far as names tell.
  [[nodiscard]] bool is_here() const {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 &&
           file_.feature_text(perf::FEATURE_HOSTNAME) == name.data();
  }

  void describe() {
    if (const std::string cpu = file_.feature_text(perf::FEATURE_CPUID); !cpu.empty()) {
      if (!perf::parse_cpuid(cpu, bundle_.configuration.cpu)) {
        bundle_.warnings.push_back(path_ + ": '" + cpu +
                                   "' names no processor; the workarounds of all errata apply.");
      }
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
    if (!info_.filter.empty()) meta["filter"] = info_.filter;
    if (samples_ != 0) meta["samples"] = samples_;
    describe_counters(meta);
    bundle_.metadata = meta.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

  // Which events PEBS records in the trace are of, by the counters that they name.
  void describe_counters(nlohmann::json& meta) {
    ids_.take_names(file_.feature(perf::FEATURE_EVENT_DESC));
    for (const perf::CounterUse& use : ids_.counters()) {
      nlohmann::json one = {{"counter", use.counter}, {"event", use.event}, {"id", use.id}};
      if (use.cpu != trace::kNoId) one["cpu"] = use.cpu;
      if (use.tid != trace::kNoId) one["tid"] = use.tid;
      one["tsc"] = perf::tsc_of(bundle_.configuration.clock, use.ns);
      meta["pebs_events"].push_back(std::move(one));
    }
  }

  void finish(bool has_kernel) {
    auto& warnings = bundle_.warnings;
    warnings.insert(warnings.end(), file_.warnings.begin(), file_.warnings.end());
    const std::string at = path_ + ": ";
    if (!bundle_.configuration.clock.perf_time_known) {
      warnings.push_back(
          at +
          "perf's times cannot be converted (no time_zero): what was mapped, and who ran, is taken as "
          "if it had been so all the time.");
    }
    if (!has_kernel && (bundle_.configuration.rtit_ctl & kOs) != 0) {
      warnings.push_back(
          at + "kernel code is missing and cannot be added later; the next time: perf record --kcore.");
    }
    if (sideband_.lost() != 0) {
      warnings.push_back(at + "perf lost " + std::to_string(sideband_.lost()) +
                         " records: mappings or switches may be missing; use a larger buffer (-m).");
    }
    if (lost_samples_ != 0) {
      warnings.push_back(at + "perf lost " + std::to_string(lost_samples_) +
                         " samples, with what is in them; use a larger buffer (-m) or a longer period (-c).");
    }
    if (streams_.partial() != 0) {
      warnings.push_back(at + std::to_string(streams_.partial()) +
                         " pieces of trace have gaps: virtual machines ran there (VMX), and this processor "
                         "cannot trace through that; end them before recording.");
    }
    tell_of_records(at);
    binaries_.list_missing();
  }

  // What was not read.
  void tell_of_records(const std::string& at) {
    auto& warnings = bundle_.warnings;
    if (of_guests_ != 0) {
      warnings.push_back(at + std::to_string(of_guests_) +
                         " mappings of virtual machines are not read: their code is not known.");
    }
    if (told_errors_ != 0) {
      warnings.push_back(at + "perf met " + std::to_string(told_errors_) +
                         " errors in the trace, the first: " + first_error_ + ".");
    }
    if (malformed_ != 0) {
      warnings.push_back(at + std::to_string(malformed_) +
                         " records are too short for what they are, and were skipped.");
    }
    if (stacks_ != 0 && info_.kind != TraceKind::NONE) {
      warnings.push_back(at + std::to_string(stacks_) +
                         " branch stacks of samples are not read: there is a whole trace.");
    }
    for (const auto& [type, count] : unknown_) {
      warnings.push_back(at + std::to_string(count) + " records of type " + std::to_string(type) +
                         ", which this ptkit does not know, were skipped.");
    }
    for (const std::string& problem : ids_.problems()) warnings.push_back(at + problem);
  }

  static constexpr std::size_t kMostLoads = 4'000'000;  // one dump could be mapped by any number of processes
  static constexpr std::uint64_t kOs = 1U << 2U;        // IA32_RTIT_CTL.OS

  std::string path_;
  perf::File file_;
  perf::Trailers trailers_;
  perf::Ids ids_;
  trace::TraceBundle bundle_;
  perf::Binaries binaries_;
  perf::TraceInfo info_;
  perf::Streams streams_;
  perf::Branches branches_;
  std::vector<std::vector<perf::Owner>> owners_;  // by stream
  perf::Sideband sideband_;
  perf::KernelChanges changes_;
  std::map<std::uint32_t, std::uint64_t> unknown_;  // types, and how many
  std::uint64_t malformed_ = 0;
  std::uint64_t lost_samples_ = 0;
  bool damaged_ = false;           // records are missing that the file once had
  std::uint64_t samples_ = 0;      // that say nothing about the trace
  std::uint64_t of_guests_ = 0;    // mappings
  std::uint64_t told_errors_ = 0;  // of a decoder before
  std::string first_error_;
  std::uint64_t stacks_ = 0;  // of branches, among these
  std::optional<perf::SchedSwitch> switches_;
  std::optional<base::Failure> failure_;
};

base::Result<trace::TraceBundle> read(const std::string& path, const OpenOptions& options) {
  auto file = perf::File::open(data_path(path), is_folder(path) ? path : std::string());
  if (!file.ok()) return file.failure();
  return Reader(path, std::move(file.value()), options).read();
}

base::Result<trace::TraceBundle> read_bytes(const std::string& name, const trace::TraceBuffer& bytes,
                                            const OpenOptions& options) {
  auto file = perf::File::of(name, bytes);
  if (!file.ok()) return file.failure();
  return Reader(name, std::move(file.value()), options).read();
}

}  // namespace

const Format kPerfDataFormat{"perf.data",  "a recording by Linux perf (file, folder or pipe)",
                             &sniff,       &read,
                             &sniff_bytes, &read_bytes};

}  // namespace ptkit::formats
