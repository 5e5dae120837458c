#include "capture/windows/win32/image_files.h"

#include <windows.h>
#include <winternl.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "capture/windows/win32/handle.h"
#include "capture/windows/win32/wide.h"

namespace ptkit::capture::win32 {

namespace {

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

}  // namespace

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

}  // namespace ptkit::capture::win32
