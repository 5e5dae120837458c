// A hash table from addresses to small values: open addressing, no removal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ptkit::flow {

// Value has a member `bool used() const`; a default-made Value is not used.
template <typename Value>
class IpMap {
 public:
  IpMap() : slots_(kFirstSize) {}

  // Valid until the next insert(); null if there is none.
  [[nodiscard]] const Value* find(std::uint64_t ip) const noexcept {
    for (std::size_t at = home(ip);; at = next(at)) {
      const Slot& slot = slots_[at];
      if (!slot.value.used()) return nullptr;
      if (slot.ip == ip) return &slot.value;
    }
  }

  // `ip` must not be in the table yet.
  void insert(std::uint64_t ip, const Value& value) {
    if ((count_ + 1) * 2 > slots_.size()) grow();
    place(ip, value);
    ++count_;
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return slots_.size() * sizeof(Slot); }

 private:
  static constexpr std::size_t kFirstSize = 1024;  // a power of two
  struct Slot {
    std::uint64_t ip = 0;
    Value value{};
  };

  [[nodiscard]] std::size_t home(std::uint64_t ip) const noexcept {
    const std::uint64_t mixed = ip * 0x9e3779b97f4a7c15ULL;
    return static_cast<std::size_t>(mixed >> 32) & (slots_.size() - 1);
  }
  [[nodiscard]] std::size_t next(std::size_t at) const noexcept { return (at + 1) & (slots_.size() - 1); }

  void place(std::uint64_t ip, const Value& value) {
    std::size_t at = home(ip);
    while (slots_[at].value.used()) at = next(at);
    slots_[at] = Slot{ip, value};
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.value.used()) place(slot.ip, slot.value);
    }
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace ptkit::flow
