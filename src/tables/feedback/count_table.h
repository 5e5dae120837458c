// Hash table of counted keys. Its memory grows with distinct keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ptkit::tables::feedback {

// How often the branch before a run was executed, and what the processor recorded of its prediction.
struct Executions {
  std::uint64_t count = 0;
  std::uint64_t mispredicted = 0;
  std::uint64_t predictions = 0;  // executions of which the prediction was recorded

  Executions& operator+=(const Executions& more) noexcept {
    count += more.count;
    mispredicted += more.mispredicted;
    predictions += more.predictions;
    return *this;
  }
  bool operator==(const Executions&) const = default;
};

// The finalizer of MurmurHash3.
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t hash) noexcept {
  hash = (hash ^ (hash >> 33U)) * 0xff51afd7ed558ccdU;
  hash = (hash ^ (hash >> 33U)) * 0xc4ceb9fe1a85ec53U;
  return hash ^ (hash >> 33U);
}

// `Key` has operator== and hash().
template <typename Key>
class CountTable {
 public:
  struct Entry {
    Key key;
    Executions executions;
  };

  void add(const Key& key, const Executions& executions) {
    if ((entries_.size() + 1) * 2 > slots_.size()) grow();
    std::uint32_t& slot = find(key);
    if (slot == kFree) {
      entries_.push_back({key, executions});
      slot = static_cast<std::uint32_t>(entries_.size() - 1);
      return;
    }
    entries_[slot].executions += executions;
  }
  void add_all(const CountTable& others) {
    for (const Entry& entry : others.entries_) add(entry.key, entry.executions);
  }
  void clear() noexcept {
    entries_.clear();
    slots_.assign(slots_.size(), kFree);
  }
  // In the order in which they came first.
  [[nodiscard]] const std::vector<Entry>& entries() const noexcept { return entries_; }
  [[nodiscard]] std::vector<Entry>& entries() noexcept { return entries_; }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return entries_.capacity() * sizeof(Entry) + slots_.capacity() * sizeof(std::uint32_t);
  }

 private:
  static constexpr std::size_t kFirstSlots = 256;  // a power of two
  static constexpr std::uint32_t kFree = UINT32_MAX;

  // The slot of the key, or the free slot for it.
  [[nodiscard]] std::uint32_t& find(const Key& key) noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = static_cast<std::size_t>(key.hash()) & mask;
    while (slots_[at] != kFree && !(entries_[slots_[at]].key == key)) at = (at + 1) & mask;
    return slots_[at];
  }
  void grow() {
    slots_.assign(slots_.empty() ? kFirstSlots : slots_.size() * 2, kFree);
    for (std::size_t i = 0; i < entries_.size(); ++i) find(entries_[i].key) = static_cast<std::uint32_t>(i);
  }

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_;  // numbers of entries
};

}  // namespace ptkit::tables::feedback
