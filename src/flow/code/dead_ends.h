// Where code without branches that need packets leads. Long walks ask before they go on, so that wrong code
// (zero-filled memory, missing packets) is walked once and not for each packet that leads there.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/bytes.h"
#include "base/status.h"

namespace ptkit::flow {

class BlockCache;

// End of the code from an address on. OK: it leads to a branch that needs a packet. NO_CODE, BAD_INSN: it
// ends at `ip`. INFINITE_LOOP, WALK_TOO_LONG: it has no end; `ip` is 0.
struct CodeEnd {
  base::Status status = base::Status::OK;
  std::uint64_t ip = 0;
};

// Each instruction is decoded here twice at most, whatever is asked: an answer is noted for every instruction
// on the way. Answers depend on the code alone, never on what was asked before. Notes take a quarter of the
// size of the code that was looked at, kMostBytes at most: then they are dropped.
class DeadEnds {
 public:
  // Code that fills a window, from its first address to its last, has no end. Windows are aligned, so that
  // the answer does not depend on where a walk begins. A callback may supply code without an end; a recording
  // may map a small file at any number of addresses.
  static constexpr std::uint64_t kSuppliedWindow = std::uint64_t{1} << 19U;
  static constexpr std::uint64_t kMappedWindow = std::uint64_t{1} << 28U;
  // More than the notes of code that leads to a window, and of the window, take.
  static constexpr std::size_t kMostBytes = std::size_t{224} << 20U;

  explicit DeadEnds(BlockCache& code) noexcept : code_(code) {}
  DeadEnds(const DeadEnds&) = delete;
  DeadEnds& operator=(const DeadEnds&) = delete;

  [[nodiscard]] CodeEnd find(std::uint64_t ip);
  [[nodiscard]] std::size_t bytes() const noexcept {  // of memory, approximately
    return pages_.size() * (sizeof(Page) + kNodeBytes) + (zeros_.size() + ends_.size()) * kNodeBytes;
  }

 private:
  static constexpr std::size_t kNodeBytes = 64;  // an entry of a map

  // Two bits for each address.
  enum State : std::uint8_t { UNKNOWN = 0, LEADS_ON = 1, DEAD = 2, SEEN = 3 };  // SEEN: on the way
  static constexpr std::uint64_t kPageBits = 12;
  using Page = std::array<std::uint8_t, (std::size_t{1} << kPageBits) / 4>;

  [[nodiscard]] Page& page(std::uint64_t ip);
  [[nodiscard]] State state(std::uint64_t ip);
  void set(std::uint64_t ip, State to);
  [[nodiscard]] std::uint64_t skip_zeros(std::uint64_t ip);
  [[nodiscard]] std::uint64_t end_of_zeros(std::uint64_t ip);
  [[nodiscard]] bool is_supplied(std::uint64_t ip) const;
  [[nodiscard]] std::optional<CodeEnd> search(std::uint64_t ip);
  void clear();
  [[nodiscard]] CodeEnd end_of_dead(std::uint64_t ip);
  void mark(std::uint64_t ip, State to, const CodeEnd& end, std::optional<std::uint64_t> last);

  BlockCache& code_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  Page* page_ = nullptr;  // the last one
  std::uint64_t page_number_ = 0;
  std::map<std::uint64_t, std::uint64_t> zeros_;  // runs of zero bytes: begin -> end
  std::unordered_map<std::uint64_t, CodeEnd>
      ends_;  // of some dead addresses, so that all others are near one
};

}  // namespace ptkit::flow
