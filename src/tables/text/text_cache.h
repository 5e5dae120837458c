// Texts by key: what is the same in many rows is made once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptkit::tables::text {

class TextCache {
 public:
  struct Key {
    std::uint64_t ip = 0;
    std::uint64_t view = 0;  // of an address space, at the address
    std::uint64_t more = 0;

    bool operator==(const Key&) const = default;
  };
  // Where a text lies. Valid until reserve() returns false.
  struct Ref {
    std::uint32_t offset = 0;
    std::uint32_t size = 0;
  };

  static constexpr std::size_t kMostSlots = std::size_t{1} << 22U;

  // Half of `most_slots` may be used.
  explicit TextCache(std::size_t most_slots = kMostSlots);

  [[nodiscard]] const Ref* find(const Key& key) const noexcept {
    for (std::size_t slot = slot_of(key);; slot = (slot + 1) & mask()) {
      const Entry& entry = entries_[slot];
      if (!entry.used) return nullptr;
      if (entry.key == key) return &entry.ref;
    }
  }
  // Makes room for some entries. False: all texts were dropped, since they took too much memory.
  bool reserve();
  void insert(const Key& key, Ref ref) noexcept;
  [[nodiscard]] Ref store(std::string_view text);
  // Followed by bytes that can be read (text_buffer.h: kBlock).
  [[nodiscard]] const char* text_of(Ref ref) const noexcept { return texts_.data() + ref.offset; }

 private:
  struct Entry {
    Key key;
    Ref ref;
    bool used = false;
  };

  [[nodiscard]] std::size_t mask() const noexcept { return entries_.size() - 1; }
  [[nodiscard]] std::size_t slot_of(const Key& key) const noexcept {
    const std::uint64_t mixed =
        (key.ip ^ key.view * 0xff51'afd7'ed55'8ccdU ^ key.more * 0xc4ce'b9fe'1a85'ec53U) *
        0x9e37'79b9'7f4a'7c15U;
    return static_cast<std::size_t>(mixed >> shift_);
  }

  std::size_t most_slots_;
  std::vector<Entry> entries_;  // a power of 2; open addressing
  unsigned shift_ = 0;
  std::size_t used_ = 0;
  std::string texts_;
};

}  // namespace ptkit::tables::text
