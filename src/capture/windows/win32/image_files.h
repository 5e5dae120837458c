// Bytes of images: of files by the kernel's names for them, and of processes.
#pragma once

#include <map>
#include <string>

#include "capture/windows/images.h"

namespace ptkit::capture::win32 {

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

}  // namespace ptkit::capture::win32
