// LLDB's trace bundles: a JSON document that lists raw streams (per thread or per CPU), modules and context
// switches.
#include <algorithm>
#include <map>

#include "base/addresses.h"
#include "base/ascii.h"
#include "base/hexadecimal.h"
#include "base/shortened.h"
#include "code/image/elf/elf.h"
#include "formats/common/files.h"
#include "formats/common/json.h"
#include "formats/common/missing_files.h"
#include "formats/common/readers.h"
#include "formats/perf_event/switch_record.h"
#include "trace/clock.h"
#include "trace/warning_codes.h"

namespace ptkit::formats {

using trace::WarningCode;

namespace {

constexpr std::uint64_t kDefaultKernelAddress = 0xffffffff81000000;
using base::kPageBytes;
// CPUID leaf 1: the display family has at most 0xf + 0xff, the display model 8 bits.
constexpr std::uint64_t kMaxFamily = 0x10e;
constexpr std::uint64_t kMaxModel = 0xff;
constexpr std::uint64_t kMaxStepping = 0xf;

using Member = JsonReader::Member;

std::string document_path(const std::string& path) {
  return is_folder(path) ? join(path, "trace.json") : path;
}

bool sniff_lldb(const std::string& path) {
  if (is_folder(path)) return is_file(join(path, "trace.json"));
  const std::string head = first_bytes(path, 64);
  const auto first = head.find_first_not_of(" \t\r\n");
  return first != std::string::npos && head[first] == '{';
}

// Build-ids are written with dashes and in upper case.
std::string plain_uuid(const std::string& uuid) {
  std::string plain;
  for (const char c : uuid) {
    if (c != '-') plain += base::ascii_lower(c);
  }
  return plain;
}

class LldbLoader {
 public:
  explicit LldbLoader(const std::string& document)
      : document_(document), folder_(parent_folder(document)), own_(folder_), json_(document) {}

  base::Result<trace::TraceBundle> load() {
    auto text = trace::TraceBuffer::map_file(document_);
    if (!text.ok()) return text.failure();
    auto parsed = parse_json(document_, text.value().bytes());
    if (!parsed.ok()) return parsed.failure();
    const Member root = json_.root(parsed.value());
    root.expect_object();
    if (const auto type = root["type"].text(); type != "intel-pt") {
      root["type"].fail("expected \"intel-pt\", found \"" + base::shortened(type) + "\"");
    }
    read_cpu(root["cpuInfo"]);
    read_clock(root);
    read_processes(root["processes"]);
    if (root["cpus"].present()) read_cpus(root["cpus"]);
    if (root["kernel"].present()) read_kernel(root);
    if (!json_.failure() && bundle_.streams.empty())
      root.fail("contains no Intel PT data (no thread has a member iptTrace, and there is no member cpus)");
    if (json_.failure()) return *json_.failure();
    list_missing_files(bundle_, missing_);
    list_outside_files(bundle_, outside_);
    return std::move(bundle_);
  }

 private:
  void add(const trace::Warning& warning, const Member& member) {
    bundle_.warnings.push_back(warning.at(document_ + ": " + member.path()));
  }

  void read_cpu(const Member& cpu) {
    cpu.expect_object();
    const std::string vendor = cpu["vendor"].text();
    const auto family = cpu["family"].number();
    const auto model = cpu["model"].number();
    const auto stepping = cpu["stepping"].number();
    auto& out = bundle_.configuration.cpu;
    out.intel = vendor == "GenuineIntel";
    if (family > kMaxFamily || model > kMaxModel || stepping > kMaxStepping) {
      bundle_.warnings.push_back(warn(WarningCode::LLDB_CPU_INVALID, family, model, stepping).at(document_));
      return;
    }
    out.known = true;
    out.family = static_cast<std::uint16_t>(family);
    out.model = static_cast<std::uint16_t>(model);
    out.stepping = static_cast<std::uint8_t>(stepping);
  }

  void read_clock(const Member& root) {
    const Member conversion = root["tscPerfZeroConversion"];
    if (!conversion.present()) {
      if (root["cpus"].present())
        conversion.fail("is missing; a bundle with cpus needs it to align context switches");
      return;
    }
    auto& clock = bundle_.configuration.clock;
    clock.time_mult = static_cast<std::uint32_t>(conversion["timeMult"].number(0xffffffff));
    clock.time_shift = static_cast<std::uint16_t>(conversion["timeShift"].number(63));
    clock.time_zero = conversion["timeZero"].wide_number();
    clock.perf_time_known = true;
    if (clock.time_mult == 0) conversion["timeMult"].fail("expected a number above 0");
  }

  void read_processes(const Member& processes) {
    for (std::size_t i = 0; i < processes.size() && !json_.failure(); ++i) {
      const Member process = processes.at(i);
      process.expect_object();
      const std::int64_t pid = process["pid"].signed_number();
      const auto space = static_cast<trace::SpaceId>(bundle_.spaces.size());
      bundle_.spaces.push_back({pid, 0, false});
      spaces_[pid] = space;
      const Member threads = process["threads"];
      for (std::size_t t = 0; t < threads.size(); ++t) read_thread(threads.at(t), pid, space);
      const Member modules = process["modules"];
      for (std::size_t m = 0; m < modules.size() && !json_.failure(); ++m) read_module(modules.at(m), space);
    }
  }

  void read_thread(const Member& thread, std::int64_t pid, trace::SpaceId space) {
    thread.expect_object();
    const std::int64_t tid = thread["tid"].signed_number();
    bundle_.threads.push_back({pid, tid, ""});
    if (!thread["iptTrace"].present()) return;
    trace::Stream stream;
    stream.name = "thread " + std::to_string(tid);
    stream.pid = pid;
    stream.tid = tid;
    stream.space = space;
    stream.data = member_file(thread["iptTrace"]);
    const std::string file = thread["iptTrace"].text();
    if (std::find(trace_files_.begin(), trace_files_.end(), file) != trace_files_.end()) {
      add(warn(WarningCode::LLDB_TRACE_SHARED, file), thread["iptTrace"]);
    }
    trace_files_.push_back(file);
    bundle_.streams.push_back(std::move(stream));
  }

  void read_module(const Member& module, trace::SpaceId space) {
    module.expect_object();
    const std::string system_path = module["systemPath"].text();
    const Member address = module["loadAddress"];
    code::image::Placement placement;
    placement.load_address = address.wide_number();
    placement.space = space;
    if (*placement.load_address % kPageBytes != 0) {
      address.fail("expected a multiple of 4096, found " + base::hexadecimal(*placement.load_address));
    }
    if (json_.failure()) return;
    const std::string name = module["file"].present() ? module["file"].text() : system_path;
    const auto file = add_module_file(join(folder_, name), system_path, placement);
    if (file < 0) return;
    const trace::ImageFile& image = bundle_.files[static_cast<std::size_t>(file)];
    const bool is_known = module["uuid"].present() && check_uuid(module["uuid"], image);
    if (!is_known) note_outside(image.path, OutsideUse::CODE);
  }

  // A missing module keeps its name, so that errors can name it.
  std::int32_t add_module_file(const std::string& path, const std::string& system_path,
                               const code::image::Placement& placement) {
    auto added = code::image::add_elf(bundle_, path, placement);
    if (added.ok()) return added.value();
    missing_.push_back({.path = system_path, .reason = added.failure().detail});
    bundle_.files.push_back({system_path, "", {}, {}});
    return -1;
  }

  // Returns true if the build-ids show that the file is the recorded one.
  bool check_uuid(const Member& member, const trace::ImageFile& file) {
    const std::string expected = plain_uuid(member.text());
    if (expected.empty() || file.build_id.empty()) return false;
    if (expected == file.build_id) return true;
    add(warn(WarningCode::BUILD_ID_MISMATCH, file.path, file.build_id, expected), member);
    return false;
  }

  void note_outside(const std::string& path, OutsideUse use) {
    if (own_.is_outside(path)) outside_.push_back({path, use});
  }

  void read_cpus(const Member& cpus) {
    for (std::size_t i = 0; i < cpus.size() && !json_.failure(); ++i) {
      const Member cpu = cpus.at(i);
      cpu.expect_object();
      trace::Stream stream;
      stream.cpu = cpu["id"].signed_number();
      stream.name = "cpu " + std::to_string(stream.cpu);
      stream.data = member_file(cpu["iptTrace"]);
      const auto switches = member_file(cpu["contextSwitchTrace"]);
      if (json_.failure()) return;
      add_switches(cpu["contextSwitchTrace"], switches.bytes(), stream);
      bundle_.streams.push_back(std::move(stream));
    }
  }

  void add_switches(const Member& member, base::Bytes records, trace::Stream& stream) {
    const PerfSwitches switches = read_perf_switches(records);
    if (switches.damaged_offset) {
      add(warn(WarningCode::SWITCHES_CUT, *switches.damaged_offset, records.size()), member);
    }
    bool ordered = true;
    for (const PerfSwitch& one : switches.records) {
      trace::Switch out;
      out.tsc = trace::perf_tsc_from_ns(bundle_.configuration.clock, one.time_ns);
      out.departure = one.departure;
      if (!one.out && one.tid != 0) {  // thread 0 is the idle task
        out.pid = one.pid;
        out.tid = one.tid;
        const auto space = spaces_.find(out.pid);
        if (space != spaces_.end()) out.space = space->second;
      }
      ordered = ordered && (stream.switches.empty() || stream.switches.back().tsc <= out.tsc);
      stream.switches.push_back(out);
    }
    if (ordered) return;
    add(warn(WarningCode::SWITCHES_UNSORTED), member);
    std::stable_sort(stream.switches.begin(), stream.switches.end(),
                     [](const trace::Switch& a, const trace::Switch& b) { return a.tsc < b.tsc; });
  }

  void read_kernel(const Member& root) {
    const Member kernel = root["kernel"];
    if (!root["cpus"].present()) kernel.fail("needs cpus: a kernel is traced per CPU");
    if (!spaces_.empty()) root["processes"].fail("must be empty in the bundle of a kernel");
    code::image::Placement placement;
    placement.load_address =
        kernel["loadAddress"].present() ? kernel["loadAddress"].wide_number() : kDefaultKernelAddress;
    const std::string file = kernel["file"].text();
    if (json_.failure()) return;
    const std::string path = join(folder_, file);
    if (add_module_file(path, file, placement) >= 0) note_outside(path, OutsideUse::CODE);
  }

  trace::TraceBuffer member_file(const Member& member) {
    const std::string name = member.text();
    if (json_.failure()) return {};
    const std::string path = join(folder_, name);
    auto data = trace::TraceBuffer::map_file(path);
    if (data.ok()) {
      note_outside(path, OutsideUse::TRACE);
      return std::move(data.value());
    }
    member.fail(data.failure().detail);
    return {};
  }

  std::string document_;
  std::string folder_;
  RecordingFolder own_;
  JsonReader json_;
  trace::TraceBundle bundle_;
  std::vector<MissingFile> missing_;
  std::vector<OutsideFile> outside_;
  std::map<std::int64_t, trace::SpaceId> spaces_;  // by pid
  std::vector<std::string> trace_files_;
};

base::Result<trace::TraceBundle> read_lldb(const std::string& path, const OpenOptions&) {
  return LldbLoader(document_path(path)).load();
}

}  // namespace

const Format kLldbFormat{
    .name = "lldb",
    .description = "an LLDB trace bundle (trace.json with its files)",
    .sniff = &sniff_lldb,
    .read = &read_lldb,
    .names_files = true,
};

}  // namespace ptkit::formats
