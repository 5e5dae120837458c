// Records that perf packed (perf record -z): one zstd stream through all COMPRESSED records, in which records
// may begin in one and end in the next. For .cpp files of this folder only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "formats/perf_record.h"

struct ZSTD_DCtx_s;

namespace ptkit::formats::perf {

class Unpacker {
 public:
  Unpacker();
  // Gives the records that are whole after this one. What is wrong, or empty; nothing more is unpacked then.
  [[nodiscard]] std::string unpack(const Record& packed, const std::function<void(const Record&)>& each);

 private:
  struct Free {
    void operator()(ZSTD_DCtx_s* context) const noexcept;
  };
  std::unique_ptr<ZSTD_DCtx_s, Free> context_;
  std::vector<std::uint8_t> rest_;  // of a record that is not whole yet, then what was unpacked behind it
  std::uint64_t packed_ = 0;
  std::uint64_t unpacked_ = 0;
  bool failed_ = false;
};

}  // namespace ptkit::formats::perf
