#include "capture/linux/encode/thread_encoder.h"

namespace ptkit::capture {

ThreadEncoder::ThreadEncoder(const trace_unit::generator::GeneratorConfig& config, formats::PtkWriter& writer,
                             std::uint32_t stream, ExecutionLog log)
    : stream_(stream),
      tracer_(config, [&writer, stream](base::Bytes bytes) { writer.data(stream, bytes); }),
      log_(std::move(log)) {}

void ThreadEncoder::retire(const code::insn::Insn& insn, std::uint64_t ip, std::uint64_t to,
                           code::insn::ExecMode mode, code::insn::ExecMode next_mode) {
  log_.add(ip);
  tracer_.retire(insn, ip, to, mode, next_mode);
}

void ThreadEncoder::finish() {
  tracer_.generator().flush();
  log_.flush();
}

}  // namespace ptkit::capture
