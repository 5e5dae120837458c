#include "tables/coverage/block_counts.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <optional>
#include <queue>
#include <span>
#include <tuple>
#include <utility>

#include "code/insn/quick.h"
#include "code/symbol/row_views.h"

namespace ptkit::tables::coverage {
namespace {

[[nodiscard]] std::size_t hash_of(const ExecutedBlock& block) noexcept {
  std::uint64_t hash = block.ip * 0x9e3779b97f4a7c15U;
  hash ^= (std::uint64_t{block.space} << 32U | block.instructions) * 0xc2b2ae3d27d4eb4fU;
  return static_cast<std::size_t>(hash ^ (hash >> 29U));
}

[[nodiscard]] auto key_of(const ExecutedBlock& block) noexcept {
  return std::tuple(block.space, block.mode, block.ip, block.instructions);
}

// Decodes instructions of a view, most of which follow each other.
class CodeReader {
 public:
  explicit CodeReader(const code::image::CodeView& code) : code_(&code) {}

  [[nodiscard]] const code::image::CodeView& code() const noexcept { return *code_; }
  // Whether the code at `ip` is at hand.
  [[nodiscard]] bool has(std::uint64_t ip) const noexcept { return ip - begin_ < bytes_.size(); }
  // The instruction at `ip`. False: there is no code, or none that can be decoded.
  [[nodiscard]] bool decode(std::uint64_t ip, code::insn::ExecMode mode, code::insn::Insn& found) {
    constexpr std::size_t kMostBytes = 15;
    if (!has(ip)) {
      begin_ = ip;
      bytes_ = code_->bytes_at(ip);
    }
    const base::Bytes rest = bytes_.subspan(ip - begin_);
    if (rest.size() >= kMostBytes)
      return code::insn::decode(mode, rest.first(kMostBytes), found) == base::Status::OK;
    if (code::insn::decode_quick(mode, rest, found)) return true;
    std::array<std::uint8_t, kMostBytes> joined{};
    const std::size_t size = code_->read(ip, joined);
    return code::insn::decode(mode, base::Bytes(joined).first(size), found) == base::Status::OK;
  }

 private:
  const code::image::CodeView* code_;
  std::uint64_t begin_ = 0;
  base::Bytes bytes_;  // of the code, from `begin_` on; an address before it gives a huge difference
};

// Blocks that are at one instruction of the same code: from there on they have the same instructions, until
// they end one by one.
class Stream {
 public:
  Stream(const CodeReader& code, std::uint64_t ip) : code_(code), ip_(ip) {}

  [[nodiscard]] const CodeReader& reader() const noexcept { return code_; }
  [[nodiscard]] const code::image::CodeView& code() const noexcept { return code_.code(); }
  [[nodiscard]] std::uint64_t ip() const noexcept { return ip_; }
  [[nodiscard]] bool empty() const noexcept { return ends_.empty(); }
  void add(std::uint64_t instructions, std::uint64_t count) {
    ends_.push({done_ + instructions, count});
    count_ += count;
  }
  // Adds the blocks of another stream at the same instruction.
  void add_all(Stream&& other) {
    for (; !other.ends_.empty(); other.ends_.pop())
      add(other.ends_.top().at - other.done_, other.ends_.top().count);
  }
  // Counts the instruction, and goes on to the next one. Without code there, counts the rest of all blocks.
  void step(code::insn::ExecMode mode, std::uint32_t cs_base, InstructionCount& out) {
    code::insn::Insn found;
    out.ip = ip_;
    out.count = out.instructions = count_;
    if (!code_.decode(ip_, mode, found)) {
      out.instructions = 0;
      for (; !ends_.empty(); ends_.pop()) out.instructions += (ends_.top().at - done_) * ends_.top().count;
      return;
    }
    out.size = found.size;
    ip_ = code::insn::next_ip(found, mode, ip_, cs_base);
    ++done_;
    for (; !ends_.empty() && ends_.top().at == done_; ends_.pop()) count_ -= ends_.top().count;
  }

 private:
  struct End {
    std::uint64_t at = 0;  // instructions of the stream
    std::uint64_t count = 0;
    bool operator>(const End& other) const noexcept { return at > other.at; }
  };
  CodeReader code_;
  std::uint64_t ip_;
  std::uint64_t done_ = 0;   // instructions
  std::uint64_t count_ = 0;  // of all blocks
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
};

// Counts the instructions of blocks of one space and mode, which are sorted by address: a sweep over the
// addresses, with a stream for each way to decode the code there (one, as a rule).
class Sweep {
 public:
  Sweep(const code::image::Image& image, std::vector<InstructionCount>& out)
      : views_(image), cs_base_(image.bundle().configuration.cs_base), out_(out) {}

  void run(std::span<const BlockCounts::Counted> blocks) {
    const ExecutedBlock& first = blocks.front().block;
    for (std::size_t next = 0; next < blocks.size() || !streams_.empty();) {
      const auto at = least();
      if (next < blocks.size() && (at == streams_.end() || blocks[next].block.ip <= at->ip())) {
        begin(blocks[next++]);
        continue;
      }
      InstructionCount& one = out_.emplace_back();
      one.space = first.space;
      at->step(first.mode, cs_base_, one);
      if (at->empty()) {
        recent_ = at->reader();
        streams_.erase(at);
      } else if (streams_.size() > 1) {
        join(at);
      }
    }
  }

 private:
  using Streams = std::vector<Stream>;

  [[nodiscard]] Streams::iterator least() {
    return std::ranges::min_element(streams_, {}, [](const Stream& stream) { return stream.ip(); });
  }
  void begin(const BlockCounts::Counted& counted) {
    const CodeReader code = code_at(counted.block.space, counted.block.ip);
    const auto same = std::ranges::find_if(streams_, [&](const Stream& stream) {
      return &stream.code() == &code.code() && stream.ip() == counted.block.ip;
    });
    Stream& stream = same != streams_.end() ? *same : streams_.emplace_back(code, counted.block.ip);
    stream.add(counted.block.instructions, counted.count);
  }
  // The last code at an address: mostly that of a block before.
  [[nodiscard]] CodeReader code_at(trace::SpaceId space, std::uint64_t ip) {
    const code::symbol::RowTimes last{code::symbol::kLastTime, code::symbol::kLastTime, true};
    const code::image::CodeView& view = views_.at(space, last.first);
    const auto has = [&](const CodeReader& reader) { return &reader.code() == &view && reader.has(ip); };
    if (recent_ && has(*recent_)) return *recent_;
    const auto near = std::ranges::find_if(streams_, has, &Stream::reader);
    if (near != streams_.end()) return near->reader();
    const code::image::CodeView* const known = views_.with_code(view, last, ip);
    return CodeReader(known != nullptr ? *known : view);  // null: a callback may have it
  }
  // Joins a stream with another one that is at the same instruction.
  void join(Streams::iterator one) {
    const auto same = std::find_if(streams_.begin(), streams_.end(), [one](const Stream& stream) {
      return &stream != &*one && &stream.code() == &one->code() && stream.ip() == one->ip();
    });
    if (same == streams_.end()) return;
    same->add_all(std::move(*one));
    streams_.erase(one);
  }

  code::symbol::RowViews views_;
  std::uint32_t cs_base_;
  Streams streams_;
  std::optional<CodeReader> recent_;  // of the block that ended last
  std::vector<InstructionCount>& out_;
};

// Adds up the counts of equal addresses, which are neighbours.
void merge(std::vector<InstructionCount>& counts) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const InstructionCount next = counts[i];
    if (kept != 0 && counts[kept - 1].ip == next.ip && counts[kept - 1].space == next.space) {
      InstructionCount& same = counts[kept - 1];
      same.count += next.count;
      same.instructions += next.instructions;
      same.size = std::max(same.size, next.size);
    } else {
      counts[kept++] = next;
    }
  }
  counts.resize(kept);
}

}  // namespace

BlockCounts::Counted& BlockCounts::find(const ExecutedBlock& block) noexcept {
  const std::size_t mask = slots_.size() - 1;
  std::size_t index = hash_of(block) & mask;
  while (slots_[index].count != 0 && slots_[index].block != block) index = (index + 1) & mask;
  return slots_[index];
}

void BlockCounts::grow() {
  const std::vector<Counted> before = std::exchange(slots_, std::vector<Counted>(slots_.size() * 2));
  for (const Counted& counted : before) {
    if (counted.count != 0) find(counted.block) = counted;
  }
}

void BlockCounts::add(const ExecutedBlock& block, std::uint64_t count) {
  if (count == 0) return;
  Counted* slot = &find(block);
  if (slot->count == 0) {
    if (++used_ * 2 > slots_.size()) {
      grow();
      slot = &find(block);
    }
    slot->block = block;
  }
  slot->count += count;
}

bool BlockCounts::add_counted(std::uint64_t from_ip, std::uint64_t to_ip, flow::BranchKind kind,
                              trace::SpaceId space, std::uint64_t count) {
  if (!flow::is_counted_block(kind)) return false;
  rows_.push_back({{from_ip, flow::BlockSize::of(to_ip).instructions, space, flow::mode_of(kind)}, count});
  return true;
}

std::vector<BlockCounts::Counted> BlockCounts::sorted() const {
  std::vector<Counted> found;
  found.reserve(rows_.size() + used_);
  found = rows_;
  std::ranges::copy_if(
      slots_, std::back_inserter(found), [](std::uint64_t count) { return count != 0; }, &Counted::count);
  const auto key = [](const Counted& counted) { return key_of(counted.block); };
  if (!std::ranges::is_sorted(found, {}, key)) std::ranges::sort(found, {}, key);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (kept != 0 && found[kept - 1].block == found[i].block) {
      found[kept - 1].count += found[i].count;
    } else {
      found[kept++] = found[i];
    }
  }
  found.resize(kept);
  return found;
}

std::vector<InstructionCount> count_instructions(const BlockCounts& blocks, const code::image::Image& image) {
  const std::vector<BlockCounts::Counted> sorted = blocks.sorted();
  constexpr std::size_t kUsualSize = 4;  // instructions of a block that no other one has
  std::vector<InstructionCount> counts;
  counts.reserve(sorted.size() * kUsualSize);
  Sweep sweep(image, counts);
  for (auto first = sorted.begin(); first != sorted.end();) {
    const auto end = std::find_if(first, sorted.end(), [first](const BlockCounts::Counted& counted) {
      return counted.block.space != first->block.space || counted.block.mode != first->block.mode;
    });
    sweep.run({first, end});
    first = end;
  }
  // Code of several modes, or that wraps at the end of its segment, is not in order.
  const auto address = [](const InstructionCount& one) { return std::tuple(one.space, one.ip); };
  if (!std::ranges::is_sorted(counts, {}, address)) std::ranges::sort(counts, {}, address);
  merge(counts);
  return counts;
}

}  // namespace ptkit::tables::coverage
