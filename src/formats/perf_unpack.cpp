#include "formats/perf_unpack.h"

#include <zstd.h>

namespace ptkit::formats::perf {

namespace {

constexpr std::size_t kStepBytes = std::size_t{128} << 10U;
// Records repeat themselves, but not so often: more is an attack on memory and time. Each has a time of its
// own, which leaves about a twentieth of switches and mappings. Samples of a loop, with many branches each,
// are alike but for that.
constexpr std::uint64_t kMostRatio = 64;
constexpr std::uint64_t kMostRatioOfSamples = 256;
constexpr std::uint64_t kAlwaysAllowed = std::uint64_t{4} << 20U;

}  // namespace

void Unpacker::Free::operator()(ZSTD_DCtx_s* context) const noexcept {
  static_cast<void>(ZSTD_freeDCtx(context));
}

Unpacker::Unpacker() : context_(ZSTD_createDCtx()) {}

std::string Unpacker::unpack(const Record& packed, const std::function<void(const Record&)>& each) {
  if (failed_) return {};
  failed_ = true;
  if (stopped_) return "goes on from some that are missing";
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
    if (ZSTD_isError(result) != 0) return std::string("cannot be unpacked: ") + ZSTD_getErrorName(result);
    const Walked walked = walk(rest_, packed.offset, false, [&](const Record& record) {
      Record one = record;
      one.offset = packed.offset;
      if (one.type != SAMPLE) sideband_ += kRecordHeaderBytes + one.body.size();
      const bool has_place = one.type != AUXTRACE && one.type != COMPRESSED && one.type != COMPRESSED2;
      if (has_place) {
        each(one);
      } else {
        ++pieces_;
      }
      return true;
    });
    if (grows_too_much()) return "becomes far more than what records of perf do";
    if (walked.damaged) return "has bytes that are no record";
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

std::string Unpacker::left() const {
  if (!failed_ && !stopped_ && !rest_.empty())
    return "the last packed record ends within a record, which is not read.";
  if (pieces_ == 0) return {};
  return "pieces of trace, or packed records, lie in packed records, where perf puts none: they are not "
         "read.";
}

}  // namespace ptkit::formats::perf
