#include "capture/windows/win32/recorder.h"

#include <windows.h>
#include <winternl.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capture/common/record_options.h"
#include "capture/windows/images.h"
#include "capture/windows/win32/device.h"
#include "capture/windows/win32/handle.h"
#include "capture/windows/win32/kernel_logger.h"
#include "capture/windows/win32/machine.h"
#include "capture/windows/win32/program.h"
#include "capture/windows/win32/wide.h"

namespace ptkit::capture::win32 {

namespace {

// ---- Bytes of images: of files by the kernel's names for them, and of processes

constexpr std::uint64_t kMostFileBytes = std::uint64_t{1} << 30U;
constexpr std::wstring_view kDosFolder = L"\\??\\";
constexpr std::wstring_view kSystemRoot = L"\\SystemRoot\\";

// The kernel's names are those of its object folders, which only ntdll takes.
Handle open_by_kernel_name(std::wstring path) {
  UNICODE_STRING name{};
  name.Buffer = path.data();
  name.Length = static_cast<USHORT>(path.size() * sizeof(wchar_t));
  name.MaximumLength = name.Length;
  OBJECT_ATTRIBUTES what{};
  InitializeObjectAttributes(&what, &name, OBJ_CASE_INSENSITIVE, nullptr, nullptr);
  IO_STATUS_BLOCK status{};
  HANDLE file = nullptr;
  const NTSTATUS result = ::NtOpenFile(&file, FILE_GENERIC_READ, &what, &status,
                                       FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                                       FILE_SYNCHRONOUS_IO_NONALERT | FILE_NON_DIRECTORY_FILE);
  return Handle(result >= 0 ? file : nullptr);
}

std::vector<std::uint8_t> read_whole(HANDLE file) {
  LARGE_INTEGER size{};
  if (::GetFileType(file) != FILE_TYPE_DISK || ::GetFileSizeEx(file, &size) == 0 ||
      static_cast<std::uint64_t>(size.QuadPart) > kMostFileBytes)
    return {};
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size.QuadPart));
  DWORD read = 0;
  if (!bytes.empty() && ::ReadFile(file, bytes.data(), static_cast<DWORD>(bytes.size()), &read, nullptr) == 0)
    return {};
  bytes.resize(read);
  return bytes;
}

class ImageFiles final : public capture::ImageSource {
 public:
  ImageFiles();

  [[nodiscard]] trace::TraceBuffer file(const std::string& path) override;
  [[nodiscard]] std::string shown(const std::string& path) override;
  [[nodiscard]] std::vector<std::uint8_t> memory(std::int64_t pid, std::uint64_t address,
                                                 std::uint64_t bytes) override;

 private:
  std::map<std::wstring, std::wstring> drives_;  // L"\\Device\\HarddiskVolume3" to L"C:"
  std::wstring windows_;                         // L"C:\\Windows"
};

ImageFiles::ImageFiles() {
  std::array<wchar_t, MAX_PATH> text{};
  windows_.assign(text.data(),
                  std::min<std::size_t>(::GetSystemWindowsDirectoryW(text.data(), MAX_PATH), MAX_PATH));
  for (wchar_t letter = L'A'; letter <= L'Z'; ++letter) {
    const std::wstring drive{letter, L':'};
    if (::QueryDosDeviceW(drive.c_str(), text.data(), MAX_PATH) != 0) drives_[text.data()] = drive;
  }
}

trace::TraceBuffer ImageFiles::file(const std::string& path) {
  std::wstring name = wide(path);
  Handle file = open_by_kernel_name(name);
  if (!file) file = open_by_kernel_name(std::wstring(kDosFolder) + wide(shown(path)));
  if (!file) return {};
  return trace::TraceBuffer::from_vector(read_whole(file.get()));
}

std::string ImageFiles::shown(const std::string& path) {
  const std::wstring name = wide(path);
  if (name.starts_with(kDosFolder)) return narrow(std::wstring_view(name).substr(kDosFolder.size()));
  if (name.size() > kSystemRoot.size() &&
      ::CompareStringOrdinal(name.c_str(), static_cast<int>(kSystemRoot.size()), kSystemRoot.data(),
                             static_cast<int>(kSystemRoot.size()), TRUE) == CSTR_EQUAL)
    return narrow(windows_ + L'\\' + name.substr(kSystemRoot.size()));
  for (const auto& [device, drive] : drives_) {
    if (name.starts_with(device + L'\\')) return narrow(drive + name.substr(device.size()));
  }
  return path;
}

std::vector<std::uint8_t> ImageFiles::memory(std::int64_t pid, std::uint64_t address, std::uint64_t bytes) {
  constexpr std::size_t kPart = 65536;
  const Handle process(::OpenProcess(PROCESS_VM_READ, FALSE, static_cast<DWORD>(pid)));
  std::vector<std::uint8_t> out;
  while (process && out.size() < bytes) {
    const std::size_t before = out.size();
    out.resize(before + static_cast<std::size_t>(std::min<std::uint64_t>(bytes - before, kPart)));
    SIZE_T read = 0;
    const auto* const from = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(address + before));
    if (::ReadProcessMemory(process.get(), from, out.data() + before, out.size() - before, &read) != 0)
      continue;
    out.resize(before);
    break;
  }
  return out;
}

// ---- One recording

constexpr DWORD kLongestWaitMs = 100;  // a wait of the driver ends sooner
constexpr DWORD kExitMs = capture::kExitTime.count();

// Waits for requests, for the driver, and for the process.
class Host final : public capture::LoopHost {
 public:
  Host(Device& device, const Requests& requests, Listener& listener, const Program* program)
      : device_(device), requests_(requests), listener_(listener) {
    const auto asked = requests.handles();
    std::copy(asked.begin(), asked.end(), handles_.begin());
    handles_[kHappened] = device.happened();
    if (program != nullptr) handles_[count_++] = program->process();
  }

  [[nodiscard]] base::Result<capture::LoopEvent> wait() override;
  [[nodiscard]] std::uint64_t now_ms() const override { return ::GetTickCount64(); }
  void progress(std::uint64_t trace_bytes) override { listener_.progress(trace_bytes); }

 private:
  static constexpr DWORD kHappened = Requests::kHandles;
  static constexpr DWORD kProgram = kHappened + 1;

  Device& device_;
  const Requests& requests_;
  Listener& listener_;
  std::array<HANDLE, kProgram + 1> handles_{};
  DWORD count_ = kProgram;
};

base::Result<capture::LoopEvent> Host::wait() {
  using Event = capture::LoopEvent;
  device_.begin_wait();
  const DWORD signalled = ::WaitForMultipleObjects(count_, handles_.data(), FALSE, kLongestWaitMs);
  if (signalled == WAIT_FAILED) return last_failure("wait for the driver");
  if (signalled < Requests::kHandles) return requests_.event(signalled);
  if (signalled == kHappened)
    return (device_.end_wait() & PTKIT_EVENT_ENDED) != 0 ? Event::PROCESS_ENDED : Event::NOTHING;
  return signalled == kProgram ? Event::PROCESS_ENDED : Event::NOTHING;
}

base::Result<std::optional<Program>> find_program(const capture::RecordOptions& options, ProgramEnd end) {
  if (!options.argv.empty()) {
    const bool apart = end == ProgramEnd::AWAITED;
    auto started = Program::start(options.argv, {.quiet = options.quiet, .apart = apart});
    if (!started.ok()) return started.failure();
    return std::optional<Program>(std::move(started.value()));
  }
  if (options.pid == 0) return std::optional<Program>();
  auto attached = Program::attach(options.pid);
  if (!attached.ok()) return attached.failure();
  return std::optional<Program>(std::move(attached.value()));
}

// Whole processors are traced, whatever the program is.
int traced_pid(const capture::RecordOptions& options, const std::optional<Program>& program) {
  return program && !options.whole_cpus() ? program->pid() : 0;
}

// Tracing has ended. The program runs on until its own end, or until a stop is requested.
std::optional<int> await(Program& program, const Requests& requests) {
  const std::array<HANDLE, 2> handles{program.process(), requests.stop_handle()};
  const DWORD count = static_cast<DWORD>(handles.size());
  if (::WaitForMultipleObjects(count, handles.data(), FALSE, INFINITE) != WAIT_OBJECT_0) program.end(kExitMs);
  return program.exit_status(0);
}

base::Result<Outcome> run(const capture::WindowsOptions& given, Device& device,
                          capture::WindowsSession& session, Requests& requests, Listener& listener,
                          ProgramEnd program_end) {
  const capture::RecordOptions& options = given.record;
  auto program = find_program(options, program_end);
  if (!program.ok()) return program.failure();
  std::optional<Program>& target = program.value();
  if (auto failure = session.begin(traced_pid(options, target), clocks_now())) return *failure;
  if (target) {
    if (auto failure = target->resume()) return *failure;
  }
  listener.began(target ? target->pid() : 0);
  Host host(device, requests, listener, target ? &*target : nullptr);
  capture::WindowsLoop loop(session, host, static_cast<std::uint64_t>(options.seconds.count()));
  if (auto failure = loop.run()) return *failure;
  const bool own = !options.argv.empty();
  Outcome outcome;
  if (own && program_end == ProgramEnd::LEFT)
    outcome.exit_status = target->exit_status(loop.interrupted() ? kExitMs : 0);
  if (auto failure = session.stop(clocks_now())) return *failure;
  if (own && program_end == ProgramEnd::AWAITED) outcome.exit_status = await(*target, requests);
  auto result = session.finish(outcome.exit_status);
  if (!result.ok()) return result.failure();
  outcome.result = std::move(result.value());
  outcome.result.interrupted = loop.interrupted();
  outcome.result.limited = loop.limited();
  return outcome;
}

void remove_file(const std::string& utf8) {
  std::error_code ignored;
  std::filesystem::remove(std::filesystem::path(wide(utf8)), ignored);
}

}  // namespace

base::Result<Outcome> record(const capture::WindowsOptions& options, Requests& requests, Listener& listener,
                             ProgramEnd program_end) {
  enable_privileges();
  auto device = Device::open();
  if (!device.ok()) return device.failure();
  ImageFiles files;
  KernelLogger events;
  capture::WindowsSession session(*device.value(), files, events, options, this_machine());
  if (auto failure = session.prepare()) return *failure;
  auto result = run(options, *device.value(), session, requests, listener, program_end);
  // The recording until a failure stays; without a beginning there is nothing.
  if (!result.ok() && !session.began()) remove_file(options.record.output);
  return result;
}

}  // namespace ptkit::capture::win32
