// The slowest calls of each function: a heap for each, with the shortest of them on top.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ptkit::tables::calls {

class SlowestCalls {
 public:
  static constexpr std::size_t kMostOfOne = 100;

  // `most`: calls of all functions together. Each function has as many, or all of its calls.
  explicit SlowestCalls(std::size_t most) : most_(most), of_one_(std::min(most, kMostOfOne)) {}

  // Of calls of equal length, those that began first are the slowest. Their order does not matter.
  void add(std::uint32_t function, std::uint64_t length, std::uint64_t id) {
    if (of_one_ == 0) return;
    if (function >= heaps_.size()) heaps_.resize(std::max<std::size_t>(function + 1, heaps_.size() * 2));
    std::vector<Call>& heap = heaps_[function];
    const Call call{length, id};
    if (heap.size() >= of_one_) {
      if (!call.is_slower(heap.front())) return;
      drop_shortest(heap);
    }
    heap.push_back(call);
    std::ranges::push_heap(heap, kSlowerFirst);
    ++size_;
    while (size_ > most_) limit(of_one_ - 1);
  }
  // Whether a call that was added is among the slowest of its function.
  [[nodiscard]] bool has(std::uint32_t function, std::uint64_t length, std::uint64_t id) const noexcept {
    if (of_one_ == 0 || function >= heaps_.size()) return false;
    const std::vector<Call>& heap = heaps_[function];
    return heap.size() < of_one_ || !heap.front().is_slower({length, id});
  }
  // Keeps no more of each function than this.
  void limit(std::size_t of_one) {
    if (of_one >= of_one_) return;
    of_one_ = of_one;
    for (std::vector<Call>& heap : heaps_) {
      while (heap.size() > of_one_) drop_shortest(heap);
    }
  }
  [[nodiscard]] std::size_t of_one() const noexcept { return of_one_; }
  // How many calls there are.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return heaps_.capacity() * sizeof(std::vector<Call>) + 2 * size_ * sizeof(Call);
  }

 private:
  struct Call {
    std::uint64_t length = 0;
    std::uint64_t id = 0;

    [[nodiscard]] bool is_slower(const Call& other) const noexcept {
      return length != other.length ? length > other.length : id < other.id;
    }
  };
  static constexpr auto kSlowerFirst = [](const Call& a, const Call& b) { return a.is_slower(b); };
  void drop_shortest(std::vector<Call>& heap) noexcept {
    std::ranges::pop_heap(heap, kSlowerFirst);
    heap.pop_back();
    --size_;
  }

  std::size_t most_;
  std::size_t of_one_;
  std::vector<std::vector<Call>> heaps_;  // by function
  std::size_t size_ = 0;
};

}  // namespace ptkit::tables::calls
