#include "capture/windows/win32/kernel_logger.h"

#include <evntcons.h>
#include <evntrace.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "capture/common/errors.h"
#include "capture/windows/win32/wide.h"

namespace ptkit::capture::win32 {

namespace {

constexpr std::wstring_view kNameBegin = L"ptkit-capture-";
constexpr std::size_t kMostLetters = 1024;  // of a session's name
constexpr ULONG kMostSessions = 64;         // of a machine
constexpr ULONG kBufferKilobytes = 256;
constexpr ULONG kFlushSeconds = 1;
constexpr ULONG kCpuCycles = 3;  // Wnode.ClientContext: time stamps are those of the TSC
constexpr DWORD kMostWaitMs = 10000;

// The structure, and after it the name that ETW copies there.
struct Properties {
  EVENT_TRACE_PROPERTIES head{};
  std::array<wchar_t, kMostLetters> name{};
  std::array<wchar_t, kMostLetters> file{};

  Properties() {
    head.Wnode.BufferSize = sizeof *this;
    head.Wnode.Flags = WNODE_FLAG_TRACED_GUID;
    head.LoggerNameOffset = offsetof(Properties, name);
  }
};

DWORD cpu_count() { return ::GetActiveProcessorCount(ALL_PROCESSOR_GROUPS); }

// A system logger of this program: the one "NT Kernel Logger" of the machine stays free for others.
Properties session_properties() {
  constexpr GUID kSession{0x7d0b1a52, 0x41c6, 0x4f0e, {0x9a, 0x3d, 0x58, 0xe2, 0x16, 0xc4, 0x70, 0x2b}};
  Properties out;
  out.head.Wnode.Guid = kSession;
  out.head.Wnode.Guid.Data1 ^= ::GetCurrentProcessId();
  out.head.Wnode.ClientContext = kCpuCycles;
  out.head.LogFileMode = EVENT_TRACE_REAL_TIME_MODE | EVENT_TRACE_SYSTEM_LOGGER_MODE;
  out.head.EnableFlags = EVENT_TRACE_FLAG_CSWITCH | EVENT_TRACE_FLAG_THREAD | EVENT_TRACE_FLAG_IMAGE_LOAD;
  out.head.BufferSize = kBufferKilobytes;
  out.head.MinimumBuffers = 2 * cpu_count();
  out.head.MaximumBuffers = 8 * cpu_count() + 32;
  out.head.FlushTimer = kFlushSeconds;
  return out;
}

base::Failure refused(ULONG error) {
  switch (error) {
    case ERROR_ACCESS_DENIED:
      return capture::unsupported(
          "ETW refuses a session of kernel events: run this as an administrator, elevated.");
    case ERROR_NO_SYSTEM_RESOURCES:
      return capture::unsupported(
          "ETW has no free session of kernel events, or no memory: `logman query -ets` lists sessions; stop "
          "one.");
    default:
      return capture::unsupported("ETW refuses a session of kernel events: error " + std::to_string(error) +
                                  " of Windows; `net helpmsg` explains it.");
  }
}

bool is_alive(DWORD pid) {
  const Handle process(::OpenProcess(SYNCHRONIZE, FALSE, pid));
  if (!process) return ::GetLastError() == ERROR_ACCESS_DENIED;
  return ::WaitForSingleObject(process.get(), 0) == WAIT_TIMEOUT;
}

// Sessions outlive their programs: those of recorders that were killed would go on until Windows is
// restarted.
void stop_orphans() {
  std::vector<Properties> all(kMostSessions);
  std::array<EVENT_TRACE_PROPERTIES*, kMostSessions> heads{};
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].head.LogFileNameOffset = offsetof(Properties, file);
    heads[i] = &all[i].head;
  }
  ULONG count = 0;
  const ULONG error = ::QueryAllTracesW(heads.data(), kMostSessions, &count);
  if (error != ERROR_SUCCESS && error != ERROR_MORE_DATA) return;
  for (std::size_t i = 0; i < std::min<std::size_t>(count, all.size()); ++i) {
    const std::wstring name(all[i].name.data(), ::wcsnlen(all[i].name.data(), kMostLetters));
    if (!name.starts_with(kNameBegin)) continue;
    const DWORD pid = std::wcstoul(name.c_str() + kNameBegin.size(), nullptr, 10);
    if (pid == 0 || (pid != ::GetCurrentProcessId() && is_alive(pid))) continue;
    Properties answer;
    ::ControlTraceW(0, name.c_str(), &answer.head, EVENT_TRACE_CONTROL_STOP);
  }
}

capture::RawEvent raw_event(const EVENT_RECORD& record) {
  const EVENT_HEADER& header = record.EventHeader;
  capture::RawEvent raw;
  std::memcpy(raw.provider.data(), &header.ProviderId, raw.provider.size());
  raw.opcode = header.EventDescriptor.Opcode;
  raw.version = header.EventDescriptor.Version;
  raw.has_64_bit_pointers = (header.Flags & EVENT_HEADER_FLAG_64_BIT_HEADER) != 0;
  raw.cpu = (header.Flags & EVENT_HEADER_FLAG_PROCESSOR_INDEX) != 0 ? record.BufferContext.ProcessorIndex
                                                                    : record.BufferContext.ProcessorNumber;
  raw.tsc = static_cast<std::uint64_t>(header.TimeStamp.QuadPart);
  raw.payload = {static_cast<const std::uint8_t*>(record.UserData), record.UserDataLength};
  return raw;
}

void WINAPI on_event(EVENT_RECORD* record) {
  static_cast<KernelLogger*>(record->UserContext)->add(raw_event(*record));
}

}  // namespace

KernelLogger::KernelLogger() : name_(std::wstring(kNameBegin) + std::to_wstring(::GetCurrentProcessId())) {}

KernelLogger::~KernelLogger() { stop(); }

std::optional<base::Failure> KernelLogger::start() {
  stop_orphans();
  Properties properties = session_properties();
  if (const ULONG error = ::StartTraceW(&session_, name_.c_str(), &properties.head); error != ERROR_SUCCESS) {
    session_ = 0;
    return refused(error);
  }
  auto failure = open();
  if (failure) stop();
  return failure;
}

std::optional<base::Failure> KernelLogger::open() {
  EVENT_TRACE_LOGFILEW from{};
  from.LoggerName = name_.data();
  from.ProcessTraceMode =
      PROCESS_TRACE_MODE_REAL_TIME | PROCESS_TRACE_MODE_RAW_TIMESTAMP | PROCESS_TRACE_MODE_EVENT_RECORD;
  from.EventRecordCallback = on_event;
  from.Context = this;
  consumer_ = ::OpenTraceW(&from);
  if (consumer_ == INVALID_PROCESSTRACE_HANDLE) return refused(::GetLastError());
  // Not every version of Windows returns the clock of the session.
  const ULONG clock = from.LogfileHeader.ReservedFlags;
  if (clock != 0 && clock != kCpuCycles)
    return capture::unsupported("ETW's events have no times of the TSC on this Windows.");
  thread_ = Handle(::CreateThread(nullptr, 0, deliver, this, 0, nullptr));
  if (!thread_) return last_failure("create a thread for ETW's events");
  ::SetThreadPriority(thread_.get(), THREAD_PRIORITY_ABOVE_NORMAL);
  return std::nullopt;
}

// Returns when the session has been stopped, and all of its events were delivered.
DWORD WINAPI KernelLogger::deliver(void* logger) {
  return ::ProcessTrace(&static_cast<KernelLogger*>(logger)->consumer_, 1, nullptr, nullptr);
}

void KernelLogger::add(const capture::RawEvent& raw) {
  capture::KernelEvent event;
  const capture::ParsedEvent parsed = capture::parse_event(raw, event);
  if (parsed == capture::ParsedEvent::OTHER) return;
  ::AcquireSRWLockExclusive(&lock_);
  if (parsed == capture::ParsedEvent::KNOWN)
    events_.push_back(event);
  else
    ++losses_.malformed;
  ::ReleaseSRWLockExclusive(&lock_);
}

std::vector<capture::KernelEvent> KernelLogger::take() {
  ::AcquireSRWLockExclusive(&lock_);
  std::vector<capture::KernelEvent> out = std::exchange(events_, {});
  ::ReleaseSRWLockExclusive(&lock_);
  return out;
}

void KernelLogger::end_session() {
  Properties answer;
  if (std::exchange(session_, 0) == 0) return;
  if (::ControlTraceW(0, name_.c_str(), &answer.head, EVENT_TRACE_CONTROL_STOP) != ERROR_SUCCESS) {
    losses_.ended_early = true;  // another program has stopped it
    return;
  }
  losses_.events = answer.head.EventsLost;
  losses_.buffers = answer.head.RealTimeBuffersLost;
}

void KernelLogger::stop() {
  if (thread_ && ::WaitForSingleObject(thread_.get(), 0) == WAIT_OBJECT_0) losses_.ended_early = true;
  end_session();
  // Closed, it delivers nothing more: a callback that hangs for so long has to end.
  if (thread_ && ::WaitForSingleObject(thread_.get(), kMostWaitMs) != WAIT_OBJECT_0)
    losses_.ended_early = true;
  if (consumer_ != INVALID_PROCESSTRACE_HANDLE)
    ::CloseTrace(std::exchange(consumer_, INVALID_PROCESSTRACE_HANDLE));
  if (thread_) ::WaitForSingleObject(thread_.get(), INFINITE);
  thread_ = Handle();
}

}  // namespace ptkit::capture::win32
