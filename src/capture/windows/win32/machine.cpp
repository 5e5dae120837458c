#include "capture/windows/win32/machine.h"

#include <windows.h>
#include <winternl.h>
#include <x86intrin.h>

#include "capture/common/cpu_info.h"
#include "capture/windows/win32/handle.h"

namespace ptkit::capture::win32 {

namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;
constexpr std::int64_t kEpoch = 116'444'736'000'000'000;  // 1970 in FILETIME, which counts 100 ns since 1601

using GetVersion = NTSTATUS(NTAPI*)(OSVERSIONINFOW*);

// GetVersionEx() gives the version of a program's manifest.
std::string windows_version() {
  const HMODULE ntdll = ::GetModuleHandleW(L"ntdll.dll");
  const auto get = reinterpret_cast<GetVersion>(
      reinterpret_cast<void*>(ntdll != nullptr ? ::GetProcAddress(ntdll, "RtlGetVersion") : nullptr));
  OSVERSIONINFOW version{};
  version.dwOSVersionInfoSize = sizeof version;
  if (get == nullptr || get(&version) < 0) return "Windows";
  return "Windows " + std::to_string(version.dwMajorVersion) + "." + std::to_string(version.dwMinorVersion) +
         "." + std::to_string(version.dwBuildNumber);
}

void enable(HANDLE token, const wchar_t* name) {
  TOKEN_PRIVILEGES wanted{};
  wanted.PrivilegeCount = 1;
  wanted.Privileges[0].Attributes = SE_PRIVILEGE_ENABLED;
  if (::LookupPrivilegeValueW(nullptr, name, &wanted.Privileges[0].Luid) != 0)
    ::AdjustTokenPrivileges(token, FALSE, &wanted, 0, nullptr, nullptr);
}

}  // namespace

capture::WindowsMachine this_machine() {
  capture::WindowsMachine machine;
  machine.name = windows_version() + " x86_64, " + capture::processor_name();
  const WORD groups = ::GetActiveProcessorGroupCount();
  for (WORD group = 0; group < groups; ++group)
    machine.group_processors.push_back(::GetActiveProcessorCount(group));
  return machine;
}

formats::ClockSample clocks_now() {
  formats::ClockSample now;
  LARGE_INTEGER count{};
  LARGE_INTEGER frequency{};
  FILETIME time{};
  ::QueryPerformanceFrequency(&frequency);
  ::QueryPerformanceCounter(&count);
  now.tsc = __rdtsc();
  ::GetSystemTimePreciseAsFileTime(&time);
  now.monotonic_ns = count.QuadPart / frequency.QuadPart * kNsPerSecond +
                     count.QuadPart % frequency.QuadPart * kNsPerSecond / frequency.QuadPart;
  const std::int64_t ticks =
      static_cast<std::int64_t>(time.dwHighDateTime) << 32 | static_cast<std::int64_t>(time.dwLowDateTime);
  now.realtime_ns = (ticks - kEpoch) * 100;
  return now;
}

void enable_privileges() {
  HANDLE token = nullptr;
  if (::OpenProcessToken(::GetCurrentProcess(), TOKEN_ADJUST_PRIVILEGES | TOKEN_QUERY, &token) == 0) return;
  const Handle owned(token);
  enable(token, L"SeSystemProfilePrivilege");
  enable(token, L"SeDebugPrivilege");
}

}  // namespace ptkit::capture::win32
