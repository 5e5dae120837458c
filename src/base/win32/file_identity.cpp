#include "base/system/file_identity.h"

#include "base/win32/file_handle.h"

namespace ptkit::base {
namespace {

[[nodiscard]] constexpr std::uint64_t joined(DWORD high, DWORD low) noexcept {
  return std::uint64_t{high} << 32U | low;
}

// FILETIME counts 100 ns since 1601.
[[nodiscard]] std::int64_t since_1970_ns(const FILETIME& time) noexcept {
  constexpr std::int64_t k1970 = 116'444'736'000'000'000;
  return (static_cast<std::int64_t>(joined(time.dwHighDateTime, time.dwLowDateTime)) - k1970) * 100;
}

}  // namespace

std::optional<FileIdentity> file_identity(const std::string& path) {
  const auto file = FileHandle::open(path);
  BY_HANDLE_FILE_INFORMATION info{};
  if (!file.ok() || ::GetFileInformationByHandle(file.value().get(), &info) == 0) return std::nullopt;
  return FileIdentity{info.dwVolumeSerialNumber, joined(info.nFileIndexHigh, info.nFileIndexLow),
                      joined(info.nFileSizeHigh, info.nFileSizeLow), since_1970_ns(info.ftLastWriteTime)};
}

}  // namespace ptkit::base
