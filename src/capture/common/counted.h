// Numbers in sentences.
#pragma once

#include <cstdint>
#include <string>

namespace ptkit::capture {

// "1 event", "2 events".
[[nodiscard]] inline std::string counted(std::uint64_t count, const char* noun,
                                         const char* plural_ending = "s") {
  return std::to_string(count) + ' ' + noun + (count == 1 ? "" : plural_ending);
}

}  // namespace ptkit::capture
