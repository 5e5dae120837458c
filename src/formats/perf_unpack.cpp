#include "formats/perf_unpack.h"

#include <zstd.h>

namespace ptkit::formats::perf {

namespace {

constexpr std::size_t kStepBytes = std::size_t{128} << 10U;
// Records repeat themselves, but not so often: more is an attack on memory and time.
constexpr std::uint64_t kMostRatio = 1024;

}  // namespace

void Unpacker::Free::operator()(ZSTD_DCtx_s* context) const noexcept {
  static_cast<void>(ZSTD_freeDCtx(context));
}

Unpacker::Unpacker() : context_(ZSTD_createDCtx()) {}

std::string Unpacker::unpack(const Record& packed, const std::function<void(const Record&)>& each) {
  if (failed_) return {};
  failed_ = true;
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
    if (unpacked_ / kMostRatio > packed_) return "becomes more than a thousand times its size";
    const Walked walked = walk(rest_, packed.offset, false, [&](const Record& record) {
      Record one = record;
      one.offset = packed.offset;
      const bool is_packed = one.type == COMPRESSED || one.type == COMPRESSED2;
      if (one.type != AUXTRACE && !is_packed) each(one);  // whose bytes would lie here
      return true;
    });
    if (walked.damaged) return "has bytes that are no record";
    rest_.erase(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(walked.end));
    more = in.pos < in.size || out.pos == out.size;
  }
  failed_ = false;
  return {};
}

}  // namespace ptkit::formats::perf
