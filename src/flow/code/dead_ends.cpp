#include "flow/code/dead_ends.h"

#include <algorithm>
#include <iterator>

#include "flow/code/block_cache.h"

namespace ptkit::flow {

using base::Status;

namespace {

constexpr std::uint64_t kNear = 256;  // instructions between two noted ends
constexpr std::uint64_t kMostSupplied = std::uint64_t{1}
                                        << 18U;  // steps after which code of a callback has no end
constexpr std::uint64_t kCheckBytes = std::uint64_t{1} << 12U;  // steps between two looks at the memory

bool goes_on(const CodeStep& step) noexcept {
  return step.end == Terminator::JUMP || step.end == Terminator::CALL || step.end == Terminator::FALL;
}

// Follows a walk through windows of a size: see DeadEnds::kSuppliedWindow.
class WindowWatch {
 public:
  explicit WindowWatch(std::uint64_t size) noexcept : size_(size) {}
  // True if the way from `at` to `next` ends a window that the walk filled.
  [[nodiscard]] bool fills(std::uint64_t at, std::uint64_t next) noexcept {
    const std::uint64_t from = at / size_;
    const std::uint64_t to = next / size_;
    if (is_begin(at)) {
      whole_ = true;
      begin_ = at;
    }
    if (to == from) {
      whole_ = whole_ && next > at;
      return false;
    }
    const bool filled = whole_ && to == from + 1 && is_begin(next);
    if (!filled) whole_ = false;
    return filled;
  }
  // The last address at the begin of that window.
  [[nodiscard]] std::uint64_t begin() const noexcept { return begin_; }

 private:
  [[nodiscard]] bool is_begin(std::uint64_t ip) const noexcept {
    constexpr std::uint64_t kWidest = 15;  // of an instruction over the begin
    return ip % size_ < kWidest;
  }

  std::uint64_t size_;
  bool whole_ = false;
  std::uint64_t begin_ = 0;
};

}  // namespace

DeadEnds::Page& DeadEnds::page(std::uint64_t ip) {
  const std::uint64_t number = ip >> kPageBits;
  if (page_ != nullptr && page_number_ == number) return *page_;
  std::unique_ptr<Page>& found = pages_[number];
  if (found == nullptr) found = std::make_unique<Page>();
  page_number_ = number;
  return *(page_ = found.get());
}

DeadEnds::State DeadEnds::state(std::uint64_t ip) {
  const std::uint8_t four = page(ip)[(ip & ((1U << kPageBits) - 1)) / 4];
  return static_cast<State>(four >> ip % 4 * 2 & 3U);
}

void DeadEnds::set(std::uint64_t ip, State to) {
  std::uint8_t& four = page(ip)[(ip & ((1U << kPageBits) - 1)) / 4];
  const std::uint64_t shift = ip % 4 * 2;
  four = static_cast<std::uint8_t>((four & ~(3U << shift)) | static_cast<unsigned>(to) << shift);
}

// The end of the run of zero bytes at `ip`, as far as one region of the image has it.
std::uint64_t DeadEnds::end_of_zeros(std::uint64_t ip) {
  auto next = zeros_.upper_bound(ip);
  if (next != zeros_.begin() && std::prev(next)->second > ip) return std::prev(next)->second;
  base::Bytes bytes = code_.bytes_at(ip);
  if (next != zeros_.end()) bytes = bytes.first(std::min<std::uint64_t>(bytes.size(), next->first - ip));
  const auto end = std::find_if(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte != 0; });
  std::uint64_t last = ip + static_cast<std::uint64_t>(end - bytes.begin());
  if (last == ip) return ip;
  if (next != zeros_.end() && last == next->first) {
    last = next->second;
    zeros_.erase(next);
  }
  zeros_.emplace(ip, last);
  return last;
}

// Two zero bytes are an instruction (ADD), and no such run has a branch: it is passed at once.
std::uint64_t DeadEnds::skip_zeros(std::uint64_t ip) {
  constexpr std::size_t kLeast = 32;
  if (code_.mode() == code::insn::ExecMode::BITS16) return ip;  // addresses wrap
  const base::Bytes bytes = code_.bytes_at(ip);
  if (bytes.size() < kLeast) return ip;
  if (std::any_of(bytes.begin(), bytes.begin() + kLeast, [](std::uint8_t byte) { return byte != 0; }))
    return ip;
  // Up to the next window at most, so that none is passed unseen.
  const std::uint64_t count = std::min(end_of_zeros(ip) - ip, kMappedWindow - ip % kMappedWindow);
  return ip + count - count % 2;
}

// The end noted for the next address on the way.
CodeEnd DeadEnds::end_of_dead(std::uint64_t ip) {
  for (;;) {
    ip = skip_zeros(ip);
    if (const auto found = ends_.find(ip); found != ends_.end()) return found->second;
    ip = code_.step_at(ip).next;
  }
}

// Gives the instructions that were seen from `ip` on their state; those behind `last` stay unknown.
void DeadEnds::mark(std::uint64_t ip, State to, const CodeEnd& end, std::optional<std::uint64_t> last) {
  std::uint64_t before = ip;
  for (std::uint64_t count = 0;; ++count) {
    const std::uint64_t after_zeros = skip_zeros(ip);
    const bool is_behind = ip == last && after_zeros != ip;
    ip = after_zeros;
    if (is_behind || state(ip) != SEEN) {
      if (to == DEAD) ends_[before] = end;
      to = UNKNOWN;
    }
    if (state(ip) != SEEN) return;
    set(ip, to);
    before = ip;
    if (to == DEAD && (count % kNear == 0 || ip == last)) ends_[ip] = end;
    if (ip == last) to = UNKNOWN;
    const CodeStep step = code_.step_at(ip);
    if (!goes_on(step)) break;
    ip = step.next;
  }
  if (to == DEAD) ends_[before] = end;
}

CodeEnd DeadEnds::find(std::uint64_t ip) {
  if (const std::optional<CodeEnd> end = search(ip)) return *end;
  clear();
  if (const std::optional<CodeEnd> end = search(ip)) return *end;
  clear();
  return {Status::WALK_TOO_LONG, 0};
}

void DeadEnds::clear() {
  pages_.clear();
  page_ = nullptr;
  zeros_.clear();
  ends_.clear();
}

// Empty: the notes take too much memory.
std::optional<CodeEnd> DeadEnds::search(std::uint64_t ip) {
  CodeEnd end;
  WindowWatch supplied(kSuppliedWindow);
  WindowWatch mapped(kMappedWindow);
  std::optional<std::uint64_t> last;
  const auto fills = [&](std::uint64_t at, std::uint64_t next) {
    const bool fills_mapped = mapped.fills(at, next);
    const bool fills_supplied = supplied.fills(at, next) && is_supplied(at);
    if (!fills_mapped && !fills_supplied) return false;
    end.status = Status::WALK_TOO_LONG;
    last = fills_supplied ? supplied.begin() : mapped.begin();
    return true;
  };
  std::uint64_t at = ip;
  for (std::uint64_t steps = 1;; ++steps) {
    const std::uint64_t after_zeros = skip_zeros(at);
    if (after_zeros != at && fills(at, after_zeros)) break;
    at = after_zeros;
    const State known = state(at);
    if (known == DEAD) end = end_of_dead(at);
    if (known == SEEN) end.status = Status::INFINITE_LOOP;
    if (known != UNKNOWN) break;
    set(at, SEEN);
    const CodeStep step = code_.step_at(at);
    if (step.end == Terminator::FAIL) end = {step.failure, at};
    if (!goes_on(step) || fills(at, step.next)) break;
    at = step.next;
    if (steps % kCheckBytes == 0 && bytes() > kMostBytes) return std::nullopt;
    if (steps % kMostSupplied == 0 && is_supplied(at)) {
      mark(ip, UNKNOWN, end, last);
      return CodeEnd{Status::WALK_TOO_LONG, 0};
    }
  }
  mark(ip, end.status == Status::OK ? LEADS_ON : DEAD, end, last);
  return end;
}

// True if a callback supplies the code.
bool DeadEnds::is_supplied(std::uint64_t ip) const { return code_.view().provenance(ip).region < 0; }

}  // namespace ptkit::flow
