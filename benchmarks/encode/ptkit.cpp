// Encodes every block by BlockEncoder, which emulator recordings use.
#include "capture/linux/encode/block_encoder.h"
#include "common/encode.h"

namespace ptkit::bench {
namespace {

template <bool kDigest>
Outcome encode(const trace::TraceBundle& bundle) {
  const Blocks& blocks = blocks_of(bundle);
  ByteSink<kDigest> sink;
  capture::BlockEncoder encoder(encode_config(), blocks.code, [&](base::Bytes bytes) { sink.add(bytes); });
  std::uint64_t tsc = kFirstTsc;
  const std::span<const std::uint32_t> numbers(blocks.numbers);
  for (std::size_t i = 0; i + kLineBlocks <= numbers.size(); i += kLineBlocks, tsc += kLineTicks)
    encoder.blocks(numbers.subspan(i, kLineBlocks), tsc, tsc + kLineTicks);
  encoder.end(tsc);
  return sink.outcome(numbers.size() / kLineBlocks * kLineBlocks, encoder.unexplained());
}

}  // namespace
}  // namespace ptkit::bench

int main(int argc, char** argv) {
  return ptkit::bench::contest_main(argc, argv, {ptkit::bench::encode<false>, ptkit::bench::encode<true>});
}
