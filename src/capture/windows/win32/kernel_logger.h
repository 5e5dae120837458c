// ETW's kernel provider: a session of this program, and the thread to which ETW delivers its events.
#pragma once

#include <windows.h>

#include <cstdint>
#include <string>
#include <vector>

#include "capture/windows/event_session.h"
#include "capture/windows/win32/handle.h"

namespace ptkit::capture::win32 {

class KernelLogger final : public capture::EventSession {
 public:
  KernelLogger();
  KernelLogger(const KernelLogger&) = delete;
  KernelLogger& operator=(const KernelLogger&) = delete;
  ~KernelLogger() override;

  [[nodiscard]] std::optional<base::Failure> start() override;
  [[nodiscard]] std::vector<capture::KernelEvent> take() override;
  void stop() override;
  [[nodiscard]] Losses losses() const override { return losses_; }

  // ETW calls this on its thread.
  void add(const capture::RawEvent& raw);

 private:
  [[nodiscard]] std::optional<base::Failure> open();
  void end_session();
  static DWORD WINAPI deliver(void* logger);

  std::wstring name_;
  std::uint64_t session_ = 0;  // TRACEHANDLE; 0: none
  std::uint64_t consumer_ = UINT64_MAX;
  Handle thread_;
  SRWLOCK lock_ = SRWLOCK_INIT;  // of events_ and losses_.malformed
  std::vector<capture::KernelEvent> events_;
  Losses losses_;
};

}  // namespace ptkit::capture::win32
