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
  // Some packed records are missing: what comes behind them cannot be unpacked.
  void stop() noexcept { stopped_ = !failed_; }
  // What unpack() could not give to anybody, or empty; behind the last packed record.
  [[nodiscard]] std::string left() const;

 private:
  struct Free {
    void operator()(ZSTD_DCtx_s* context) const noexcept;
  };
  [[nodiscard]] bool grows_too_much() const noexcept;

  std::unique_ptr<ZSTD_DCtx_s, Free> context_;
  std::vector<std::uint8_t> rest_;  // of a record that is not whole yet, then what was unpacked behind it
  std::uint64_t packed_ = 0;        // bytes
  std::uint64_t unpacked_ = 0;
  std::uint64_t sideband_ = 0;  // of these: not samples
  std::uint64_t pieces_ = 0;    // of trace, and records that are packed twice: where perf puts none
  bool stopped_ = false;
  bool failed_ = false;
};

}  // namespace ptkit::formats::perf
