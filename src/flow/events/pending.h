// Events that wait for the packet with their IP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "flow/rows/rows.h"

namespace ptkit::flow {

// The packets that an event waits for.
enum Binding : std::uint8_t {
  AT_FUP = 1,        // the next FUP, which also starts an asynchronous branch
  AT_FUP_BOUND = 2,  // the next FUP, which belongs to the event alone (the packet's IP bit)
  AT_TIP = 4,        // the next TIP, TIP.PGE or TIP.PGD
  AT_EXSTOP = 8,     // MWAIT: the EXSTOP that follows
  AT_PWRX = 16,      // PWRE: the PWRX that follows
  AT_CFE = 32,       // EVD: the CFE that follows
};

// Events in the order of their packets. A processor never leaves more than a few events waiting.
class PendingEvents {
 public:
  static constexpr std::size_t kMost = 64;

  // False if the list is full: the stream is damaged.
  [[nodiscard]] bool add(std::uint8_t binding, const Event& event) {
    if (entries_.size() >= kMost) return false;
    entries_.push_back({binding, event});
    return true;
  }
  // The oldest event that waits for one of `bindings`.
  [[nodiscard]] std::optional<Event> take(std::uint8_t bindings) {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if ((entries_[i].binding & bindings) != 0) return take_at(i);
    }
    return std::nullopt;
  }
  [[nodiscard]] std::optional<Event> take(std::uint8_t bindings, EventKind kind) {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if ((entries_[i].binding & bindings) != 0 && entries_[i].event.kind == kind) return take_at(i);
    }
    return std::nullopt;
  }
  [[nodiscard]] Event* find(std::uint8_t bindings, EventKind kind) noexcept {
    for (Entry& entry : entries_) {
      if ((entry.binding & bindings) != 0 && entry.event.kind == kind) return &entry.event;
    }
    return nullptr;
  }
  [[nodiscard]] bool any(std::uint8_t bindings) const noexcept {
    for (const Entry& entry : entries_) {
      if ((entry.binding & bindings) != 0) return true;
    }
    return false;
  }
  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  void clear() noexcept { entries_.clear(); }

 private:
  struct Entry {
    std::uint8_t binding;
    Event event;
  };
  [[nodiscard]] Event take_at(std::size_t at) {
    const Event event = entries_[at].event;
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(at));
    return event;
  }

  std::vector<Entry> entries_;
};

}  // namespace ptkit::flow
