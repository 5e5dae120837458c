#include "client/program.h"

#include <utility>

#include "capture/common/errors.h"
#include "capture/windows/command_line.h"
#include "client/wide.h"

namespace ptkit::client {

Program::Program(Handle process, Handle thread, int pid) noexcept
    : process_(std::move(process)), thread_(std::move(thread)), pid_(pid) {}

Program::~Program() {
  if (thread_) ::TerminateProcess(process_.get(), 1);
}

base::Result<Program> Program::start(const std::vector<std::string>& argv) {
  std::wstring line = wide(capture::command_line(argv));
  STARTUPINFOW startup{};
  startup.cb = sizeof startup;
  PROCESS_INFORMATION made{};
  if (::CreateProcessW(nullptr, line.data(), nullptr, nullptr, TRUE, CREATE_SUSPENDED, nullptr, nullptr,
                       &startup, &made) == 0)
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

}  // namespace ptkit::client
