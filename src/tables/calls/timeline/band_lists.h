// Bands of a thread: no more than some thousand. The shortest gaps between bands of one kind close first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tables/calls/timeline/call_timeline.h"

namespace ptkit::tables::calls {

class BandLists {
 public:
  static constexpr std::size_t kMost = std::size_t{1} << 10U;  // of a kind

  // In their order, but for small errors.
  void add(const Band& band);
  void clear() noexcept;
  [[nodiscard]] std::uint64_t merged() const noexcept { return merged_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept;
  // All bands without overlaps, in their order. What is lost comes before what was switched out, and that
  // before what is not traced. Losses without a length stay.
  [[nodiscard]] std::vector<Band> all();

  // Parts of one thread in several streams: it was switched out only while each of the streams had it so.
  struct Part {
    BandLists* bands = nullptr;
    std::uint64_t begin = 0;  // of its first slice
    std::uint64_t end = 0;
  };
  [[nodiscard]] static BandLists joined(std::span<const Part> parts);

 private:
  static constexpr std::size_t kKinds = 3;
  void shrink(std::vector<Band>& bands, std::size_t most);

  std::array<std::vector<Band>, kKinds> of_kind_;
  std::uint64_t merged_ = 0;  // bands that became a part of another one
};

}  // namespace ptkit::tables::calls
