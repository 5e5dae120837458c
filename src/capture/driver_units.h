// The sessions of the driver that one recording has (one, or one for each processor that was chosen), and
// what they share.
#pragma once

#include <memory>
#include <vector>

#include "capture/driver_buffer.h"
#include "capture/driver_port.h"
#include "capture/trace_units.h"

namespace ptkit::capture {

class DriverUnits : public TraceUnits {
 public:
  explicit DriverUnits(OpenDriver open) : open_(std::move(open)) {}

  [[nodiscard]] const char* name() const noexcept override { return "driver"; }
  [[nodiscard]] Problem prepare(const RecordOptions& options, std::vector<std::string>& warnings) override;
  [[nodiscard]] Problem configure(int pid, const std::vector<FilterPlace>& filters) override;
  [[nodiscard]] std::vector<trace::Stream> streams() const override;
  void set_stream(std::size_t index, std::uint32_t stream) override { buffers_[index].set_stream(stream); }
  [[nodiscard]] trace::Configuration configuration() const override;
  [[nodiscard]] bool tells() const noexcept override { return config_.sideband_bytes != 0; }

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
  [[nodiscard]] bool failed() const noexcept override;

 private:
  [[nodiscard]] Problem add(std::unique_ptr<DriverPort> port, ptkit_config config);
  [[nodiscard]] Problem tell(unsigned long number, const char* what);

  OpenDriver open_;
  ptkit_query query_{};
  ptkit_config config_{};
  std::vector<std::uint32_t> cpus_;
  std::unique_ptr<DriverPort> first_;  // open, and not configured yet
  std::vector<std::unique_ptr<DriverPort>> ports_;
  std::vector<DriverBuffer> buffers_;
};

}  // namespace ptkit::capture
