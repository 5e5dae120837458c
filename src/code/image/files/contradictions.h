// Contradictions between a file's headers and a recording's mappings, which are then of another file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/bytes.h"

namespace ptkit::code::image {

// An executable mapping of a part of a file.
struct FileMapping {
  std::uint64_t offset = 0;  // in the file
  std::uint64_t size = 0;    // 0: not known
  // Anonymous code continues the mapping: it may have replaced more of the file.
  bool is_preceded = false;
  bool is_followed = false;
  [[nodiscard]] bool operator==(const FileMapping&) const = default;
  [[nodiscard]] bool operator<(const FileMapping& other) const noexcept {
    return std::tie(offset, size, is_preceded, is_followed) <
           std::tie(other.offset, other.size, other.is_preceded, other.is_followed);
  }
};

// Says for which machine an ELF or PE file is; empty if it is for x86, or of another format.
[[nodiscard]] std::string other_machine(base::Bytes file);

// `mappings`: all executable mappings of the file at one load address of one process; `others`: those at its
// other load addresses. Says which of `mappings` a loader does not make of this file. Empty: it may make all
// of them; or they are parts of code that is mapped whole at another address; or the file is neither ELF nor
// PE.
[[nodiscard]] std::string mapping_contradiction(base::Bytes file, std::span<const FileMapping> mappings,
                                                std::span<const std::vector<FileMapping>> others = {});

}  // namespace ptkit::code::image
