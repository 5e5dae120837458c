// What perf record wrote: a file, a folder (--kcore), or what came out of a pipe.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "formats/files.h"
#include "formats/perf_config.h"
#include "formats/perf_file.h"
#include "formats/perf_kernel.h"
#include "formats/perf_processes.h"
#include "formats/perf_streams.h"
#include "formats/readers.h"
#include "trace/clock.h"

namespace ptkit::formats {

namespace {

using perf::Event;
using perf::Record;
using perf::Trailer;

constexpr unsigned kSampleAux = 20;
constexpr std::int64_t kNobody = -1;

std::string data_path(const std::string& path) { return is_folder(path) ? join(path, "data") : path; }

bool sniff(const std::string& path) { return first_bytes(data_path(path), 8) == "PERFILE2"; }

std::string hex_of(base::Bytes bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

// From then on this thread ran on a processor, or this one no longer did.
struct Running {
  std::uint64_t tsc = 0;
  std::int64_t cpu = kNobody;
  std::int64_t pid = kNobody;
  std::int64_t tid = kNobody;
  bool out = false;
};

class Reader {
 public:
  Reader(const std::string& path, perf::File file)
      : path_(path), file_(std::move(file)), trailers_(file_.attrs()), binaries_(bundle_) {}

  base::Result<trace::TraceBundle> read() {
    file_.for_each([this](const Record& record) { take(record); });
    if (!kind_) refuse("has no Processor Trace: it was not recorded with -e intel_pt//");
    if (failure_) return *failure_;
    perf::configure(info_, file_.attrs(), bundle_.configuration);
    bundle_.streams = streams_.make(file_, info_.snapshots);
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

  // Nanoseconds of perf's clock; 0: from the beginning on. AUXTRACE_INFO may come behind records that need
  // it.
  static std::uint64_t time_of(const Trailer& who) { return who.time_known ? who.time : 0; }

  [[nodiscard]] std::uint64_t tsc_of(std::uint64_t ns) const {
    const trace::Clock& clock = bundle_.configuration.clock;
    return ns == 0 || !clock.perf_time_known ? trace::kTscMin : trace::perf_tsc_from_ns(clock, ns);
  }

  void take(const Record& record) {
    if (record.type >= perf::HEADER_ATTR) return take_of_perf(record);
    if (record.type == perf::SAMPLE) return;
    if (record.type >= perf::LAST_OF_KERNEL) {
      ++unknown_[record.type];
      return;
    }
    const auto who = trailers_.read(record);
    if (!who || !take_of_kernel(record, *who)) ++malformed_;
  }

  void take_of_perf(const Record& record) {
    if (record.type == perf::AUXTRACE_INFO) return take_info(record);
    if (record.type == perf::AUXTRACE && !streams_.add(record)) ++malformed_;
    if (record.type == perf::HEADER_BUILD_ID) take_build_id(record);
  }

  bool take_of_kernel(const Record& record, const Trailer& who) {
    const base::Bytes body = record.body.first(record.body.size() - who.bytes);
    perf::Fields fields(body);
    switch (record.type) {
      case perf::MMAP:
      case perf::MMAP2:
        return take_mmap(record, fields, who);
      case perf::COMM:
        return take_comm(record, fields, who);
      case perf::FORK:
      case perf::EXIT:
        return take_fork(record, fields, who);
      case perf::AUX:
        return streams_.note({record.offset, record.type, record.misc, body, {}}, who);
      case perf::ITRACE_START: {
        const std::int64_t pid = fields.id();
        running_.push_back({time_of(who), who.cpu, pid, fields.id(), false});
        return fields.ok();
      }
      case perf::SWITCH:
      case perf::SWITCH_CPU_WIDE:
        running_.push_back(
            {time_of(who), who.cpu, who.pid, who.tid, (record.misc & perf::kMiscSwitchOut) != 0});
        return true;
      case perf::LOST:
        fields.skip(8);
        lost_ += fields.u64();
        return fields.ok();
      default:
        return true;
    }
  }

  bool take_mmap(const Record& record, perf::Fields fields, const Trailer& who) {
    Event event;
    event.type = record.type;
    event.tsc = time_of(who);
    event.pid = fields.id();
    event.tid = fields.id();
    event.address = fields.u64();
    event.size = fields.u64();
    event.file_offset = fields.u64();
    bool is_code = (record.misc & perf::kMiscMmapData) == 0;
    if (record.type == perf::MMAP2) {
      const base::Bytes where = fields.take_bytes(24);
      if ((record.misc & perf::kMiscMmapBuildId) != 0 && fields.ok() && where[0] <= 20) {
        event.build_id = hex_of(where.subspan(4, where[0]));
      }
      constexpr std::uint32_t kProtExec = 4;
      is_code = (fields.u32() & kProtExec) != 0;
      fields.skip(4);
    }
    event.text = fields.text();
    if (!fields.ok()) return false;
    // The kernel is mapped by kcore, whose ranges these are.
    if (is_code && event.pid >= 0 && event.size != 0) events_.push_back(std::move(event));
    return true;
  }

  bool take_comm(const Record& record, perf::Fields fields, const Trailer& who) {
    Event event;
    event.type = record.type;
    event.tsc = time_of(who);
    event.exec = (record.misc & perf::kMiscCommExec) != 0;
    event.pid = fields.id();
    event.tid = fields.id();
    event.text = fields.text();
    if (fields.ok()) events_.push_back(std::move(event));
    return fields.ok();
  }

  bool take_fork(const Record& record, perf::Fields fields, const Trailer& who) {
    Event event;
    event.type = record.type;
    event.tsc = time_of(who);
    event.pid = fields.id();
    event.parent_pid = fields.id();
    event.tid = fields.id();
    event.parent_tid = fields.id();
    if (fields.ok()) events_.push_back(std::move(event));
    return fields.ok();
  }

  // pid, 24 bytes of build-id (its size is the 21st), path.
  void take_build_id(const Record& record) {
    perf::Fields fields(record.body);
    fields.skip(4);
    const base::Bytes id = fields.take_bytes(24);
    if (!fields.ok()) return;
    const std::size_t size = id[20] != 0 && id[20] <= 20 ? id[20] : 20;
    binaries_.has_build_id(fields.text(), hex_of(id.first(size)));
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
    for (Event& event : events_) event.tsc = tsc_of(event.tsc);
    for (Running& one : running_) one.tsc = tsc_of(one.tsc);
    std::ranges::stable_sort(events_, {}, &Event::tsc);
    std::ranges::stable_sort(running_, {}, &Running::tsc);
    perf::Processes processes(bundle_, binaries_);
    std::map<std::int64_t, trace::Stream*> by_cpu;
    std::map<std::int64_t, trace::Stream*> by_tid;
    for (trace::Stream& stream : bundle_.streams) {
      (stream.cpu != trace::kNoId ? by_cpu[stream.cpu] : by_tid[stream.tid]) = &stream;
    }
    auto event = events_.begin();
    for (const Running& one : running_) {
      for (; event != events_.end() && event->tsc <= one.tsc; ++event) processes.take(*event);
      if (const auto stream = by_cpu.find(one.cpu); stream != by_cpu.end())
        add_switch(*stream->second, one, processes);
    }
    for (; event != events_.end(); ++event) processes.take(*event);
    for (const auto& [tid, stream] : by_tid) {
      stream->pid = pid_of(tid);
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

  [[nodiscard]] std::int64_t pid_of(std::int64_t tid) const {
    for (const Running& one : running_) {
      if (one.tid == tid && one.pid >= 0) return one.pid;
    }
    for (const Event& event : events_) {
      if (event.tid == tid) return event.pid;
    }
    return trace::kNoId;
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
    if (lost_ != 0) {
      warnings.push_back(at + "perf lost " + std::to_string(lost_) +
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
    if (std::ranges::any_of(file_.attrs(), [](const perf::Attr& attr) { return attr.has(kSampleAux); })) {
      warnings.push_back(at + "trace that lies in samples (--aux-sample) is not read.");
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
  std::vector<Event> events_;
  std::vector<Running> running_;
  std::map<std::uint32_t, std::uint64_t> unknown_;  // types, and how many
  std::uint64_t lost_ = 0;
  std::uint64_t malformed_ = 0;
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
