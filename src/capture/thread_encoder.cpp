#include "capture/thread_encoder.h"

namespace ptkit::capture {

ThreadEncoder::ThreadEncoder(const softpt::UnitConfig& config, formats::PtkWriter& writer,
                             std::uint32_t stream, TruthLog truth)
    : stream_(stream),
      unit_(config, [&writer, stream](base::Bytes bytes) { writer.data(stream, bytes); }),
      truth_(std::move(truth)) {}

void ThreadEncoder::retire(const insn::Insn& insn, std::uint64_t ip, std::uint64_t to, insn::ExecMode mode,
                           insn::ExecMode next_mode) {
  truth_.add(ip);
  unit_.retire(insn, ip, to, mode, next_mode);
}

void ThreadEncoder::finish() {
  unit_.unit().flush();
  truth_.flush();
}

}  // namespace ptkit::capture
