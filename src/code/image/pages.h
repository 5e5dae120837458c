// A cache of the memory that a callback returned, by page. Internal to src/code/image.
#pragma once

#include <array>
#include <bitset>
#include <map>
#include <memory>
#include <shared_mutex>
#include <utility>

#include "code/image/image.h"

namespace ptkit::code::image {

class CallbackPages {
 public:
  explicit CallbackPages(ReadCallback callback) : callback_(std::move(callback)) {}

  // The cached bytes at `address`, up to the end of the page.
  [[nodiscard]] base::Bytes at(trace::SpaceId space, std::uint64_t address) const noexcept;
  // Also calls the callback if no bytes are cached.
  [[nodiscard]] base::Bytes fetch(trace::SpaceId space, std::uint64_t address);
  [[nodiscard]] const ReadCallback& callback() const noexcept { return callback_; }

 private:
  static constexpr std::size_t kPageSize = 4096;
  struct Page {
    std::array<std::uint8_t, kPageSize> bytes{};
    std::bitset<kPageSize> known;  // known bytes never change: callers hold spans of them
  };
  void query_callback(trace::SpaceId space, std::uint64_t address);

  ReadCallback callback_;
  mutable std::shared_mutex mutex_;  // not held during the callback, which may take other locks
  std::map<std::pair<trace::SpaceId, std::uint64_t>, std::unique_ptr<Page>> pages_;
};

}  // namespace ptkit::code::image
