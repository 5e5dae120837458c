#include "code/image/image.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "code/image/code_layer.h"
#include "code/image/pages.h"

namespace ptkit::code::image {

using trace::CodeRegion;
using trace::SpaceId;

bool has_cr3(const trace::Space& space, std::uint64_t cr3) noexcept {
  const auto same = [cr3](std::uint64_t one) { return ((one ^ cr3) & trace::kCr3Address) == 0; };
  return space.cr3_known && (same(space.cr3) || (space.user_cr3 != 0 && same(space.user_cr3)));
}

namespace {

bool stays(const CodeRegion& region) noexcept {
  return region.tsc_from == trace::kTscMin && region.tsc_to == trace::kTscMax;
}

}  // namespace

struct ImageState {
  ImageState(std::shared_ptr<const trace::TraceBundle> the_bundle, ReadCallback callback);

  const CodeView& view(SpaceId space, std::uint64_t tsc);
  [[nodiscard]] Provenance provenance_of(const VisibleRegion& at) const noexcept;

  std::shared_ptr<const trace::TraceBundle> bundle;
  CallbackPages pages;
  bool has_bytes = false;
  std::unordered_map<std::uint64_t, SpaceId> spaces_by_cr3;
  // Regions of files, of spaces that also have regions without file.
  std::unordered_map<SpaceId, CodeLayer> files;

 private:
  struct SpaceViews {
    CodeLayer own;
    std::unordered_map<std::uint64_t, std::unique_ptr<CodeView>>
        views;  // by the boundary numbers of both layers
  };

  CodeLayer take_layer(SpaceId space);
  void find_files();

  // Indices of code regions, by space, until take_layer() takes them at the space's first use.
  std::unordered_map<SpaceId, std::vector<std::int32_t>> regions_;
  std::unordered_map<SpaceId, std::vector<std::uint64_t>> name_times_;  // when names change, by space
  CodeLayer shared_;                                                    // regions of all spaces
  std::shared_mutex mutex_;  // guards what follows; views are immutable
  std::unordered_map<SpaceId, SpaceViews> spaces_;
  std::uint32_t next_id_ = 0;
  bool has_pages_ = false;  // some region is of no file
};

ImageState::ImageState(std::shared_ptr<const trace::TraceBundle> the_bundle, ReadCallback callback)
    : bundle(std::move(the_bundle)), pages(std::move(callback)) {
  for (std::size_t i = 0; i < bundle->code.size(); ++i) {
    const CodeRegion& region = bundle->code[i];
    has_pages_ = has_pages_ || region.file < 0;
    has_bytes = has_bytes || (region.tsc_from < region.tsc_to && region.bytes.size() != 0);
    regions_[region.space].push_back(static_cast<std::int32_t>(i));
  }
  for (const trace::NameRange& range : bundle->names) {
    if (range.tsc_from != trace::kTscMin) name_times_[range.space].push_back(range.tsc_from);
    if (range.tsc_to != trace::kTscMax) name_times_[range.space].push_back(range.tsc_to);
  }
  find_files();
  shared_ = take_layer(trace::kAnySpace);
  for (std::size_t i = 0; i < bundle->spaces.size(); ++i) {
    const trace::Space& space = bundle->spaces[i];
    if (space.cr3_known) spaces_by_cr3.emplace(space.cr3 & trace::kCr3Address, static_cast<SpaceId>(i));
    if (space.user_cr3 != 0)
      spaces_by_cr3.emplace(space.user_cr3 & trace::kCr3Address, static_cast<SpaceId>(i));
  }
}

void ImageState::find_files() {
  for (const auto& [space, regions] : regions_) {
    const bool is_shared = space == trace::kAnySpace;
    if (!is_shared && (space >= bundle->spaces.size() || !bundle->spaces[space].cr3_known)) continue;
    std::vector<std::int32_t> found;
    bool has_pages = false;
    for (const std::int32_t number : regions) {
      const CodeRegion& region = bundle->code[static_cast<std::size_t>(number)];
      if (!is_shared && !stays(region)) continue;
      if (region.file >= 0) found.push_back(number);
      has_pages = has_pages || region.file < 0;
    }
    // Pages of one space may lie over a file of all spaces.
    if ((has_pages || (is_shared && has_pages_)) && !found.empty())
      files.emplace(space, CodeLayer(bundle->code, found));
  }
}

Provenance ImageState::provenance_of(const VisibleRegion& at) const noexcept {
  if (at.region < 0) return {-1, -1, 0, 0, at.last};
  const CodeRegion& region = bundle->code[static_cast<std::size_t>(at.region)];
  return {at.region, region.file, region.address, size_of(region), at.last};
}

CodeLayer ImageState::take_layer(SpaceId space) {
  const auto found = regions_.find(space);
  if (found == regions_.end()) return {};
  const std::vector<std::int32_t> regions = std::move(found->second);
  regions_.erase(found);
  return {bundle->code, regions, name_times_[space]};
}

const CodeView& ImageState::view(SpaceId space, std::uint64_t tsc) {
  const std::size_t shared = shared_.boundary_at(tsc);
  const auto key_of = [&](const SpaceViews& of) { return shared << 32U | of.own.boundary_at(tsc); };
  {
    const std::shared_lock lock(mutex_);
    if (const auto found = spaces_.find(space); found != spaces_.end()) {
      const auto view = found->second.views.find(key_of(found->second));
      if (view != found->second.views.end()) return *view->second;
    }
  }
  const std::unique_lock lock(mutex_);
  const auto [found, is_new] = spaces_.try_emplace(space);
  SpaceViews& of = found->second;
  if (is_new) of.own = take_layer(space);
  std::unique_ptr<CodeView>& view = of.views[key_of(of)];
  if (view) return *view;
  view = std::make_unique<CodeView>();
  view->state_ = this;
  view->own_ = &of.own;
  view->shared_ = &shared_;
  view->space_ = space;
  view->id_ = next_id_++;
  const std::size_t own = of.own.boundary_at(tsc);
  view->valid_from_ = std::max(of.own.begins(own), shared_.begins(shared));
  view->valid_to_ = std::min(of.own.begins(own + 1), shared_.begins(shared + 1));
  return *view;
}

// A region of the space hides a region of all spaces. But a region with bytes wins over a region without
// bytes.
VisibleRegion CodeView::visible(std::uint64_t address) const {
  const auto has_bytes = [this](const VisibleRegion& at) {
    return at.region >= 0 && state_->bundle->code[static_cast<std::size_t>(at.region)].bytes.size() != 0;
  };
  const VisibleRegion own = own_->at(address, valid_from_);
  if (has_bytes(own)) return own;
  const VisibleRegion shared = shared_->at(address, valid_from_);
  const bool is_own = own.region >= 0 && !has_bytes(shared);
  return {is_own ? own.region : shared.region, std::min(own.last, shared.last)};
}

base::Bytes CodeView::region_bytes(const VisibleRegion& at, std::uint64_t address) const noexcept {
  if (at.region < 0) return {};
  const CodeRegion& region = state_->bundle->code[static_cast<std::size_t>(at.region)];
  const base::Bytes all = region.bytes.bytes();
  const std::uint64_t skip = address - region.address;
  if (skip >= all.size()) return {};
  const std::uint64_t rest = std::min<std::uint64_t>(all.size() - skip - 1, at.last - address) + 1;
  return all.subspan(static_cast<std::size_t>(skip), static_cast<std::size_t>(rest));
}

std::size_t CodeView::read(std::uint64_t address, std::span<std::uint8_t> out) const {
  std::size_t done = 0;
  while (done < out.size()) {
    const VisibleRegion at = visible(address);
    base::Bytes bytes = region_bytes(at, address);
    if (bytes.empty()) bytes = state_->pages.fetch(space_, address);
    if (bytes.empty()) break;
    // `last` is inclusive, hence + 1.
    const std::uint64_t limit = std::min<std::uint64_t>(bytes.size() - 1, at.last - address);
    const std::size_t size = std::min(static_cast<std::size_t>(limit) + 1, out.size() - done);
    std::copy_n(bytes.begin(), size, out.begin() + static_cast<std::ptrdiff_t>(done));
    done += size;
    if (size - 1 == std::numeric_limits<std::uint64_t>::max() - address)
      break;  // the address space ends here
    address += size;
  }
  return done;
}

base::Bytes CodeView::bytes_at(std::uint64_t address) const {
  const VisibleRegion at = visible(address);
  base::Bytes bytes = region_bytes(at, address);
  if (bytes.empty()) bytes = state_->pages.at(space_, address);
  if (!bytes.empty() && bytes.size() - 1 > at.last - address) {
    bytes = bytes.first(static_cast<std::size_t>(at.last - address) + 1);
  }
  return bytes;
}

Provenance CodeView::provenance(std::uint64_t address) const {
  return state_->provenance_of(visible(address));
}

Image::Image(std::shared_ptr<const trace::TraceBundle> bundle, ReadCallback callback)
    : state_(std::make_shared<ImageState>(std::move(bundle), std::move(callback))) {}

const CodeView& Image::view(SpaceId space, std::uint64_t tsc) const { return state_->view(space, tsc); }

Provenance Image::file_beneath(SpaceId space, const Provenance& above, std::uint64_t address,
                               std::uint64_t tsc) const {
  SpaceId own = trace::kAnySpace;
  if (above.region >= 0) {
    const CodeRegion& page = bundle().code[static_cast<std::size_t>(above.region)];
    if (page.space == space && stays(page)) own = space;
  }
  std::uint64_t last = above.last;
  for (const SpaceId of : {own, trace::kAnySpace}) {
    const auto files = state_->files.find(of);
    if (files == state_->files.end()) continue;
    Provenance found = state_->provenance_of(files->second.at(address, tsc));
    found.last = last = std::min(last, found.last);
    if (found.file >= 0) return found;
  }
  return {above.region, above.file, above.region_address, above.region_size, last};
}

SpaceId Image::space_of_cr3(std::uint64_t cr3, SpaceId otherwise) const noexcept {
  const auto found = state_->spaces_by_cr3.find(cr3 & trace::kCr3Address);
  return found == state_->spaces_by_cr3.end() ? otherwise : found->second;
}

const trace::TraceBundle& Image::bundle() const noexcept { return *state_->bundle; }
const ReadCallback& Image::callback() const noexcept { return state_->pages.callback(); }
bool Image::empty() const noexcept { return !state_->has_bytes && !callback(); }

}  // namespace ptkit::code::image
