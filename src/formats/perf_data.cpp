// What perf record wrote: a file, a folder (--kcore), or what came out of a pipe.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "formats/files.h"
#include "formats/perf_config.h"
#include "formats/perf_file.h"
#include "formats/perf_kernel.h"
#include "formats/perf_processes.h"
#include "formats/perf_sample.h"
#include "formats/perf_streams.h"
#include "formats/perf_tracepoint.h"
#include "formats/readers.h"
#include "image/elf.h"

namespace ptkit::formats {

namespace {

using perf::Event;
using perf::Record;
using perf::Running;
using perf::Trailer;

std::string data_path(const std::string& path) { return is_folder(path) ? join(path, "data") : path; }

bool sniff(const std::string& path) { return first_bytes(data_path(path), 8) == "PERFILE2"; }

class Reader {
 public:
  Reader(const std::string& path, perf::File file)
      : path_(path), file_(std::move(file)), trailers_(file_.attrs()), binaries_(bundle_) {}

  base::Result<trace::TraceBundle> read() {
    switches_ = perf::find_sched_switch(file_.feature(perf::FEATURE_TRACING_DATA));
    file_.for_each([this](const Record& record) { take(record); });
    if (!kind_) refuse("has no Processor Trace: it was not recorded with -e intel_pt//");
    if (failure_) return *failure_;
    perf::configure(info_, file_.attrs(), bundle_.configuration);
    auto streams = streams_.make(info_.snapshots);
    if (!streams.ok()) return streams.failure();
    bundle_.streams = std::move(streams.value());
    if (bundle_.streams.empty()) {
      return bad_file(path_, "has no trace: perf recorded none, or lost all of it (AUXTRACE records)");
    }
    describe();
    take_build_ids();
    const bool has_kernel = is_folder(path_) && perf::add_kernel(bundle_, join(path_, "kcore_dir"));
    take_events();
    finish(has_kernel);
    return std::move(bundle_);
  }

 private:
  void take_info(const Record& record) {
    if (kind_) return;
    kind_ = perf::Fields(record.body).u32();
    const auto info = perf::parse_pt_info(record.body);
    if (kind_ == static_cast<std::uint32_t>(perf::TraceKind::INTEL_BTS)) {
      refuse("has a recording of Branch Trace Store, which this ptkit does not read");
    } else if (kind_ != static_cast<std::uint32_t>(perf::TraceKind::INTEL_PT)) {
      refuse("has a trace of another kind of processor (AUXTRACE_INFO of type " + std::to_string(*kind_) +
             ")");
    } else if (!info) {
      refuse("has an AUXTRACE_INFO record that is cut");
    } else {
      info_ = *info;
    }
  }

  void refuse(const std::string& why) {
    failure_ = base::Failure{base::Status::UNSUPPORTED, 0, path_ + " " + why};
  }

  void take(const Record& record) {
    if (record.type >= perf::HEADER_ATTR) return take_of_perf(record);
    if (record.type == perf::SAMPLE) return take_sample(record);
    if (record.type >= perf::LAST_OF_KERNEL) {
      ++unknown_[record.type];
      return;
    }
    const auto who = trailers_.read(record);
    if (!who || !take_of_kernel(record, *who)) ++malformed_;
  }

  void take_sample(const Record& record) {
    const perf::Attr* const attr = trailers_.of_sample(record.body);
    const auto sample = attr != nullptr ? perf::parse_sample(*attr, record.body) : std::nullopt;
    if (!sample) {
      ++malformed_;
    } else if (attr->type == perf::kTypeTracepoint && switches_ && attr->config == switches_->event) {
      if (!sideband_.take_switch(*switches_, *sample)) ++malformed_;
    } else if (!sample->trace.empty()) {
      streams_.add_sample(file_.part(sample->trace), sample->who);
    } else {
      ++samples_;
    }
  }

  void take_of_perf(const Record& record) {
    if (record.type == perf::AUXTRACE_INFO) return take_info(record);
    if (record.type == perf::AUXTRACE && !streams_.add(record, file_.part(record.payload))) ++malformed_;
    if (record.type == perf::HEADER_BUILD_ID) take_build_id(record);
  }

  bool take_of_kernel(const Record& record, const Trailer& who) {
    const base::Bytes body = record.body.first(record.body.size() - who.bytes);
    if (record.type == perf::AUX)
      return streams_.note({record.offset, record.type, record.misc, body, {}}, who);
    return sideband_.take(record, body, who);
  }

  // pid, 24 bytes of build-id (its size is the 21st), path.
  void take_build_id(const Record& record) {
    perf::Fields fields(record.body);
    fields.skip(4);
    const base::Bytes id = fields.take_bytes(24);
    if (!fields.ok()) return;
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

  // Processes and who ran when, together in the order of time: a space is the process' at that time.
  void take_events() {
    sideband_.finish(bundle_.configuration.clock);
    const std::vector<Event>& events = sideband_.events();
    perf::Processes processes(bundle_, binaries_);
    std::map<std::int64_t, trace::Stream*> by_cpu;
    std::map<std::int64_t, trace::Stream*> by_tid;
    for (trace::Stream& stream : bundle_.streams) {
      (stream.cpu != trace::kNoId ? by_cpu[stream.cpu] : by_tid[stream.tid]) = &stream;
    }
    auto event = events.begin();
    for (const Running& one : sideband_.running()) {
      for (; event != events.end() && event->tsc <= one.tsc; ++event) processes.take(*event);
      if (const auto stream = by_cpu.find(one.cpu); stream != by_cpu.end())
        add_switch(*stream->second, one, processes);
    }
    for (; event != events.end(); ++event) processes.take(*event);
    for (const auto& [tid, stream] : by_tid) {
      if (stream->pid == trace::kNoId) stream->pid = sideband_.pid_of(tid);
      stream->space = stream->pid == trace::kNoId ? trace::kAnySpace : processes.space_of(stream->pid);
    }
    processes.finish();
  }

  static void add_switch(trace::Stream& stream, const Running& one, perf::Processes& processes) {
    constexpr std::int64_t kIdle = 0;
    trace::Switch out{.tsc = one.tsc};
    if (!one.out && one.tid > kIdle) {
      out.pid = one.pid;
      out.tid = one.tid;
      out.space = processes.space_of(one.pid);
    }
    stream.switches.push_back(out);
  }

  void describe() {
    if (const std::string cpu = file_.feature_text(perf::FEATURE_CPUID); !cpu.empty()) {
      if (!perf::parse_cpuid(cpu, bundle_.configuration.cpu)) {
        bundle_.warnings.push_back(path_ + ": '" + cpu +
                                   "' names no processor; the workarounds of all errata apply.");
      }
    }
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
    bundle_.metadata = meta.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
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
      warnings.push_back(at + "the kernel was traced and its code is not here: record with --kcore.");
    }
    if (sideband_.lost() != 0) {
      warnings.push_back(at + "perf lost " + std::to_string(sideband_.lost()) +
                         " records: mappings or switches may be missing; use a larger buffer (-m).");
    }
    if (malformed_ != 0) {
      warnings.push_back(at + std::to_string(malformed_) +
                         " records are too short for what they are, and were skipped.");
    }
    for (const auto& [type, count] : unknown_) {
      warnings.push_back(at + std::to_string(count) + " records of type " + std::to_string(type) +
                         ", which this ptkit does not know, were skipped.");
    }
    for (const std::string& problem : binaries_.problems()) warnings.push_back(problem);
  }

  static constexpr std::uint64_t kOs = 1U << 2U;  // IA32_RTIT_CTL.OS

  std::string path_;
  perf::File file_;
  perf::Trailers trailers_;
  trace::TraceBundle bundle_;
  perf::Binaries binaries_;
  std::optional<std::uint32_t> kind_;  // of the trace
  perf::PtInfo info_;
  perf::Streams streams_;
  perf::Sideband sideband_;
  std::map<std::uint32_t, std::uint64_t> unknown_;  // types, and how many
  std::uint64_t malformed_ = 0;
  std::uint64_t samples_ = 0;  // that say nothing about the trace
  std::optional<perf::SchedSwitch> switches_;
  std::optional<base::Failure> failure_;
};

base::Result<trace::TraceBundle> read(const std::string& path, const OpenOptions&) {
  auto file = perf::File::open(data_path(path));
  if (!file.ok()) return file.failure();
  return Reader(path, std::move(file.value())).read();
}

}  // namespace

const Format kPerfDataFormat{"perf.data", "a recording by Linux perf (file, folder or pipe)", &sniff, &read};

}  // namespace ptkit::formats
