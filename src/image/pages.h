// Memory that a callback supplied, kept by page. Internal to src/image.
#pragma once

#include <array>
#include <bitset>
#include <map>
#include <memory>
#include <shared_mutex>
#include <utility>

#include "image/image.h"

namespace ptkit::image {

class CallbackPages {
 public:
  explicit CallbackPages(ReadCallback callback) : callback_(std::move(callback)) {}

  // Bytes at `address` that are at hand, up to the end of their page.
  [[nodiscard]] base::Bytes at(trace::SpaceId space, std::uint64_t address) const noexcept;
  // The same; asks the callback first if there are none.
  [[nodiscard]] base::Bytes fetch(trace::SpaceId space, std::uint64_t address);
  [[nodiscard]] const ReadCallback& callback() const noexcept { return callback_; }

 private:
  static constexpr std::size_t kPageSize = 4096;
  struct Page {
    std::array<std::uint8_t, kPageSize> bytes{};
    std::bitset<kPageSize> known;  // a byte that is known never changes: spans of it are out
  };
  void ask(trace::SpaceId space, std::uint64_t address);

  ReadCallback callback_;
  mutable std::shared_mutex mutex_;  // not held while the callback runs, which may wait for locks of its own
  std::map<std::pair<trace::SpaceId, std::uint64_t>, std::unique_ptr<Page>> pages_;
};

}  // namespace ptkit::image
