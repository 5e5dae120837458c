#include "formats/perf_data/unpack.h"

#include <zstd.h>

#include "trace/warning_codes.h"

namespace ptkit::formats::perf {

using trace::WarningCode;

namespace {

constexpr std::size_t kStepBytes = std::size_t{128} << 10U;
// Limits of the compression ratio; a higher one is an attack on memory and time. Each record has its own
// time, so that switches and mappings pack to about a twentieth. Samples of a loop with many branches each
// differ only in their times.
constexpr std::uint64_t kMostRatio = 64;
constexpr std::uint64_t kMostRatioOfSamples = 256;
constexpr std::uint64_t kAlwaysAllowed = std::uint64_t{4} << 20U;

}  // namespace

void Unpacker::Free::operator()(ZSTD_DCtx_s* context) const noexcept {
  static_cast<void>(ZSTD_freeDCtx(context));
}

Unpacker::Unpacker() : context_(ZSTD_createDCtx()) {}

std::optional<trace::Warning> Unpacker::unpack(const Record& packed,
                                               const std::function<void(const Record&)>& each) {
  if (failed_) return {};
  failed_ = true;
  if (stopped_) return warn(WarningCode::COMPRESSED_GAP, packed.offset);
  packed_ += packed.body.size();
  ZSTD_inBuffer in{packed.body.data(), packed.body.size(), 0};
  bool more = true;
  while (more) {
    const std::size_t had = rest_.size();
    rest_.resize(had + kStepBytes);
    ZSTD_outBuffer out{rest_.data() + had, kStepBytes, 0};
    const std::size_t result = ZSTD_decompressStream(context_.get(), &out, &in);
    rest_.resize(had + out.pos);
    unpacked_ += out.pos;
    if (ZSTD_isError(result) != 0)
      return warn(WarningCode::COMPRESSED_DAMAGED, packed.offset, ZSTD_getErrorName(result));
    const Walked walked = walk(rest_, packed.offset, false, [&](const Record& record) {
      Record one = record;
      one.offset = packed.offset;
      if (one.type != SAMPLE) sideband_ += kRecordHeaderBytes + one.body.size();
      const bool may_be_packed = one.type != AUXTRACE && one.type != COMPRESSED && one.type != COMPRESSED2;
      if (may_be_packed) {
        each(one);
      } else {
        ++nested_;
      }
      return true;
    });
    if (grows_too_much()) return warn(WarningCode::COMPRESSED_TOO_LARGE, packed.offset);
    if (walked.damaged) return warn(WarningCode::COMPRESSED_INVALID, packed.offset);
    rest_.erase(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(walked.end));
    more = in.pos < in.size || out.pos == out.size;
  }
  failed_ = false;
  return {};
}

bool Unpacker::grows_too_much() const noexcept {
  const auto is_more = [this](std::uint64_t bytes, std::uint64_t ratio) {
    return bytes > kAlwaysAllowed && (bytes - kAlwaysAllowed) / ratio > packed_;
  };
  return is_more(sideband_, kMostRatio) || is_more(unpacked_, kMostRatioOfSamples);
}

std::optional<trace::Warning> Unpacker::left() const {
  if (!failed_ && !stopped_ && !rest_.empty()) return warn(WarningCode::COMPRESSED_CUT);
  if (nested_ == 0) return {};
  return warn(WarningCode::COMPRESSED_NESTED, nested_);
}

}  // namespace ptkit::formats::perf
