#include "capture/linux/emulator/block_bytes.h"

namespace ptkit::capture {

void BlockBytes::add(std::uint64_t pc, base::Bytes bytes) {
  const std::lock_guard lock(mutex_);
  entries_.push_back({pc, bytes_.size()});
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

BlockBytes::Block BlockBytes::get(std::uint32_t number) const {
  const BlockBytes* owner = this;
  while (number < owner->inherited_) owner = owner->parent_.get();
  const std::lock_guard lock(owner->mutex_);
  const std::size_t index = number - owner->inherited_;
  const Entry& entry = owner->entries_[index];
  const std::uint64_t end =
      index + 1 < owner->entries_.size() ? owner->entries_[index + 1].begin : owner->bytes_.size();
  return {entry.pc,
          {owner->bytes_.begin() + static_cast<std::ptrdiff_t>(entry.begin),
           owner->bytes_.begin() + static_cast<std::ptrdiff_t>(end)}};
}

}  // namespace ptkit::capture
