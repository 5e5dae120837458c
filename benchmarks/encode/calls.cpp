// Encodes every block by calls of the software trace unit.
#include "capture/linux/encode/user_tracer.h"
#include "common/encode.h"

namespace ptkit::bench {
namespace {

using code::insn::ExecMode;

template <bool kDigest>
Outcome encode(const trace::TraceBundle& bundle) {
  const Blocks& blocks = blocks_of(bundle);
  ByteSink<kDigest> sink;
  capture::UserTracer tracer(encode_config(), [&](base::Bytes bytes) { sink.add(bytes); });
  tracer.generator().hold_psb(true);
  const capture::GuestBlock* last = nullptr;
  std::uint64_t tsc = kFirstTsc;
  std::uint64_t unexplained = 0;
  const auto begin = [&](const capture::GuestBlock& block) {
    if (last != nullptr) {
      const bool explained =
          tracer.retire(last->end, last->last, block.pc, ExecMode::BITS64, ExecMode::BITS64);
      unexplained += explained ? 0 : 1;
    }
    if (!tracer.inside()) tracer.enter(block.pc, ExecMode::BITS64);
    last = &block;
  };
  const std::size_t rows = blocks.numbers.size() / kLineBlocks * kLineBlocks;
  for (std::size_t i = 0; i < rows; ++i) {
    const bool line = i % kLineBlocks == 0;
    if (line) tracer.set_time_loosely(tsc);
    const bool psb = line && tracer.generator().psb_due();
    begin(blocks.code[blocks.numbers[i]]);
    if (line) tsc += kLineTicks;
    if (!psb) continue;
    tracer.generator().hold_psb(false);
    tracer.generator().at(last->pc);
    tracer.generator().hold_psb(true);
  }
  if (last == nullptr) return sink.outcome(0, 0);  // no 64-bit code
  tracer.set_time_loosely(tsc);
  const bool falls_through = last->end.cls == code::insn::InsnClass::OTHER;
  tracer.interrupted(falls_through ? last->next : last->last);
  tracer.generator().flush();
  return sink.outcome(rows, unexplained);
}

}  // namespace
}  // namespace ptkit::bench

int main(int argc, char** argv) {
  return ptkit::bench::contest_main(argc, argv, {ptkit::bench::encode<false>, ptkit::bench::encode<true>});
}
