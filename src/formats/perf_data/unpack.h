// Unpacks COMPRESSED records (perf record -z). All of them hold one zstd stream. A packed record may begin in
// one COMPRESSED record and end in the next. For .cpp files of this folder only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "formats/perf_event/record.h"
#include "trace/warning.h"

struct ZSTD_DCtx_s;

namespace ptkit::formats::perf {

class Unpacker {
 public:
  Unpacker();
  // Calls `each` for the records that are complete after this one. After a warning nothing more is unpacked.
  [[nodiscard]] std::optional<trace::Warning> unpack(const Record& packed,
                                                     const std::function<void(const Record&)>& each);
  // COMPRESSED records are missing: later ones cannot be unpacked.
  void stop() noexcept { stopped_ = !failed_; }
  // A warning of records that unpack() could not give; after the last packed record.
  [[nodiscard]] std::optional<trace::Warning> left() const;

 private:
  struct Free {
    void operator()(ZSTD_DCtx_s* context) const noexcept;
  };
  [[nodiscard]] bool grows_too_much() const noexcept;

  std::unique_ptr<ZSTD_DCtx_s, Free> context_;
  std::vector<std::uint8_t> rest_;  // begin of an incomplete record
  std::uint64_t packed_ = 0;        // bytes
  std::uint64_t unpacked_ = 0;      // bytes
  std::uint64_t sideband_ = 0;      // unpacked bytes of records that are no samples
  std::uint64_t nested_ = 0;        // AUXTRACE and COMPRESSED records inside COMPRESSED records
  bool stopped_ = false;
  bool failed_ = false;
};

}  // namespace ptkit::formats::perf
