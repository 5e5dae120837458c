// Parses the sideband of the Windows driver (struct ptkit_record).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace ptkit::capture {

struct WindowsRecord {
  enum class Kind : std::uint8_t {
    BEGIN,  // of a process (tid 0) or a thread, with parents
    SPACE,  // page tables of a process
    END,    // of a process (tid 0) or a thread
    IMAGE,  // an image was mapped
    LOST,   // `count` records before this one
  };
  Kind kind = Kind::BEGIN;
  std::uint64_t tsc = 0;
  std::int64_t pid = 0;
  std::int64_t tid = 0;
  std::int64_t parent_pid = 0;
  std::uint64_t kernel_cr3 = 0;  // 0: not known
  std::uint64_t user_cr3 = 0;
  std::int32_t status = 0;    // END
  std::uint64_t count = 0;    // LOST
  std::uint64_t address = 0;  // IMAGE
  std::uint64_t bytes = 0;
  bool kernel = false;  // of the kernel, in all spaces
  bool before = false;  // mapped before recording began
  std::string path;     // as the kernel names it, in UTF-8
};

struct WindowsRecords {
  std::vector<WindowsRecord> records;
  std::uint64_t bad_bytes = 0;  // malformed, and all that followed: skipped
};

// Whole records, one after the other. Records of unknown types are left out.
[[nodiscard]] WindowsRecords parse_records(base::Bytes bytes);

// UTF-16 to UTF-8. Surrogates without a partner become U+FFFD.
[[nodiscard]] std::string utf8_of(base::Bytes utf16);

}  // namespace ptkit::capture
