// Random packets over random code: never crashes, hangs or throws, rows stay in order, and their number is
// bounded by the input.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "flow/code/block_cache.h"
#include "flow/decoder/decoder.h"
#include "psb_header.h"

namespace {

using namespace ptkit;
using test::kCode;

constexpr std::uint8_t kBig = 255;  // as the size of the code: much of it, the same over and over
constexpr std::size_t kBigSize = std::size_t{1} << 20U;
constexpr std::size_t kPattern = 16;

class Check : public flow::FlowSink {
 public:
  explicit Check(std::uint64_t most_rows) : most_rows_(most_rows) {}
  void on_block(const flow::Block& row) override {
    if (row.insns.empty()) std::abort();
    std::uint32_t size = 0;
    for (const flow::BlockInsn& insn : row.insns) size += insn.size;
    if (size != row.size) std::abort();
    count(row.span);
  }
  void on_branch(const flow::Branch& row) override { count(row.span); }
  void on_event(const flow::Event& row) override { count(row.span); }
  void on_error(const flow::FlowError& row) override { count(row.span); }
  void on_gap(const flow::Gap& row) override {
    if (row.begin > row.end || row.begin < gap_end_) std::abort();
    gap_end_ = row.end;
  }
  [[nodiscard]] bool full() const override { return rows_ % 3 == 0; }

 private:
  void count(const flow::StreamSpan& span) {
    if (span.since > span.offset || span.since < last_.since || span.offset < last_.offset) std::abort();
    last_ = span;
    if (++rows_ > most_rows_) std::abort();
  }
  flow::StreamSpan last_;
  std::uint64_t gap_end_ = 0;
  std::uint64_t rows_ = 0;
  std::uint64_t most_rows_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  const std::uint8_t flags = data[0];
  const std::uint8_t mode = data[1];
  const bool big = data[2] == kBig;
  const std::size_t used = std::min<std::size_t>(big ? kPattern : data[2], size - 3);
  const std::size_t code_size = big && used != 0 ? kBigSize : used;
  auto bundle = std::make_shared<trace::TraceBundle>();
  if (code_size != 0) {
    trace::CodeRegion region;
    region.address = kCode;
    region.size = code_size;
    std::vector<std::uint8_t> code(code_size);
    for (std::size_t i = 0; i < code_size; ++i) code[i] = data[3 + i % used];
    region.bytes = trace::TraceBuffer::from_vector(std::move(code));
    bundle->code.push_back(region);
  }
  trace::Stream stream;
  std::vector<std::uint8_t> bytes = test::psb_header(mode);
  bytes.insert(bytes.end(), data + 3 + used, data + size);
  const std::size_t stream_size = bytes.size();
  if ((flags & 1U) != 0) stream.losses.push_back({stream_size / 2, base::Status::RING_WRAPPED, 0});
  stream.data = trace::TraceBuffer::from_vector(std::move(bytes));

  trace::Configuration configuration;
  configuration.rtit_ctl_known = (flags & 2U) != 0;
  if ((flags & 4U) != 0) configuration.rtit_ctl |= std::uint64_t{1} << 55U;
  if ((flags & 8U) != 0) configuration.rtit_ctl |= std::uint64_t{1} << 11U;
  if ((flags & 16U) != 0) configuration.ranges[0] = {trace::RangeKind::FILTER, kCode, kCode + code_size / 2};
  flow::FlowOptions options;
  options.resync = (flags & 32U) != 0 ? flow::Resync::PSB : flow::Resync::IP;
  options.ticks = (flags & 128U) != 0;
  if ((flags & 64U) != 0) options.errata = packet::errata_for(trace::Cpu{});

  const code::image::Image image(bundle);
  // Every bit of the stream may cost a walk over all of the code, some times over until a loop is noticed.
  Check sink((8 * stream_size + 64) * 16 * (code_size + 16));
  flow::FlowDecoder decoder(stream, configuration, image, options, sink, nullptr);
  while (decoder.run()) {
  }
  if (decoder.position() != stream_size) std::abort();
  return 0;
}
