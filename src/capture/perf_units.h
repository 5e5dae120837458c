// The events of one recording by perf: which are opened for whom, their filters, and their buffers.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capture/perf_buffer.h"
#include "capture/perf_config.h"
#include "capture/trace_units.h"

namespace ptkit::capture {

class PerfUnits : public TraceUnits {
 public:
  explicit PerfUnits(OpenPerf open) : open_(std::move(open)) {}

  [[nodiscard]] const char* name() const noexcept override { return "perf"; }
  [[nodiscard]] Problem prepare(const RecordOptions& options, std::vector<std::string>& warnings) override;
  [[nodiscard]] Problem configure(int pid, const std::vector<FilterPlace>& filters) override;
  [[nodiscard]] Problem watch(const std::vector<WatchPlace>& places) override;
  [[nodiscard]] std::vector<std::uint32_t> take_hits() override { return std::exchange(hits_, {}); }
  [[nodiscard]] std::vector<trace::Stream> streams() const override;
  void set_stream(std::size_t index, std::uint32_t stream) override { buffers_[index].set_stream(stream); }
  [[nodiscard]] trace::Configuration configuration() const override;
  [[nodiscard]] bool tells() const noexcept override { return true; }

  [[nodiscard]] Problem start() override;
  [[nodiscard]] Problem pause() override;
  [[nodiscard]] Problem resume() override;
  void stop() override;
  [[nodiscard]] Problem drain(BundleOutput& output, std::vector<ToldRecord>& records) override;
  [[nodiscard]] Problem collect(BundleOutput& output) override;
  void wait(int handle, bool paused, std::chrono::milliseconds limit) override;
  [[nodiscard]] std::vector<std::string> warnings() const override;
  [[nodiscard]] std::uint64_t trace_bytes() const noexcept override;
  [[nodiscard]] bool failed() const noexcept override { return false; }

 private:
  // An event of intel_pt: one for each thread and processor, -1 for all or any.
  struct Opened {
    int event = -1;
    int tid = -1;
    int cpu = -1;
  };

  [[nodiscard]] PerfScope scope() const;
  [[nodiscard]] Problem open_all(int pid);
  [[nodiscard]] Problem open_threads(int pid);
  [[nodiscard]] Problem open_one(int tid, int cpu, bool may_be_followed);
  [[nodiscard]] Problem set_filters(const std::vector<FilterPlace>& filters);
  void close_all();
  [[nodiscard]] std::size_t count_buffers() const;
  [[nodiscard]] int map_buffers();
  [[nodiscard]] Problem share_buffers();
  [[nodiscard]] Problem send_to(int event, const PerfBuffer& buffer);
  [[nodiscard]] Problem open_sideband();
  [[nodiscard]] int open_dummy(perf_event_attr attr, int tid, int cpu);
  void open_kernel_sideband();
  [[nodiscard]] Problem watch_for(const perf_event_attr& attr, const Opened& one, const WatchPlace& place);
  [[nodiscard]] const PerfBuffer* buffer_of(const Opened& one) const;
  [[nodiscard]] Problem tell(unsigned long number, const char* what);
  void go_on(const PerfBuffer& buffer);

  OpenPerf open_;
  std::unique_ptr<PerfPort> port_;
  RecordOptions options_;
  PerfUnit unit_;
  rtit::PerfEvent event_;
  int pid_ = 0;
  bool running_ = false;
  std::vector<FilterPlace> filters_;
  PerfBuffer::Sizes sizes_;
  std::vector<Opened> opened_;
  std::vector<int> dummies_;
  std::vector<int> watches_;                         // events of triggers
  std::map<std::uint64_t, std::uint32_t> triggers_;  // by what the kernel calls their events
  std::vector<std::uint32_t> hits_;
  std::vector<PerfBuffer> buffers_;
  std::vector<int> waiting_;  // files that may become ready
  std::vector<std::string> warnings_;
};

}  // namespace ptkit::capture
