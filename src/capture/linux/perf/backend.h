// The perf events of one recording: the threads and CPUs they are opened for, their filters and buffers.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "capture/linux/perf/branches.h"
#include "capture/linux/perf/buffer.h"
#include "capture/linux/perf/config.h"
#include "capture/linux/perf/process_tree.h"
#include "capture/linux/session/backend.h"

namespace ptkit::capture {

// pid or cpu of perf_event_open(2): all threads, or all CPUs.
inline constexpr int kAll = -1;

class PerfBackend : public HardwareBackend {
 public:
  explicit PerfBackend(OpenPerf open) : open_(std::move(open)) {}

  [[nodiscard]] const char* name() const noexcept override { return "perf"; }
  [[nodiscard]] Problem prepare(const RecordOptions& options, std::vector<trace::Warning>& warnings) override;
  [[nodiscard]] Problem configure(int pid, const std::vector<ResolvedFilter>& filters) override;
  [[nodiscard]] Problem set_breakpoints(const std::vector<Breakpoint>& breakpoints, int pid) override;
  [[nodiscard]] Problem enable_breakpoints() override;
  [[nodiscard]] std::vector<std::uint32_t> take_fired() override { return std::exchange(fired_, {}); }
  [[nodiscard]] std::vector<trace::Stream> streams() const override;
  void set_stream(std::size_t index, std::uint32_t stream) override { buffers_[index].set_stream(stream); }
  [[nodiscard]] trace::Configuration configuration() const override;
  [[nodiscard]] bool has_sideband() const noexcept override { return true; }
  [[nodiscard]] bool start_changes_kernel_code() const noexcept override { return false; }
  [[nodiscard]] bool reports_kernel_code() const noexcept override { return reports_kernel_code_; }

  [[nodiscard]] Problem start() override;
  [[nodiscard]] Problem pause() override;
  [[nodiscard]] Problem resume() override;
  void stop() override;
  [[nodiscard]] Problem drain(BundleOutput& output, std::vector<SidebandRecord>& records) override;
  [[nodiscard]] Problem collect(BundleOutput& output, std::vector<SidebandRecord>& records) override;
  void wait(int handle, bool paused, std::chrono::milliseconds limit) override;
  [[nodiscard]] std::vector<trace::Warning> warnings() const override;
  [[nodiscard]] std::uint64_t trace_bytes() const noexcept override;
  [[nodiscard]] std::uint64_t lost_records() const noexcept override;
  [[nodiscard]] bool failed() const noexcept override { return false; }

 private:
  // A tracing event, for one thread and CPU; kAll: all of them.
  struct Opened {
    int event = -1;
    int tid = -1;
    int cpu = -1;
    bool secondary = false;  // not the first event of this thread and CPU (hybrid processors)
    std::size_t buffer = 0;  // index of the buffer that the event writes
  };

  [[nodiscard]] Problem prepare_packets(std::vector<trace::Warning>& warnings);
  [[nodiscard]] Problem prepare_branches();
  [[nodiscard]] bool records(Recorded what) const noexcept { return options_.recorded() == what; }
  [[nodiscard]] PerfScope scope() const;
  [[nodiscard]] PerfBuffer::Sizes sizes_of(std::size_t attempt) const;
  [[nodiscard]] bool fits_memory(std::size_t attempt) const;
  [[nodiscard]] std::uint64_t trailer() const;
  [[nodiscard]] Problem open_all(int pid);
  [[nodiscard]] Problem open_threads(int pid);
  [[nodiscard]] Problem open_one(int tid, int cpu, bool may_be_inherited);
  void warn_of_small_buffers(std::uint64_t bytes, bool locked);
  void warn_of_untraced_threads();
  void warn_of_new_cpus();
  [[nodiscard]] Problem open_event(perf_event_attr attr, int tid, int cpu, bool may_be_inherited);
  [[nodiscard]] Problem set_filters(const std::vector<ResolvedFilter>& filters);
  void close_all();
  [[nodiscard]] std::size_t count_buffers() const;
  [[nodiscard]] int map_buffers();
  [[nodiscard]] Problem redirect_to_buffers();
  [[nodiscard]] Problem set_output(int event, const PerfBuffer& buffer);
  [[nodiscard]] Problem open_sideband();
  [[nodiscard]] Problem open_dummy_for(const Opened& one, bool switches);
  void restart_at_exec(const Opened& one);
  [[nodiscard]] Problem open_kernel_sideband();
  [[nodiscard]] Problem open_breakpoint(const perf_event_attr& attr, const Opened& one,
                                        const Breakpoint& breakpoint);
  void on_fired_event(const FiredEvent& hit);
  [[nodiscard]] Problem request_all(unsigned long number, const char* what);
  [[nodiscard]] Problem drain_one(std::size_t buffer, BundleOutput& output,
                                  std::vector<SidebandRecord>& records);
  [[nodiscard]] Problem restart_if_full(std::size_t buffer, BundleOutput& output,
                                        std::vector<SidebandRecord>& records);
  void request_writers(std::size_t buffer, unsigned long number);

  OpenPerf open_;
  std::unique_ptr<PerfPort> port_;
  RecordOptions options_;
  PerfPmu pmu_;
  trace_unit::msr::PerfEvent event_;  // PACKETS
  perf_event_attr attr_{};            // of the tracing events
  std::vector<CoreKind> cores_;       // LBR
  int pid_ = 0;
  bool running_ = false;
  std::uint64_t free_bytes_ = 0;  // MemAvailable; 0: not known
  std::vector<ResolvedFilter> filters_;
  PerfBuffer::Sizes sizes_;
  std::vector<Opened> opened_;
  std::vector<int> sideband_events_;  // dummy events: their records are the sideband
  std::vector<int> breakpoint_events_;
  std::map<std::uint64_t, Breakpoint> triggers_;  // by event ID (PERF_EVENT_IOC_ID)
  ProcessTree process_tree_;
  std::vector<FiredEvent> unresolved_events_;  // since the last drain()
  std::vector<std::uint32_t> fired_;           // triggers, since take_fired()
  std::vector<PerfBuffer> buffers_;
  std::vector<std::vector<int>> writers_;  // by buffer: events that may still write it
  std::set<int> busy_threads_;             // threads that another tracer traces
  bool reports_kernel_code_ = false;
  bool threads_missed_ = false;  // threads began faster than open_threads() found them
  bool warned_of_exec_ = false;  // restart_at_exec() has warned
  std::vector<trace::Warning> warnings_;
};

}  // namespace ptkit::capture
