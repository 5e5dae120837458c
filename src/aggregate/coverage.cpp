#include "aggregate/coverage.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace ptkit::aggregate {

// Collects edges, errors and gaps of one stream after another, and reuses its memory.
class CoverageDecoder::Sink final : public flow::FlowSink, private flow::BulkSink {
 public:
  void clear() noexcept {
    tally.clear();
    errors.clear();
    gaps.clear();
    instructions = order_ = 0;
    space_ = trace::kAnySpace;
  }

  void on_context(const flow::Context& context) override { space_ = context.space; }
  void on_block(const flow::Block& block) override { instructions += block.insns.size(); }
  void on_branch(const flow::Branch& branch) override {
    constexpr std::uint8_t kBoth = flow::FROM_KNOWN | flow::TO_KNOWN;
    if ((branch.flags & kBoth) == kBoth) tally.add({branch.from_ip, branch.to_ip, 1, space_, branch.kind});
  }
  void on_event(const flow::Event&) override { ++order_; }
  void on_error(const flow::FlowError& error) override { errors.push_back({error, instructions, order_++}); }
  void on_gap(const flow::Gap& gap) override { gaps.push_back({gap, instructions, order_++}); }
  [[nodiscard]] flow::BulkSink* bulk() override { return this; }

  EdgeTally tally;
  std::vector<ErrorRow> errors;
  std::vector<GapRow> gaps;
  std::uint64_t instructions = 0;

 private:
  [[nodiscard]] bool open(flow::BulkRoom& room) override {
    room.kind = flow::BulkRows::EDGES;
    room.space = space_;
    room.in_order = false;
    room.limit = SIZE_MAX;
    return true;
  }
  void close(const flow::BulkRoom& room) override {
    instructions += room.instructions;
    order_ += room.events;
  }
  void add_edges(std::span<const flow::EdgeCount>, std::uint32_t, std::uint32_t) override {}  // see open()
  void add_counts(const flow::EdgeCounts& counts, std::uint32_t space, std::uint32_t /*phase*/) override {
    tally.add_each(counts, space);
  }

  std::uint32_t space_ = trace::kAnySpace;
  std::uint64_t order_ = 0;
};

CoverageDecoder::CoverageDecoder(std::shared_ptr<const trace::TraceBundle> bundle,
                                 const flow::FlowOptions& options, image::ReadCallback callback)
    : options_(options), callback_(std::move(callback)), sink_(std::make_unique<Sink>()) {
  set_bundle(std::move(bundle));
}

CoverageDecoder::~CoverageDecoder() = default;

void CoverageDecoder::set_bundle(std::shared_ptr<const trace::TraceBundle> bundle) {
  pool_.reset();
  bundle_ = std::move(bundle);
  image_ = std::make_unique<image::Image>(bundle_, callback_);
  pool_ = std::make_unique<flow::CodeCachePool>(*image_);
}

bool CoverageDecoder::has_code_in(std::uint64_t first, std::uint64_t last) const noexcept {
  if (callback_) return true;
  return std::any_of(bundle_->code.begin(), bundle_->code.end(), [=](const trace::CodeRegion& region) {
    return region.size != 0 && region.address <= last && region.address + (region.size - 1) >= first;
  });
}

void CoverageDecoder::forget(std::uint64_t first, std::uint64_t last) {
  if (first <= last && has_code_in(first, last)) set_bundle(bundle_);
}

namespace {

[[nodiscard]] bool is_map_size(std::size_t size) noexcept {
  return std::has_single_bit(size) && size <= std::size_t{1} << 32U;
}

[[nodiscard]] base::Result<Outcome> bad_size(const char* map, std::size_t size, const char* what) {
  return base::Failure{base::Status::BAD_CONFIG, 0,
                       std::string("a ") + map + " of " + std::to_string(size) + " bytes: " + what};
}

}  // namespace

base::Result<Outcome> CoverageDecoder::decode(base::Bytes stream, const Maps& maps,
                                              const std::function<bool()>& go_on) {
  constexpr const char* kSizes = "the size must be a power of two, 2^32 at most";
  if (!maps.hits.empty() && !is_map_size(maps.hits.size())) return bad_size("map", maps.hits.size(), kSizes);
  if (!maps.virgin.empty()) {
    if (!is_map_size(maps.virgin.size())) return bad_size("virgin map", maps.virgin.size(), kSizes);
    if (!maps.hits.empty() && maps.hits.size() != maps.virgin.size())
      return bad_size("virgin map", maps.virgin.size(), "it must be as large as the map");
  }
  sink_->clear();
  Outcome outcome;
  outcome.bytes = stream.size();
  stream_.data = trace::TraceBuffer(stream, nullptr);
  {
    flow::FlowDecoder decoder(stream_, bundle_->configuration, *image_, options_, *sink_, nullptr,
                              pool_.get());
    while (decoder.run()) {
      if (!go_on || go_on()) continue;
      outcome.whole = false;
      break;
    }
  }
  stream_.data = {};
  outcome.instructions = sink_->instructions;
  outcome.edges = sink_->tally.edges().size();
  outcome.errors = sink_->errors.size();
  outcome.gaps = sink_->gaps.size();
  outcome.branches = sink_->tally.branches();
  if (!maps.hits.empty() || !maps.virgin.empty()) fill(maps, outcome);
  return outcome;
}

namespace {

constexpr std::array<std::uint8_t, 256> kBuckets = [] {
  std::array<std::uint8_t, 256> out{};
  for (std::size_t count = 0; count < out.size(); ++count)
    out[count] = hit_bucket(static_cast<std::uint8_t>(count));
  return out;
}();

}  // namespace

// Adds all counts before any is compared, because edges may share a byte.
void CoverageDecoder::fill(const Maps& maps, Outcome& outcome) {
  const std::vector<Edge>& edges = sink_->tally.edges();
  std::span<std::uint8_t> hits = maps.hits;
  if (hits.empty()) {
    if (own_hits_.size() != maps.virgin.size()) own_hits_.assign(maps.virgin.size(), 0);
    hits = own_hits_;
  }
  const std::size_t mask = hits.size() - 1;
  for (const Edge& edge : edges) {
    std::uint8_t& cell = hits[edge.hash & mask];
    cell = static_cast<std::uint8_t>(cell + std::min<std::uint64_t>(edge.count, UINT8_MAX - cell));
  }
  if (maps.virgin.empty()) return;
  for (const Edge& edge : edges) {
    const std::size_t at = edge.hash & mask;
    const std::uint8_t bucket = kBuckets[hits[at]];
    std::uint8_t& virgin = maps.virgin[at];
    if ((virgin & bucket) != 0) {
      outcome.news = std::max(outcome.news, virgin == 0xff ? News::EDGES : News::COUNTS);
      virgin = static_cast<std::uint8_t>(virgin & ~bucket);
    }
  }
  if (!maps.hits.empty()) return;
  for (const Edge& edge : edges) own_hits_[edge.hash & mask] = 0;
}

std::span<const Edge> CoverageDecoder::edges() const noexcept { return sink_->tally.edges(); }
std::span<const ErrorRow> CoverageDecoder::errors() const noexcept { return sink_->errors; }
std::span<const GapRow> CoverageDecoder::gaps() const noexcept { return sink_->gaps; }
void CoverageDecoder::sort_edges() { sink_->tally.sort(); }

std::size_t CoverageDecoder::copy_edges(const EdgeArrays& arrays) const noexcept {
  const std::span<const Edge> all = edges();
  const auto copy = [&all](auto out, auto of) {
    const auto some = all.first(std::min(all.size(), out.size()));
    std::transform(some.begin(), some.end(), out.begin(), of);
  };
  copy(arrays.from_ip, [](const Edge& edge) { return edge.from_ip; });
  copy(arrays.to_ip, [](const Edge& edge) { return edge.to_ip; });
  copy(arrays.kind, [](const Edge& edge) { return static_cast<std::uint8_t>(edge.kind); });
  copy(arrays.count, [](const Edge& edge) { return edge.count; });
  return all.size();
}

}  // namespace ptkit::aggregate
