#include "image/image.h"

#include <algorithm>
#include <mutex>
#include <queue>
#include <shared_mutex>
#include <unordered_map>

#include "image/pages.h"

namespace ptkit::image {
namespace {

using trace::CodeRegion;
using trace::SpaceId;

constexpr std::uint64_t kLastAddress = std::numeric_limits<std::uint64_t>::max();

std::uint64_t size_of(const CodeRegion& region) noexcept {
  return region.size != 0 ? region.size : region.bytes.size();
}

std::uint64_t last_of(const CodeRegion& region) noexcept {
  const std::uint64_t length = size_of(region) - 1;
  return length > kLastAddress - region.address ? kLastAddress : region.address + length;
}

bool is_usable(const CodeRegion& region) noexcept {
  return size_of(region) != 0 && region.tsc_from < region.tsc_to;
}

bool is_valid_at(const CodeRegion& region, std::uint64_t tsc) noexcept {
  return region.tsc_from <= tsc && (tsc < region.tsc_to || region.tsc_to == trace::kTscMax);
}

}  // namespace

bool has_cr3(const trace::Space& space, std::uint64_t cr3) noexcept {
  const auto same = [cr3](std::uint64_t one) { return ((one ^ cr3) & trace::kCr3Address) == 0; };
  return space.cr3_known && (same(space.cr3) || (space.user_cr3 != 0 && same(space.user_cr3)));
}

struct ImageState {
  ImageState(std::shared_ptr<const trace::TraceBundle> the_bundle, ReadCallback callback);

  const CodeView& view(SpaceId space, std::uint64_t tsc);

  std::shared_ptr<const trace::TraceBundle> bundle;
  CallbackPages pages;
  bool has_bytes = false;
  std::unordered_map<std::uint64_t, SpaceId> spaces_by_cr3;

 private:
  using Piece = CodeView::Piece;
  struct Span {  // a region, ready to be laid over those before it
    std::uint64_t first;
    std::uint64_t last;
    std::size_t priority;
    std::int32_t region;
  };
  struct SpaceViews {
    std::vector<std::int32_t> regions;      // seen from the space, least important first
    std::vector<std::uint64_t> boundaries;  // times at which what is seen changes; the first is kTscMin
    std::vector<std::unique_ptr<CodeView>> views;  // one per boundary, made when first asked for
  };

  SpaceViews& views_of(SpaceId space);
  std::unique_ptr<CodeView> make_view(const SpaceViews& views, SpaceId space, std::size_t epoch);
  static std::vector<Piece> lay_out(std::vector<Span> spans);
  void lay_down(std::vector<Span>& spans, std::vector<Span> from, bool own) const;

  std::shared_mutex mutex_;  // guards what follows; views themselves are never changed
  std::unordered_map<SpaceId, SpaceViews> spaces_;
  std::uint32_t next_id_ = 0;
};

ImageState::ImageState(std::shared_ptr<const trace::TraceBundle> the_bundle, ReadCallback callback)
    : bundle(std::move(the_bundle)), pages(std::move(callback)) {
  for (const CodeRegion& region : bundle->code) {
    has_bytes = has_bytes || (is_usable(region) && region.bytes.size() != 0);
  }
  for (std::size_t i = 0; i < bundle->spaces.size(); ++i) {
    const trace::Space& space = bundle->spaces[i];
    if (space.cr3_known) spaces_by_cr3.emplace(space.cr3 & trace::kCr3Address, static_cast<SpaceId>(i));
    if (space.user_cr3 != 0)
      spaces_by_cr3.emplace(space.user_cr3 & trace::kCr3Address, static_cast<SpaceId>(i));
  }
}

ImageState::SpaceViews& ImageState::views_of(SpaceId space) {
  const auto [found, is_new] = spaces_.try_emplace(space);
  SpaceViews& views = found->second;
  if (!is_new) return views;
  const auto take = [&](SpaceId owner) {
    for (std::size_t i = 0; i < bundle->code.size(); ++i) {
      const CodeRegion& region = bundle->code[i];
      if (region.space != owner || !is_usable(region)) continue;
      views.regions.push_back(static_cast<std::int32_t>(i));
      views.boundaries.push_back(region.tsc_from);
      if (region.tsc_to != trace::kTscMax) views.boundaries.push_back(region.tsc_to);
    }
  };
  views.boundaries.push_back(trace::kTscMin);
  take(trace::kAnySpace);
  if (space != trace::kAnySpace) take(space);
  std::sort(views.boundaries.begin(), views.boundaries.end());
  views.boundaries.erase(std::unique(views.boundaries.begin(), views.boundaries.end()),
                         views.boundaries.end());
  views.views.resize(views.boundaries.size());
  return views;
}

// Sweeps over the addresses at which something begins or ends. On top of the heap is the region that is seen.
std::vector<CodeView::Piece> ImageState::lay_out(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.first < b.first; });
  const auto less = [](const Span& a, const Span& b) { return a.priority < b.priority; };
  std::priority_queue<Span, std::vector<Span>, decltype(less)> open(less);
  std::vector<Piece> pieces;
  std::size_t next = 0;
  std::uint64_t at = 0;
  while (next < spans.size() || !open.empty()) {
    if (open.empty()) at = spans[next].first;
    while (next < spans.size() && spans[next].first == at) open.push(spans[next++]);
    const Span top = open.top();
    const std::uint64_t last = next < spans.size() ? std::min(top.last, spans[next].first - 1) : top.last;
    if (!pieces.empty() && pieces.back().region == top.region && pieces.back().last + 1 == at) {
      pieces.back().last = last;
    } else {
      pieces.push_back({at, last, top.region});
    }
    if (last == kLastAddress) break;
    at = last + 1;
    while (!open.empty() && open.top().last < at) open.pop();
  }
  return pieces;
}

// What the space itself has mapped wins over what is seen from everywhere; but bytes win over a mapping whose
// bytes are missing.
void ImageState::lay_down(std::vector<Span>& spans, std::vector<Span> from, bool own) const {
  for (const Piece& piece : lay_out(std::move(from))) {
    const bool there = bundle->code[static_cast<std::size_t>(piece.region)].bytes.size() != 0;
    const std::size_t priority = (there ? 2U : 0U) + (own ? 1U : 0U);
    spans.push_back({piece.first, piece.last, priority, piece.region});
  }
}

std::unique_ptr<CodeView> ImageState::make_view(const SpaceViews& views, SpaceId space, std::size_t epoch) {
  auto view = std::make_unique<CodeView>();
  view->state_ = this;
  view->space_ = space;
  view->id_ = next_id_++;
  view->valid_from_ = views.boundaries[epoch];
  view->valid_to_ = epoch + 1 < views.boundaries.size() ? views.boundaries[epoch + 1] : trace::kTscMax;
  std::vector<Span> shared;
  std::vector<Span> own;
  for (std::size_t i = 0; i < views.regions.size(); ++i) {
    const CodeRegion& region = bundle->code[static_cast<std::size_t>(views.regions[i])];
    if (!is_valid_at(region, view->valid_from_)) continue;
    auto& of = region.space == trace::kAnySpace ? shared : own;
    of.push_back({region.address, last_of(region), i, views.regions[i]});
  }
  std::vector<Span> spans;
  lay_down(spans, std::move(shared), false);
  lay_down(spans, std::move(own), true);
  view->pieces_ = lay_out(std::move(spans));
  view->landmarks_.reserve(view->pieces_.size() / CodeView::kStride + 1);
  for (std::size_t i = 0; i < view->pieces_.size(); i += CodeView::kStride) {
    view->landmarks_.push_back(view->pieces_[i].first);
  }
  return view;
}

const CodeView& ImageState::view(SpaceId space, std::uint64_t tsc) {
  const auto epoch_of = [tsc](const SpaceViews& views) {
    const auto above = std::upper_bound(views.boundaries.begin(), views.boundaries.end(), tsc);
    return static_cast<std::size_t>(above - views.boundaries.begin()) - 1;
  };
  {
    const std::shared_lock lock(mutex_);
    const auto found = spaces_.find(space);
    if (found != spaces_.end()) {
      const auto& view = found->second.views[epoch_of(found->second)];
      if (view) return *view;
    }
  }
  const std::unique_lock lock(mutex_);
  SpaceViews& views = views_of(space);
  const std::size_t epoch = epoch_of(views);
  if (!views.views[epoch]) views.views[epoch] = make_view(views, space, epoch);
  return *views.views[epoch];
}

CodeView::Spot CodeView::spot(std::uint64_t address) const noexcept {
  const auto mark = std::upper_bound(landmarks_.begin(), landmarks_.end(), address);
  // The pieces from the last landmark that is not above to the next one.
  const auto next = static_cast<std::size_t>(mark - landmarks_.begin()) * kStride;
  const auto first = pieces_.begin() + static_cast<std::ptrdiff_t>(next - (next == 0 ? 0 : kStride));
  const auto end = pieces_.begin() + static_cast<std::ptrdiff_t>(std::min(next, pieces_.size()));
  const auto above =
      std::find_if(first, end, [address](const Piece& piece) { return piece.first > address; });
  if (above != pieces_.begin()) {
    const Piece& piece = *(above - 1);
    if (address <= piece.last) return {&piece, piece.last};
  }
  return {nullptr, above == pieces_.end() ? kLastAddress : above->first - 1};
}

base::Bytes CodeView::region_bytes(const Spot& at, std::uint64_t address) const noexcept {
  if (at.piece == nullptr) return {};
  const CodeRegion& region = state_->bundle->code[static_cast<std::size_t>(at.piece->region)];
  const base::Bytes all = region.bytes.bytes();
  const std::uint64_t skip = address - region.address;
  if (skip >= all.size()) return {};
  const std::uint64_t rest = std::min<std::uint64_t>(all.size() - skip - 1, at.last - address) + 1;
  return all.subspan(static_cast<std::size_t>(skip), static_cast<std::size_t>(rest));
}

std::size_t CodeView::read(std::uint64_t address, std::span<std::uint8_t> out) const {
  std::size_t done = 0;
  while (done < out.size()) {
    const Spot at = spot(address);
    base::Bytes bytes = region_bytes(at, address);
    if (bytes.empty()) bytes = state_->pages.fetch(space_, address);
    if (bytes.empty()) break;
    // `last` is inclusive: a span that reaches it has one byte more than their difference.
    const std::uint64_t limit = std::min<std::uint64_t>(bytes.size() - 1, at.last - address);
    const std::size_t size = std::min(static_cast<std::size_t>(limit) + 1, out.size() - done);
    std::copy_n(bytes.begin(), size, out.begin() + static_cast<std::ptrdiff_t>(done));
    done += size;
    if (size - 1 == kLastAddress - address) break;  // the address space ends here
    address += size;
  }
  return done;
}

base::Bytes CodeView::bytes_at(std::uint64_t address) const noexcept {
  const Spot at = spot(address);
  base::Bytes bytes = region_bytes(at, address);
  if (bytes.empty()) bytes = state_->pages.at(space_, address);
  if (!bytes.empty() && bytes.size() - 1 > at.last - address) {
    bytes = bytes.first(static_cast<std::size_t>(at.last - address) + 1);
  }
  return bytes;
}

Source CodeView::source_at(std::uint64_t address) const noexcept {
  const Spot at = spot(address);
  const base::Bytes bytes = region_bytes(at, address);
  if (bytes.empty()) return {bytes_at(address)};
  const CodeRegion& region = state_->bundle->code[static_cast<std::size_t>(at.piece->region)];
  return {bytes, region.file, region.file_offset + (address - region.address)};
}

Provenance CodeView::provenance(std::uint64_t address) const noexcept {
  const Spot at = spot(address);
  if (at.piece == nullptr) return {};
  const CodeRegion& region = state_->bundle->code[static_cast<std::size_t>(at.piece->region)];
  return {at.piece->region, region.file, region.address, size_of(region)};
}

Image::Image(std::shared_ptr<const trace::TraceBundle> bundle, ReadCallback callback)
    : state_(std::make_shared<ImageState>(std::move(bundle), std::move(callback))) {}

const CodeView& Image::view(SpaceId space, std::uint64_t tsc) const { return state_->view(space, tsc); }

SpaceId Image::space_of_cr3(std::uint64_t cr3, SpaceId otherwise) const noexcept {
  const auto found = state_->spaces_by_cr3.find(cr3 & trace::kCr3Address);
  return found == state_->spaces_by_cr3.end() ? otherwise : found->second;
}

const trace::TraceBundle& Image::bundle() const noexcept { return *state_->bundle; }
const ReadCallback& Image::callback() const noexcept { return state_->pages.callback(); }
bool Image::empty() const noexcept { return !state_->has_bytes && !callback(); }

}  // namespace ptkit::image
