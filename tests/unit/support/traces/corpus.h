// Where traces of other people are.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace ptkit::test {

// The folder that PTKIT_CORPUS names, or else PTKIT_DEFAULT_CORPUS, which ctest sets. Empty if it is absent.
inline std::string corpus() {
  const char* path = std::getenv("PTKIT_CORPUS");
  if (path == nullptr) path = std::getenv("PTKIT_DEFAULT_CORPUS");
  std::error_code ignored;
  return path != nullptr && std::filesystem::is_directory(path, ignored) ? path : std::string();
}

}  // namespace ptkit::test
