#include "flow/fast/code_cache_pool.h"

#include <algorithm>
#include <iterator>

namespace ptkit::flow {
void CodeCachePool::acquire(const code::image::CodeView& view, code::insn::ExecMode mode,
                            std::uint32_t cs_base, std::list<CachedCode>& out) {
  modes_.fetch_or(bit_of(mode), std::memory_order_relaxed);
  {
    const std::scoped_lock lock(mutex_);
    auto best = idle_.end();
    for (auto at = idle_.begin(); at != idle_.end(); ++at) {
      if (&at->blocks.view() != &view || at->blocks.mode() != mode || at->blocks.cs_base() != cs_base)
        continue;
      if (best == idle_.end() || at->blocks.decoded() > best->blocks.decoded()) best = at;
    }
    if (best != idle_.end()) {
      idle_bytes_ -= best->bytes();
      out.splice(out.end(), idle_, best);
      return;
    }
  }
  out.emplace_back(view, mode, cs_base);
}

void CodeCachePool::release(std::list<CachedCode>& caches) noexcept {
  const bool has_callback = static_cast<bool>(image_.callback());
  std::list<CachedCode> dropped;  // freed without the lock
  const std::scoped_lock lock(mutex_);
  while (!caches.empty()) {
    const CachedCode& cache = caches.front();
    const bool keep = !(has_callback && cache.blocks.met_missing_code()) && cache.bytes() <= most_bytes_;
    if (keep) idle_bytes_ += cache.bytes();
    std::list<CachedCode>& to = keep ? idle_ : dropped;
    to.splice(to.begin(), caches, caches.begin());
  }
  while (idle_bytes_ > most_bytes_) {
    idle_bytes_ -= idle_.back().bytes();
    dropped.splice(dropped.begin(), idle_, std::prev(idle_.end()));
  }
}

void CodeCachePool::note_filter_signs(base::Bytes stream, std::span<const std::uint64_t> offsets) noexcept {
  const std::scoped_lock lock(mutex_);
  for (const std::uint64_t offset : offsets) {
    const std::uint8_t* sign = stream.data() + offset;
    const auto at = std::lower_bound(filter_signs_.begin(), filter_signs_.end(), sign);
    if (at != filter_signs_.end() && *at == sign) continue;
    if (filter_signs_.size() == kMostFilterSigns) return;
    filter_signs_.insert(at, sign);
  }
}

std::size_t CodeCachePool::filter_signs() const {
  const std::scoped_lock lock(mutex_);
  return filter_signs_.size();
}

CodeCachePool::Figures CodeCachePool::idle() const {
  const std::scoped_lock lock(mutex_);
  Figures figures;
  figures.caches = idle_.size();
  figures.bytes = idle_bytes_;
  for (const CachedCode& cache : idle_) figures.decoded += cache.blocks.decoded();
  return figures;
}

void CodeCaches::clear_last() {
  if (before_clear_) before_clear_(*last_);
  last_->clear();
}

void CodeCaches::release_all() noexcept {
  by_code_.clear();
  last_ = nullptr;
  other_bytes_ = 0;
  if (pool_ != nullptr) pool_->release(caches_);
  caches_.clear();
}

BlockCache& CodeCaches::of(const code::image::CodeView& view, code::insn::ExecMode mode) {
  other_bytes_ = bytes();
  last_ = nullptr;
  if (other_bytes_ >= kMostBytes) {
    if (before_clear_) std::for_each(caches_.begin(), caches_.end(), before_clear_);
    release_all();
  }
  CachedCode*& slot = by_code_[{view.id(), mode}];
  if (slot != nullptr) {
    other_bytes_ -= slot->bytes();
  } else {
    if (pool_ != nullptr) {
      pool_->acquire(view, mode, cs_base_, caches_);
    } else {
      caches_.emplace_back(view, mode, cs_base_);
    }
    slot = &caches_.back();
  }
  last_ = slot;
  return slot->blocks;
}

}  // namespace ptkit::flow
