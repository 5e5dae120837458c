#include "capture/windows/win32/program.h"

#include <utility>

#include "capture/common/errors.h"
#include "capture/windows/command_line.h"
#include "capture/windows/win32/wide.h"

namespace ptkit::capture::win32 {

namespace {

Handle open_nothing() {
  SECURITY_ATTRIBUTES inherited{sizeof(SECURITY_ATTRIBUTES), nullptr, TRUE};
  return Handle(::CreateFileW(L"NUL", GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE, &inherited,
                              OPEN_EXISTING, 0, nullptr));
}

}  // namespace

Program::Program(Handle process, Handle thread, int pid) noexcept
    : process_(std::move(process)), thread_(std::move(thread)), pid_(pid) {}

Program::~Program() {
  if (thread_) ::TerminateProcess(process_.get(), 1);
}

base::Result<Program> Program::start(const std::vector<std::string>& argv, Start how) {
  std::wstring line = wide(capture::command_line(argv));
  STARTUPINFOW startup{};
  startup.cb = sizeof startup;
  Handle nothing;
  if (how.quiet) {
    nothing = open_nothing();
    if (!nothing) return last_failure("open NUL");
    startup.dwFlags = STARTF_USESTDHANDLES;
    startup.hStdInput = ::GetStdHandle(STD_INPUT_HANDLE);
    startup.hStdOutput = nothing.get();
    startup.hStdError = ::GetStdHandle(STD_ERROR_HANDLE);
  }
  PROCESS_INFORMATION made{};
  const DWORD flags = CREATE_SUSPENDED | (how.apart ? CREATE_NEW_PROCESS_GROUP : 0);
  if (::CreateProcessW(nullptr, line.data(), nullptr, nullptr, TRUE, flags, nullptr, nullptr, &startup,
                       &made) == 0)
    return last_failure("start \"" + argv.front() + "\"");
  return Program(Handle(made.hProcess), Handle(made.hThread), static_cast<int>(made.dwProcessId));
}

base::Result<Program> Program::attach(int pid) {
  Handle process(
      ::OpenProcess(SYNCHRONIZE | PROCESS_QUERY_LIMITED_INFORMATION, FALSE, static_cast<DWORD>(pid)));
  if (!process) return last_failure("open process " + std::to_string(pid));
  return Program(std::move(process), Handle(), pid);
}

std::optional<base::Failure> Program::resume() {
  if (!thread_) return std::nullopt;
  if (::ResumeThread(thread_.get()) == static_cast<DWORD>(-1)) return last_failure("resume the program");
  thread_ = Handle();
  return std::nullopt;
}

std::optional<int> Program::exit_status(std::uint32_t wait_ms) const {
  DWORD status = 0;
  if (::WaitForSingleObject(process_.get(), wait_ms) != WAIT_OBJECT_0 ||
      ::GetExitCodeProcess(process_.get(), &status) == 0)
    return std::nullopt;
  return static_cast<int>(status);
}

void Program::end(std::uint32_t wait_ms) {
  const bool asked = ::GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, static_cast<DWORD>(pid_)) != 0;
  if (asked && ::WaitForSingleObject(process_.get(), wait_ms) == WAIT_OBJECT_0) return;
  ::TerminateProcess(process_.get(), 1);
  ::WaitForSingleObject(process_.get(), wait_ms);
}

}  // namespace ptkit::capture::win32
