// A map from disjoint address ranges to values. A later range replaces what it overlaps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace ptkit::base {

template <typename Value>
class IntervalMap {
 public:
  struct Entry {
    std::uint64_t last = 0;  // inclusive: ranges may end with the address space
    Value value;
  };
  using Entries = std::map<std::uint64_t, Entry>;  // by first address, disjoint

  void assign(std::uint64_t first, std::uint64_t last, const Value& value) {
    cut(first);
    if (last != ~std::uint64_t{0}) cut(last + 1);
    entries_.erase(entries_.lower_bound(first), entries_.upper_bound(last));
    entries_.insert_or_assign(first, Entry{last, value});
  }
  // The range of `size` addresses, up to the end of the address space; none: nothing happens.
  void assign_size(std::uint64_t first, std::uint64_t size, const Value& value) {
    if (size != 0) assign(first, last_of(first, size), value);
  }
  [[nodiscard]] static std::uint64_t last_of(std::uint64_t first, std::uint64_t size) noexcept {
    return first + std::min(size - 1, ~first);
  }
  // Each address of [first, last] is in an entry. The time grows with the entries that overlap the range.
  [[nodiscard]] bool covers(std::uint64_t first, std::uint64_t last) const {
    for (auto at = find(first); at != entries_.end() && at->first <= first; ++at) {
      if (at->second.last >= last) return true;
      first = at->second.last + 1;
    }
    return false;
  }
  // The entry that contains `address`, or end().
  [[nodiscard]] typename Entries::const_iterator find(std::uint64_t address) const {
    const auto next = entries_.upper_bound(address);
    if (next == entries_.begin() || std::prev(next)->second.last < address) return entries_.end();
    return std::prev(next);
  }
  // Calls `function` for each entry that overlaps [first, last], in descending order.
  template <typename Function>
  void for_each_over(std::uint64_t first, std::uint64_t last, const Function& function) const {
    for (auto at = entries_.upper_bound(last); at != entries_.begin() && std::prev(at)->second.last >= first;)
      function((--at)->second.value);
  }
  [[nodiscard]] typename Entries::const_iterator begin() const noexcept { return entries_.begin(); }
  [[nodiscard]] typename Entries::const_iterator end() const noexcept { return entries_.end(); }

 private:
  // Splits the entry that contains `address` before it.
  void cut(std::uint64_t address) {
    const auto next = entries_.lower_bound(address);
    if (next == entries_.begin() || std::prev(next)->second.last < address) return;
    Entry& before = std::prev(next)->second;
    entries_.insert_or_assign(address, before);
    before.last = address - 1;
  }

  Entries entries_;
};

}  // namespace ptkit::base
