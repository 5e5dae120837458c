// The events of one recording by perf: which are opened for whom, their filters, and their buffers.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "capture/perf_branches.h"
#include "capture/perf_buffer.h"
#include "capture/perf_config.h"
#include "capture/perf_family.h"
#include "capture/trace_units.h"

namespace ptkit::capture {

class PerfUnits : public TraceUnits {
 public:
  explicit PerfUnits(OpenPerf open) : open_(std::move(open)) {}

  [[nodiscard]] const char* name() const noexcept override { return "perf"; }
  [[nodiscard]] Problem prepare(const RecordOptions& options, std::vector<std::string>& warnings) override;
  [[nodiscard]] Problem configure(int pid, const std::vector<FilterPlace>& filters) override;
  [[nodiscard]] Problem watch(const std::vector<WatchPlace>& places, int pid) override;
  [[nodiscard]] Problem notice() override;
  [[nodiscard]] std::vector<std::uint32_t> take_hits() override { return std::exchange(hits_, {}); }
  [[nodiscard]] std::vector<trace::Stream> streams() const override;
  void set_stream(std::size_t index, std::uint32_t stream) override { buffers_[index].set_stream(stream); }
  [[nodiscard]] trace::Configuration configuration() const override;
  [[nodiscard]] bool tells() const noexcept override { return true; }
  [[nodiscard]] bool tells_at_once() const noexcept override { return true; }

  [[nodiscard]] Problem start() override;
  [[nodiscard]] Problem pause() override;
  [[nodiscard]] Problem resume() override;
  void stop() override;
  [[nodiscard]] Problem drain(BundleOutput& output, std::vector<ToldRecord>& records) override;
  [[nodiscard]] Problem collect(BundleOutput& output, std::vector<ToldRecord>& records) override;
  void wait(int handle, bool paused, std::chrono::milliseconds limit) override;
  [[nodiscard]] std::vector<std::string> warnings() const override;
  [[nodiscard]] std::uint64_t trace_bytes() const noexcept override;
  [[nodiscard]] std::uint64_t lost_records() const noexcept override;
  [[nodiscard]] bool failed() const noexcept override { return false; }

 private:
  // An event that traces: one for each thread and processor, -1 for all or any.
  struct Opened {
    int event = -1;
    int tid = -1;
    int cpu = -1;
    bool again = false;      // there is one before for this thread and processor
    std::size_t buffer = 0;  // that it writes
  };

  [[nodiscard]] Problem prepare_packets(std::vector<std::string>& warnings);
  [[nodiscard]] Problem prepare_branches();
  [[nodiscard]] bool records(Recorded what) const noexcept { return options_.hardware.recorded == what; }
  [[nodiscard]] PerfScope scope() const;
  [[nodiscard]] PerfBuffer::Sizes sizes_of(std::size_t attempt) const;
  [[nodiscard]] bool fits(std::size_t attempt) const;
  [[nodiscard]] std::string why_smaller(bool locked) const;
  [[nodiscard]] perf_event_attr dummy() const;
  [[nodiscard]] Problem open_all(int pid);
  [[nodiscard]] Problem open_threads(int pid);
  [[nodiscard]] Problem open_one(int tid, int cpu, bool may_be_followed);
  void tell_who_is_missing();
  void tell_of_new_cpus();
  [[nodiscard]] Problem open_event(perf_event_attr attr, int tid, int cpu, bool may_be_followed);
  [[nodiscard]] Problem set_filters(const std::vector<FilterPlace>& filters);
  void close_all();
  [[nodiscard]] std::size_t count_buffers() const;
  [[nodiscard]] int map_buffers();
  [[nodiscard]] Problem share_buffers();
  [[nodiscard]] Problem send_to(int event, const PerfBuffer& buffer);
  [[nodiscard]] Problem open_sideband();
  [[nodiscard]] Problem open_dummy_for(const Opened& one, bool switches);
  [[nodiscard]] int open_dummy(perf_event_attr attr, int tid, int cpu);
  void restart_at_exec(const Opened& one);
  [[nodiscard]] Problem open_kernel_sideband();
  [[nodiscard]] Problem watch_for(const perf_event_attr& attr, const Opened& one, const WatchPlace& place);
  void take_hit(const PerfHit& hit);
  [[nodiscard]] Problem tell(unsigned long number, const char* what);
  [[nodiscard]] Problem drain_one(std::size_t buffer, BundleOutput& output, std::vector<ToldRecord>& records);
  [[nodiscard]] Problem go_on(std::size_t buffer, BundleOutput& output, std::vector<ToldRecord>& records);
  void tell_writers(std::size_t buffer, unsigned long number);

  OpenPerf open_;
  std::unique_ptr<PerfPort> port_;
  RecordOptions options_;
  PerfUnit unit_;
  rtit::PerfEvent event_;        // PACKETS
  perf_event_attr attr_{};       // what is opened
  std::vector<CoreKind> cores_;  // STACKS
  int pid_ = 0;
  bool running_ = false;
  std::uint64_t free_bytes_ = 0;  // of the machine's memory; 0: not known
  std::vector<FilterPlace> filters_;
  PerfBuffer::Sizes sizes_;
  std::vector<Opened> opened_;
  std::vector<int> dummies_;
  std::vector<int> watches_;                      // events of triggers
  std::map<std::uint64_t, WatchPlace> triggers_;  // by what the kernel calls their events
  PerfFamily family_;
  std::vector<PerfHit> happened_;    // since the last time
  std::vector<std::uint32_t> hits_;  // of triggers
  std::vector<PerfBuffer> buffers_;
  std::vector<std::vector<int>> writers_;  // events of each buffer whose threads may not have ended
  std::set<int> busy_;                     // threads that somebody else traces
  bool too_fast_ = false;                  // threads begin faster than they are found
  bool exec_told_ = false;                 // that another program may not be told apart
  std::vector<std::string> warnings_;
};

}  // namespace ptkit::capture
