// A map from disjoint address ranges to values. A later range replaces what it overlaps.
#pragma once

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
