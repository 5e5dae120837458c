// The back end by ptkit's kernel driver. A recording has one session of the driver for all CPUs, or one for
// each chosen CPU, or (per_thread) one for each thread. Context switches and page tables are recorded by the
// driver; mappings, names and changes of the kernel's code by perf.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "capture/linux/driver/buffer.h"
#include "capture/linux/driver/port.h"
#include "capture/linux/perf/sideband.h"
#include "capture/linux/session/backend.h"

namespace ptkit::capture {

class DriverBackend : public HardwareBackend {
 public:
  DriverBackend(OpenDriver open, std::unique_ptr<PerfPort> perf)
      : DriverBackend(std::move(open), std::shared_ptr<PerfPort>(std::move(perf))) {}

  [[nodiscard]] const char* name() const noexcept override { return "driver"; }
  [[nodiscard]] Problem prepare(const RecordOptions& options, std::vector<trace::Warning>& warnings) override;
  [[nodiscard]] Problem configure(int pid, const std::vector<ResolvedFilter>& filters) override;
  [[nodiscard]] std::vector<trace::Stream> streams() const override;
  void set_stream(std::size_t index, std::uint32_t stream) override { buffers_[index].set_stream(stream); }
  [[nodiscard]] trace::Configuration configuration() const override;
  [[nodiscard]] bool has_sideband() const noexcept override { return config_.sideband_bytes != 0; }
  [[nodiscard]] bool records_others() const noexcept override { return true; }
  [[nodiscard]] bool reports_kernel_code() const noexcept override { return kernel_code_.is_open(); }

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
  [[nodiscard]] bool failed() const noexcept override;

 private:
  DriverBackend(OpenDriver open, const std::shared_ptr<PerfPort>& perf)
      : open_(std::move(open)),
        processes_(perf, PerfSideband::Subject::PROCESSES),
        kernel_code_(perf, PerfSideband::Subject::KERNEL_CODE) {}

  [[nodiscard]] base::Result<std::unique_ptr<DriverPort>> new_port();
  [[nodiscard]] Problem add_session(std::unique_ptr<DriverPort> port, ptkit_config config);
  [[nodiscard]] Problem add_buffers(std::unique_ptr<DriverPort> port, const ptkit_config& config);
  [[nodiscard]] Problem start_error(int error) const;
  [[nodiscard]] Problem request_all(unsigned long number, const char* what);
  [[nodiscard]] Problem add_sessions();
  [[nodiscard]] std::uint32_t stream_of(std::uint32_t cpu) const noexcept;
  [[nodiscard]] bool waits() const noexcept;
  void resume_where_cleared();

  // ---- per_thread (threads.cpp)

  [[nodiscard]] Problem open_threads();
  [[nodiscard]] base::Result<bool> open_thread(int tid);  // false: the thread has ended
  void find_threads();
  void note_threads(const std::vector<SystemRecord>& records);
  void trace_new_threads();
  [[nodiscard]] bool trace_thread(int tid);

  OpenDriver open_;
  ptkit_query query_{};
  ptkit_config config_{};
  std::vector<std::uint32_t> cpus_;
  std::unique_ptr<DriverPort> unconfigured_;  // opened by prepare()
  std::vector<std::unique_ptr<DriverPort>> ports_;
  std::vector<DriverBuffer> buffers_;
  PerfSideband processes_;
  PerfSideband kernel_code_;
  bool traces_kernel_ = false;
  bool paused_ = false;
  bool per_thread_ = false;
  int pid_ = 0;
  std::map<int, std::uint64_t> threads_;  // by tid: TSC when its session was opened, or was to be
  std::set<int> begun_;                   // threads without a session yet
  bool records_lost_ = false;             // FORK records may be among them
  std::size_t late_threads_ = 0;
  std::size_t missed_threads_ = 0;
  std::vector<trace::Warning> warnings_;
  // The last attempt to go on where TraceEn was cleared.
  std::optional<std::chrono::steady_clock::time_point> last_attempt_;
};

}  // namespace ptkit::capture
