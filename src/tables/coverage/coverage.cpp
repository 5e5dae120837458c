#include "tables/coverage/coverage.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

namespace ptkit::tables::coverage {

// Collects edges, errors and gaps of one stream after another, and reuses its memory.
class CoverageDecoder::Sink final : public flow::FlowSink, private flow::BulkSink {
 public:
  void clear() noexcept {
    tally.clear();
    errors.clear();
    gaps.clear();
    instructions = order_ = 0;
    space_ = trace::kAnySpace;
    go_on_ = nullptr;
    stopped_ = false;
  }
  // Called until the stream's end; false ends the decode.
  void begin_stream(const std::function<bool()>& go_on) noexcept { go_on_ = go_on ? &go_on : nullptr; }
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }
  void end_stream() noexcept { go_on_ = nullptr; }

  void on_context(const flow::Context& context) override { space_ = context.space; }
  void on_block(const flow::Block& block) override { instructions += block.insns.size(); }
  [[nodiscard]] bool takes_straight_code() const override { return true; }
  void on_straight_code(const flow::StreamSpan&, std::uint64_t count) override { instructions += count; }
  [[nodiscard]] bool full() const override { return stopped_; }
  [[nodiscard]] bool cancelled() const override {
    if (go_on_ != nullptr && !(*go_on_)()) stopped_ = true;
    return stopped_;
  }
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
  const std::function<bool()>* go_on_ = nullptr;
  mutable bool stopped_ = false;
};

CoverageDecoder::CoverageDecoder(std::shared_ptr<const trace::TraceBundle> bundle,
                                 const flow::FlowOptions& options, code::image::ReadCallback callback)
    : options_(options), callback_(std::move(callback)), sink_(std::make_unique<Sink>()) {
  set_bundle(std::move(bundle));
}

CoverageDecoder::~CoverageDecoder() = default;

void CoverageDecoder::set_bundle(std::shared_ptr<const trace::TraceBundle> bundle) {
  auto image = std::make_unique<code::image::Image>(bundle, callback_);
  pool_ = std::make_unique<flow::CodeCachePool>(*image);
  image_ = std::move(image);
  bundle_ = std::move(bundle);
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

[[nodiscard]] bool overlap(std::span<const std::uint8_t> one, std::span<const std::uint8_t> other) noexcept {
  const auto first = reinterpret_cast<std::uintptr_t>(one.data());
  const auto second = reinterpret_cast<std::uintptr_t>(other.data());
  return first < second + other.size() && second < first + one.size();
}

[[nodiscard]] std::optional<base::Failure> bad_size(const char* map, std::size_t size, const char* what) {
  return base::bad_config(std::string("a ") + map + " of " + std::to_string(size) + " bytes: " + what);
}

[[nodiscard]] std::optional<base::Failure> check(const Maps& maps) {
  constexpr const char* kSizes = "the size must be a power of two, 2^32 at most";
  if (!maps.hits.empty() && !is_map_size(maps.hits.size())) return bad_size("map", maps.hits.size(), kSizes);
  if (maps.virgin.empty()) return std::nullopt;
  if (!is_map_size(maps.virgin.size())) return bad_size("virgin map", maps.virgin.size(), kSizes);
  if (maps.hits.empty()) return std::nullopt;
  if (maps.hits.size() != maps.virgin.size())
    return bad_size("virgin map", maps.virgin.size(), "it must be as large as the map");
  if (overlap(maps.hits, maps.virgin))
    return base::bad_config("the map and the virgin map share memory; give each its own");
  return std::nullopt;
}

}  // namespace

// Forgets what an exception may have left half done: decoded code, views of the image, and the stream, which
// is the caller's.
class CoverageDecoder::Unwinding {
 public:
  explicit Unwinding(CoverageDecoder& decoder) noexcept : decoder_(decoder) {}
  ~Unwinding() {
    decoder_.stream_.data = {};
    if (finished) return;
    decoder_.sink_->clear();
    decoder_.pool_.reset();
    decoder_.image_.reset();
  }
  Unwinding(const Unwinding&) = delete;
  Unwinding& operator=(const Unwinding&) = delete;

  bool finished = false;

 private:
  CoverageDecoder& decoder_;
};

base::Result<Outcome> CoverageDecoder::decode(base::Bytes stream, const Maps& maps,
                                              const std::function<bool()>& go_on) {
  if (auto failure = check(maps)) return *std::move(failure);
  sink_->clear();
  new_edges_.clear();
  if (image_ == nullptr) set_bundle(bundle_);
  Outcome outcome;
  outcome.bytes = stream.size();
  run(stream, go_on, outcome);
  outcome.instructions = sink_->instructions;
  outcome.edges = sink_->tally.edges().size();
  outcome.errors = sink_->errors.size();
  outcome.gaps = sink_->gaps.size();
  outcome.branches = sink_->tally.branches();
  if (!maps.hits.empty() || !maps.virgin.empty()) fill(maps, outcome);
  return outcome;
}

void CoverageDecoder::run(base::Bytes stream, const std::function<bool()>& go_on, Outcome& outcome) {
  if (stream.empty()) {  // of a recording it is a CPU without trace; here, the program was not traced
    flow::FlowError error;
    error.code = base::Status::NO_SYNC;
    sink_->on_error(error);
    return;
  }
  Unwinding unwinding(*this);
  stream_.data = trace::TraceBuffer(stream, nullptr);
  flow::FlowDecoder decoder(stream_, bundle_->configuration, *image_, options_, *sink_, nullptr, pool_.get());
  sink_->begin_stream(go_on);
  while (!sink_->stopped() && decoder.run()) static_cast<void>(sink_->cancelled());
  sink_->end_stream();
  outcome.whole = !sink_->stopped();
  unwinding.finished = true;
}

base::Bytes CoverageDecoder::join(std::span<const base::Bytes> chunks) {
  const auto has_bytes = [](base::Bytes chunk) { return !chunk.empty(); };
  const auto first = std::find_if(chunks.begin(), chunks.end(), has_bytes);
  if (first == chunks.end()) return {};
  if (std::none_of(first + 1, chunks.end(), has_bytes)) return *first;
  joined_.clear();
  for (const base::Bytes chunk : chunks) joined_.insert(joined_.end(), chunk.begin(), chunk.end());
  return joined_;
}

namespace {

constexpr std::array<std::uint8_t, 256> kBuckets = [] {
  std::array<std::uint8_t, 256> out{};
  for (std::size_t count = 0; count < out.size(); ++count)
    out[count] = hit_bucket(static_cast<std::uint8_t>(count));
  return out;
}();

}  // namespace

// Adds all counts before any is compared, because edges may share a byte. Takes all memory first: an
// exception leaves the maps as they were.
void CoverageDecoder::fill(const Maps& maps, Outcome& outcome) {
  const std::vector<Edge>& edges = sink_->tally.edges();
  std::span<std::uint8_t> hits = maps.hits;
  if (hits.empty()) {
    if (own_hits_.size() != maps.virgin.size()) own_hits_.assign(maps.virgin.size(), 0);
    hits = own_hits_;
  }
  if (!maps.virgin.empty()) new_edges_.reserve(edges.size());
  if (maps.clear) std::fill(maps.hits.begin(), maps.hits.end(), std::uint8_t{0});
  const std::size_t mask = hits.size() - 1;
  for (const Edge& edge : edges) {
    std::uint8_t& cell = hits[edge.hash & mask];
    cell = static_cast<std::uint8_t>(cell + std::min<std::uint64_t>(edge.count, UINT8_MAX - cell));
  }
  if (maps.virgin.empty()) return;
  compare(hits, maps.virgin, outcome);
  if (!maps.hits.empty()) return;
  for (const Edge& edge : edges) own_hits_[edge.hash & mask] = 0;
}

// Clears no bit before all new edges are found, because edges may share a byte.
void CoverageDecoder::compare(std::span<const std::uint8_t> hits, std::span<std::uint8_t> virgin,
                              Outcome& outcome) {
  const std::size_t mask = hits.size() - 1;
  for (const Edge& edge : sink_->tally.edges()) {
    const std::size_t at = edge.hash & mask;
    if ((virgin[at] & kBuckets[hits[at]]) == 0) continue;
    outcome.news = std::max(outcome.news, virgin[at] == 0xff ? News::EDGES : News::COUNTS);
    if (virgin[at] == 0xff) new_edges_.push_back(edge);
  }
  outcome.new_edges = new_edges_.size();
  if (outcome.news == News::NONE) return;
  for (const Edge& edge : sink_->tally.edges()) {
    const std::size_t at = edge.hash & mask;
    virgin[at] = static_cast<std::uint8_t>(virgin[at] & ~kBuckets[hits[at]]);
  }
}

std::span<const Edge> CoverageDecoder::edges() const noexcept { return sink_->tally.edges(); }
std::span<const ErrorRow> CoverageDecoder::errors() const noexcept { return sink_->errors; }
std::span<const GapRow> CoverageDecoder::gaps() const noexcept { return sink_->gaps; }

void CoverageDecoder::sort_edges() {
  sink_->tally.sort();
  std::sort(new_edges_.begin(), new_edges_.end(), columns::is_before);
}

void copy_edges(std::span<const Edge> edges, const EdgeArrays& arrays) noexcept {
  const auto copy = [edges](auto out, auto of) {
    const auto some = edges.first(std::min(edges.size(), out.size()));
    std::transform(some.begin(), some.end(), out.begin(), of);
  };
  copy(arrays.from_ip, [](const Edge& edge) { return edge.from_ip; });
  copy(arrays.to_ip, [](const Edge& edge) { return edge.to_ip; });
  copy(arrays.kind, [](const Edge& edge) { return static_cast<std::uint8_t>(edge.kind); });
  copy(arrays.count, [](const Edge& edge) { return edge.count; });
}

}  // namespace ptkit::tables::coverage
