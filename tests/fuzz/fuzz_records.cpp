// Random branch records over random code: never crashes, hangs or throws, rows stay in order, each record
// that is sound is a branch, and the number of rows is bounded by the input.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include "flow/code/walk_guard.h"
#include "flow/decoder/record_decoder.h"
#include "trace/branch_records.h"

namespace {

using namespace ptkit;

constexpr std::uint64_t kUser = 0x1000;
constexpr std::uint64_t kKernel = 0xffffffff81000000;

class Check : public flow::FlowSink {
 public:
  void on_block(const flow::Block& row) override {
    if (row.insns.empty()) std::abort();
    std::uint32_t size = 0;
    for (const flow::BlockInsn& insn : row.insns) size += insn.size;
    if (size != row.size) std::abort();
    if (row.span.offset != last_) walked_ = 0;
    walked_ += row.insns.size();
    if (walked_ > flow::SearchLimit::kInsns + 2 * flow::BlockCache::kMaxInsns) std::abort();
    check(row.span);
  }
  void on_branch(const flow::Branch& row) override {
    constexpr unsigned kBoth = flow::FROM_KNOWN | flow::TO_KNOWN | flow::TAKEN;
    if ((row.flags & kBoth) == kBoth) ++taken_;
    check(row.span);
  }
  void on_error(const flow::FlowError& row) override {
    if (row.code == base::Status::OK) std::abort();
    check(row.span);
  }
  void on_gap(const flow::Gap& row) override {
    if (row.begin > row.end || row.begin < gap_end_) std::abort();
    gap_end_ = row.end;
  }
  [[nodiscard]] bool full() const override { return ++asked_ % 3 == 0; }
  [[nodiscard]] std::uint64_t taken() const noexcept { return taken_; }

 private:
  void check(const flow::StreamSpan& span) {
    if (span.since != span.offset || span.offset < last_) std::abort();
    last_ = span.offset;
  }
  std::uint64_t last_ = 0;
  std::uint64_t gap_end_ = 0;
  std::uint64_t walked_ = 0;  // instructions for this record
  std::uint64_t taken_ = 0;
  mutable unsigned asked_ = 0;
};

// Two bytes name an address in the code, near it, or anywhere.
std::uint64_t address(const std::uint8_t* from, std::size_t code_size) {
  const std::uint64_t value = base::load_le<2>(from);
  const std::uint64_t offset = (value & 0xfff) % (code_size + 8);
  switch (value >> 13U) {
    case 0:
      return kKernel + offset;
    case 1:
      return value << 50U | value;
    default:
      return kUser + offset;
  }
}

// Six bytes for each.
std::vector<trace::BranchRecord> records_of(const std::uint8_t* data, std::size_t size,
                                            std::size_t code_size) {
  std::vector<trace::BranchRecord> out;
  for (; size >= 6; data += 6, size -= 6) {
    trace::BranchRecord record;
    record.from_ip = address(data, code_size);
    record.to_ip = address(data + 2, code_size);
    record.flags = data[4];
    record.tsc = data[5];
    out.push_back(record);
  }
  return out;
}

void put(trace::TraceBundle& bundle, std::uint64_t at, const std::vector<std::uint8_t>& code) {
  trace::CodeRegion region;
  region.address = at;
  region.size = code.size();
  region.bytes = trace::TraceBuffer::from_vector(code);
  bundle.code.push_back(region);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::uint8_t flags = data[0];
  const std::size_t code_size = std::min<std::size_t>(data[1], size - 2);
  const std::vector<std::uint8_t> code(data + 2, data + 2 + code_size);
  auto bundle = std::make_shared<trace::TraceBundle>();
  bundle->spaces.resize(2);
  if (code_size != 0) put(*bundle, kUser, code);
  if (code_size != 0 && (flags & 1U) != 0) put(*bundle, kKernel, code);
  const auto records = records_of(data + 2 + code_size, size - 2 - code_size, code_size);
  trace::Stream stream;
  stream.kind = trace::StreamKind::BRANCH_RECORDS;
  const trace::TraceBuffer whole = trace::to_buffer(records);
  stream.data = whole.slice(0, whole.size() - std::min<std::size_t>(whole.size(), flags >> 5U));
  if ((flags & 2U) != 0) stream.losses.push_back({whole.size() / 2, base::Status::RING_WRAPPED, 0});
  stream.switches_by_offset = (flags & 4U) != 0;
  if ((flags & 8U) != 0) stream.switches = {{3, 1, 1, 1, 64}, {200, 1, 2, 0, 320}};

  const code::image::Image image(bundle);
  std::optional<time::TimeTrack> track;
  if ((flags & 16U) != 0) track.emplace(time::TimeTrack::of_records(stream.data.bytes()));
  Check sink;
  flow::RecordDecoder decoder(stream, {}, image, sink, track ? &*track : nullptr);
  while (decoder.run()) {
  }
  if (decoder.position() != stream.data.size()) std::abort();
  if (!stream.losses.empty()) return 0;  // a loss inside of a record shifts all that follow
  std::uint64_t sound = 0;
  const std::size_t whole_records = stream.data.size() / sizeof(trace::BranchRecord);
  for (std::size_t i = 0; i < whole_records; ++i) {
    const auto is_good = [](std::uint64_t ip) { return ip < 1ULL << 56U || ip >= ~0ULL << 56U; };
    const trace::BranchRecord& record = records[i];
    const bool may_repeat = (record.flags & trace::RECORD_MAY_REPEAT) != 0;  // the one before, as no branch
    sound += is_good(record.from_ip) && is_good(record.to_ip) && (record.from_ip | record.to_ip) != 0 &&
             !may_repeat;
  }
  if (sink.taken() < sound) std::abort();
  return 0;
}
