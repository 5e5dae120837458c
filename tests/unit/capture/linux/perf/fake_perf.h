// A fake kernel with perf's intel_pt, intel_bts and branch stacks.
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "capture/linux/perf/port.h"
#include "formats/perf_event/record.h"

namespace ptkit::capture::test {

constexpr std::uint64_t kPerfPage = 4096;
constexpr std::uint32_t kPtType = 8;
constexpr std::uint32_t kBtsType = 9;
inline const std::string kBtsFile = "/sys/bus/event_source/devices/intel_bts/type";
inline const std::string kPtFolder = "/sys/bus/event_source/devices/intel_pt/";

inline std::map<std::string, std::string> default_files() {
  std::map<std::string, std::string> files{
      {"type", "8"},
      {"nr_addr_filters", "4"},
      {"max_nonturbo_ratio", "30"},
      {"tsc_art_ratio", "250:2"},
      {"caps/psb_cyc", "1"},
      {"caps/ip_filtering", "1"},
      {"caps/mtc", "1"},
      {"caps/ptwrite", "1"},
      {"caps/power_event_trace", "0"},
      {"caps/topa_output", "1"},
      {"caps/topa_multiple_entries", "1"},
      {"caps/num_address_ranges", "4"},
      {"caps/mtc_periods", "249"},
      {"caps/cycle_thresholds", "3fff"},
      {"caps/psb_periods", "3f"},
      {"format/pt", "config:0"},
      {"format/cyc", "config:1"},
      {"format/pwr_evt", "config:4"},
      {"format/fup_on_ptw", "config:5"},
      {"format/mtc", "config:9"},
      {"format/tsc", "config:10"},
      {"format/noretcomp", "config:11"},
      {"format/ptw", "config:12"},
      {"format/branch", "config:13"},
      {"format/mtc_period", "config:14-17"},
      {"format/cyc_thresh", "config:19-22"},
      {"format/psb_period", "config:24-27"},
  };
  std::map<std::string, std::string> out;
  for (const auto& [name, text] : files) out[kPtFolder + name] = text;
  out["/proc/sys/kernel/perf_event_paranoid"] = "2";
  out["/proc/sys/kernel/perf_event_mlock_kb"] = "516";
  out["/sys/devices/system/cpu/online"] = "0-1";
  out["/proc/2/comm"] = "kthreadd";
  out["/proc/cpuinfo"] = "flags\t: fpu dtes64 bts intel_pt";
  out[kBtsFile] = "9";
  return out;
}

// State of the fake kernel. A test owns it, and scripts its events.
struct FakeKernel {
  struct Event {
    perf_event_attr attr{};
    int tid = 0;
    int cpu = 0;
    int output = -1;  // the event whose buffer it writes
    bool enabled = false;
    std::string filter;
    std::vector<std::uint64_t> inodes;   // of the files of filters
    bool runs = true;                    // the thread is on its CPU
    bool stopped = false;                // enabled, but without room: it traces no more
    bool disable_at_switch_out = false;  // `pending_disable` of the kernel

    [[nodiscard]] bool traces() const { return enabled && !stopped; }
  };
  // What the kernel does with the event of a full buffer. Some kernels wake the reader up before they disable
  // the event, and some never disable it.
  enum class OnFull { DISABLES, DISABLES_LATER, IGNORES };
  struct Buffer {
    std::vector<std::uint8_t> first;  // perf_event_mmap_page and the ring of records
    std::vector<std::uint8_t> trace;
    bool overwrite = false;
    std::uint64_t lost = 0;
    std::uint64_t unreported = 0;  // lost records that no LOST record has counted yet
    // Another record is being written: data_head moves when that one is complete.
    std::optional<std::uint64_t> nested_head;

    [[nodiscard]] perf_event_mmap_page& page() {
      return *reinterpret_cast<perf_event_mmap_page*>(first.data());
    }
  };
  struct SampleId {
    std::uint64_t time = 0;
    int pid = 0;
    int tid = 0;
  };

  std::map<std::string, std::string> files = default_files();
  std::map<int, std::vector<int>> threads;
  std::deque<Event> events;
  std::map<int, Buffer> buffers;  // by mapped event
  // Errors to return from open() and map(); 0: none.
  std::function<int(const perf_event_attr&, int tid, int cpu)> open_error;
  std::function<int(std::uint64_t bytes, bool writable)> map_error;
  std::map<unsigned long, int> errors;  // by ioctl number
  // wait() runs the next step while tracing is on.
  std::vector<std::function<void(FakeKernel&)>> script;
  std::size_t next = 0;
  std::vector<unsigned long> requests;  // ioctl numbers for tracing events
  bool has_time = true;
  std::uint64_t now = 0;  // time of the next AUX record
  OnFull when_full = OnFull::DISABLES;
  std::set<int> hung_up;    // events with POLLHUP
  std::vector<int> polled;  // files of the last wait()
  std::uint64_t closed = 0;
  std::function<void()> on_end;  // when the port is destroyed

  // Whether the event traces: intel_pt, intel_bts, or cycles with branch stacks.
  [[nodiscard]] static bool is_tracing(const Event& event) {
    return event.attr.type == kPtType || event.attr.type == kBtsType || event.attr.type == PERF_TYPE_HARDWARE;
  }

  [[nodiscard]] std::vector<const Event*> of_type(std::uint32_t type) const {
    std::vector<const Event*> out;
    for (const Event& event : events) {
      if (event.attr.type == type) out.push_back(&event);
    }
    return out;
  }

  // The buffer of a CPU.
  [[nodiscard]] Buffer& buffer(int cpu) {
    for (auto& [number, one] : buffers) {
      if (events[static_cast<std::size_t>(number)].cpu == cpu) return one;
    }
    throw std::out_of_range("no buffer");
  }

  [[nodiscard]] Event& tracing_event(int cpu) {
    return *std::find_if(events.begin(), events.end(),
                         [&](const Event& one) { return is_tracing(one) && one.cpu == cpu; });
  }

  static void store(std::vector<std::uint8_t>& ring, std::uint64_t from, std::uint64_t offset,
                    const std::vector<std::uint8_t>& bytes) {
    const std::uint64_t size = ring.size() - from;
    for (std::size_t i = 0; i < bytes.size(); ++i) ring[from + (offset + i) % size] = bytes[i];
  }

  static void put(std::vector<std::uint8_t>& out, std::uint64_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) out.push_back(static_cast<std::uint8_t>(value >> 8 * i));
  }

  // Writes a record with its trailer, if the ring has room.
  void write_record(int cpu, std::uint32_t type, std::uint16_t misc, const SampleId& id,
                    std::vector<std::uint8_t> body) {
    Buffer& to = buffer(cpu);
    while (body.size() % 8 != 0) body.push_back(0);
    put(body, static_cast<std::uint32_t>(id.pid), 4);
    put(body, static_cast<std::uint32_t>(id.tid), 4);
    put(body, id.time, 8);
    put(body, static_cast<std::uint32_t>(cpu), 8);
    put(body, 0, 8);  // the event's identifier
    write_raw_record(to, type, misc, body);
  }

  // The event of a trigger fires.
  void fire(int event) { fire(event, SampleId()); }
  void fire(int event, const SampleId& id) {
    const Event& one = events[static_cast<std::size_t>(event)];
    if (!one.enabled) return;
    std::vector<std::uint8_t> body;
    put(body, identifier(event), 8);
    put(body, static_cast<std::uint32_t>(id.pid), 4);
    put(body, static_cast<std::uint32_t>(id.tid), 4);
    put(body, id.time, 8);
    put(body, static_cast<std::uint32_t>(one.cpu), 8);
    write_raw_record(buffers.at(one.output), formats::perf::SAMPLE, 0, body);
  }
  static std::uint64_t identifier(int event) { return 1000 + static_cast<std::uint64_t>(event); }
  [[nodiscard]] int last_of_type(std::uint32_t type) const {
    int found = -1;
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (events[i].attr.type == type) found = static_cast<int>(i);
    }
    return found;
  }

  // A LOST record, which precedes the next record that fits.
  static std::vector<std::uint8_t> lost_record(std::uint64_t count) {
    std::vector<std::uint8_t> out;
    put(out, formats::perf::LOST, 4);
    put(out, 0, 2);
    put(out, 8 + 16 + 32, 2);
    put(out, 0, 8);
    put(out, count, 8);
    out.resize(out.size() + 32);  // TID, TIME, CPU, IDENTIFIER
    return out;
  }

  static void write_raw_record(Buffer& to, std::uint32_t type, std::uint16_t misc,
                               const std::vector<std::uint8_t>& body) {
    std::vector<std::uint8_t> record;
    put(record, type, 4);
    put(record, misc, 2);
    put(record, body.size() + 8, 2);
    record.insert(record.end(), body.begin(), body.end());
    perf_event_mmap_page& page = to.page();
    if (to.unreported != 0) {
      const std::vector<std::uint8_t> lost = lost_record(to.unreported);
      record.insert(record.begin(), lost.begin(), lost.end());
    }
    const std::uint64_t head = to.nested_head.value_or(page.data_head);
    if (head - page.data_tail + record.size() > to.first.size() - kPerfPage) {
      ++to.lost;
      ++to.unreported;
      return;
    }
    to.unreported = 0;
    store(to.first, kPerfPage, head, record);
    if (to.nested_head)
      to.nested_head = head + record.size();
    else
      __atomic_store_n(&page.data_head, head + record.size(), __ATOMIC_RELEASE);
  }

  // The interrupt of the trace unit comes while another record is being written: the records of this
  // interrupt become readable when that one is complete (perf_output_put_handle()).
  void begin_nested(int cpu) { buffer(cpu).nested_head = buffer(cpu).page().data_head; }
  void end_nested(int cpu) {
    Buffer& to = buffer(cpu);
    __atomic_store_n(&to.page().data_head, to.nested_head.value(), __ATOMIC_RELEASE);
    to.nested_head.reset();
  }

  // The trace unit writes until the buffer is full, or overwrites.
  void write(int cpu, const std::vector<std::uint8_t>& bytes, std::uint64_t flags = 0) {
    write_of(tracing_event(cpu), bytes, flags);
  }

  void write_of(Event& event, const std::vector<std::uint8_t>& bytes, std::uint64_t flags = 0) {
    if (!event.traces()) return;
    Buffer& to = buffer(event.cpu);
    perf_event_mmap_page& page = to.page();
    const std::uint64_t room =
        to.overwrite ? bytes.size() : to.trace.size() - (page.aux_head - page.aux_tail);
    const std::uint64_t count = std::min<std::uint64_t>(room, bytes.size());
    store(to.trace, 0, page.aux_head, {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count)});
    if (count < bytes.size()) {
      flags |= PERF_AUX_FLAG_TRUNCATED;
      fill_up(event);
    }
    std::uint64_t head = page.aux_head + count;
    if (to.overwrite) head %= to.trace.size();
    write_aux_record(event.cpu, {now, event.tid, event.tid}, count, head, flags);
  }

  // A thread is switched in and out. Without room at the switch in, nothing is recorded, and the event is
  // disabled at the switch out after the next traced run.
  void run(Event& event, const std::vector<std::uint8_t>& bytes) {
    event.runs = false;
    if (!event.traces()) return;
    Buffer& to = buffer(event.cpu);
    if (to.page().aux_head - to.page().aux_tail == to.trace.size()) {
      event.disable_at_switch_out = true;
      return;
    }
    write_of(event, bytes);
    if (std::exchange(event.disable_at_switch_out, false)) event.enabled = false;
  }

  void fill_up(Event& event) const {
    event.enabled = when_full != OnFull::DISABLES;
    event.stopped = event.enabled;
    event.disable_at_switch_out = when_full == OnFull::DISABLES_LATER;
  }
  // Writes the AUX record of `count` bytes, then moves aux_head.
  void write_aux_record(int cpu, const SampleId& id, std::uint64_t count, std::uint64_t head,
                        std::uint64_t flags) {
    Buffer& to = buffer(cpu);
    perf_event_mmap_page& page = to.page();
    if (to.overwrite) flags |= PERF_AUX_FLAG_OVERWRITE;
    std::vector<std::uint8_t> body;
    put(body, to.overwrite ? head : page.aux_head, 8);
    put(body, count, 8);
    put(body, flags, 8);
    write_record(cpu, formats::perf::AUX, 0, id, body);
    __atomic_store_n(&page.aux_head, head, __ATOMIC_RELEASE);
  }
};

class FakePerf : public PerfPort {
 public:
  explicit FakePerf(FakeKernel& kernel) : kernel_(kernel) {}
  FakePerf(const FakePerf&) = delete;
  FakePerf& operator=(const FakePerf&) = delete;
  ~FakePerf() override {
    if (kernel_.on_end) kernel_.on_end();
  }

  int open(perf_event_attr& attr, int tid, int cpu) override {
    if (kernel_.open_error) {
      if (const int error = kernel_.open_error(attr, tid, cpu); error != 0) return -error;
    }
    kernel_.events.push_back({attr, tid, cpu, -1, attr.disabled == 0, {}, {}});
    return static_cast<int>(kernel_.events.size() - 1);
  }
  void close(int event) override {
    kernel_.events[static_cast<std::size_t>(event)].attr.type = ~0U;
    ++kernel_.closed;
  }

  int request(int event, unsigned long number, std::uintptr_t argument) override {
    FakeKernel::Event& one = kernel_.events[static_cast<std::size_t>(event)];
    if (kernel_.is_tracing(one)) kernel_.requests.push_back(number);
    if (const auto error = kernel_.errors.find(number); error != kernel_.errors.end()) return error->second;
    switch (number) {
      case PERF_EVENT_IOC_ENABLE:
        one.enabled = true;  // no effect on an enabled event
        return 0;
      case PERF_EVENT_IOC_DISABLE:
        one.enabled = one.stopped = false;
        one.disable_at_switch_out = one.disable_at_switch_out && !one.runs;
        return 0;
      case PERF_EVENT_IOC_SET_FILTER:
        if (kernel_.is_tracing(one) && !makes_sense(reinterpret_cast<const char*>(argument))) return EINVAL;
        one.inodes.clear();
        one.filter = with_files(reinterpret_cast<const char*>(argument), one.inodes);
        return 0;
      case PERF_EVENT_IOC_ID:
        *reinterpret_cast<std::uint64_t*>(argument) = FakeKernel::identifier(event);
        return 0;
      case PERF_EVENT_IOC_SET_OUTPUT:
        return set_output(one, static_cast<int>(argument));
      default:
        return ENOTTY;
    }
  }

  Mapped map(int event, std::uint64_t offset, std::uint64_t bytes, bool writable) override {
    if (kernel_.map_error) {
      if (const int error = kernel_.map_error(bytes, writable); error != 0) return {{}, error};
    }
    if (offset == 0) return map_records(event, bytes);
    const auto at = kernel_.buffers.find(event);
    if (at == kernel_.buffers.end()) return {{}, EINVAL};
    FakeKernel::Buffer& buffer = at->second;
    const perf_event_mmap_page& page = buffer.page();
    const std::uint64_t pages = bytes / kPerfPage;
    if (page.aux_offset != offset || page.aux_size != bytes || (pages & (pages - 1)) != 0)
      return {{}, EINVAL};
    buffer.trace.assign(bytes, 0);
    buffer.overwrite = !writable;
    return {buffer.trace, 0};
  }

  void unmap(std::span<std::uint8_t> bytes) override {
    std::erase_if(kernel_.buffers, [&](const auto& one) { return one.second.first.data() == bytes.data(); });
  }

  std::vector<int> wait(std::span<const int> files, std::chrono::milliseconds limit) override {
    kernel_.polled.assign(files.begin(), files.end());
    for (FakeKernel::Event& event : kernel_.events) {
      if (!event.runs || !std::exchange(event.disable_at_switch_out, false)) continue;
      event.enabled = event.stopped = false;
    }
    if (kernel_.next < kernel_.script.size())
      kernel_.script[kernel_.next++](kernel_);
    else
      std::this_thread::sleep_for(std::min(limit, std::chrono::milliseconds(5)));
    std::vector<int> out;
    for (const int file : files) {
      if (kernel_.hung_up.count(file) != 0) out.push_back(file);
    }
    return out;
  }

  [[nodiscard]] std::optional<std::string> read(const std::string& path) const override {
    const auto at = kernel_.files.find(path);
    return at == kernel_.files.end() ? std::nullopt : std::optional(at->second);
  }

  [[nodiscard]] std::vector<int> threads(int pid) const override {
    const auto at = kernel_.threads.find(pid);
    return at == kernel_.threads.end() ? std::vector<int>{pid} : at->second;
  }

 private:
  // Filter syntax: words end at blanks, commas and new lines.
  static bool makes_sense(const std::string& text) {
    bool is_range = false;
    for (std::size_t at = 0; at < text.size(); is_range = !is_range) {
      const std::size_t end = std::min(text.find_first_of(" ,\n", at), text.size());
      if ((text.substr(at, 2) == "0x") != is_range) return false;
      at = end + 1;
    }
    return !is_range;
  }
  // The kernel resolves files in the ioctl.
  static std::string with_files(std::string text, std::vector<std::uint64_t>& inodes) {
    const std::string folder = "/proc/self/fd/";
    for (std::size_t at = 0; (at = text.find('@' + folder, at)) != std::string::npos;) {
      const std::size_t end = std::min(text.find(',', ++at), text.size());
      const std::string path = text.substr(at, end - at);
      struct stat file {};
      if (::stat(path.c_str(), &file) == 0) inodes.push_back(file.st_ino);
      text.replace(at, end - at, std::filesystem::read_symlink(path).string());
    }
    return text;
  }

  // The kernel lets events of one CPU or one thread share a buffer.
  int set_output(FakeKernel::Event& event, int to) {
    const FakeKernel::Event& other = kernel_.events[static_cast<std::size_t>(to)];
    if (event.cpu != other.cpu || (event.cpu < 0 && event.tid != other.tid)) return EINVAL;
    if (kernel_.buffers.count(to) == 0) return EINVAL;
    event.output = to;
    return 0;
  }

  Mapped map_records(int event, std::uint64_t bytes) {
    const FakeKernel::Event& one = kernel_.events[static_cast<std::size_t>(event)];
    const std::uint64_t pages = bytes / kPerfPage - 1;
    if ((pages & (pages - 1)) != 0 || (one.cpu < 0 && one.attr.inherit != 0)) return {{}, EINVAL};
    FakeKernel::Buffer& buffer = kernel_.buffers[event];
    buffer.first.assign(bytes, 0);
    perf_event_mmap_page& page = buffer.page();
    page.data_offset = kPerfPage;
    page.data_size = bytes - kPerfPage;
    page.cap_user_time_zero = kernel_.has_time ? 1 : 0;
    page.time_mult = 1;  // nanoseconds are ticks
    return {buffer.first, 0};
  }

  FakeKernel& kernel_;
};

inline OpenPerf perf_opener(FakeKernel& kernel) {
  return [&kernel]() -> std::unique_ptr<PerfPort> { return std::make_unique<FakePerf>(kernel); };
}

}  // namespace ptkit::capture::test
