// Row writers of the hot loop. They have the same members, and the loop is compiled for each of them.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "flow/fast/path_cache.h"
#include "flow/rows/bulk.h"

namespace ptkit::flow {

struct NoRows {
  static constexpr bool kBounded = false;    // limited by the room's rows
  static constexpr bool kMayBeNone = false;  // a packet may have no rows
  static constexpr bool kEvents = false;     // has event()
  static constexpr bool kMarks = false;      // has mark_enabled()
  static constexpr bool kEdges = false;      // counts transitions as edges
  static constexpr bool kPhases = false;     // limited by the room's instructions
  static constexpr bool kCounts = false;     // counts transitions, so that no packet has rows of its own
  explicit NoRows(const BulkRoom& room) : rows(room.row) {}
  void begin(PathCache&) noexcept {}
  void bits(Transition&) noexcept {}
  void target(Transition&) noexcept {}
  [[nodiscard]] std::size_t before_target() const noexcept { return rows; }
  // Rows before the first bit in the path that was emitted last.
  [[nodiscard]] std::size_t head(const Transition&) const noexcept { return 0; }
  std::size_t rows;
};

// Counts transitions, and notes those that are counted for the first time.
struct EdgeRows : NoRows {
  static constexpr bool kEdges = true;
  static constexpr bool kCounts = true;
  using NoRows::NoRows;
  void begin(PathCache& paths) noexcept { paths_ = &paths; }
  void bits(Transition& transition) {
    if ((transition.flags & TRANSITION_NEW) != 0) paths_->note_bits(transition);
    count_bits(transition);
  }
  void target(Transition& transition) {
    if ((transition.flags & TRANSITION_NEW) != 0) paths_->note_target(transition);
    count_target(transition);
  }
  // As bits() and target(), for transitions that are noted already.
  void count_bits(Transition& transition) {
    if (++transition.count == 0) [[unlikely]]
      paths_->carry_bits(transition);
  }
  void count_target(Transition& transition) {
    if (++transition.count == 0) [[unlikely]]
      paths_->carry_target(transition);
  }

 private:
  PathCache* paths_ = nullptr;
};

// EdgeRows of one of several phases, which may end after any packet.
struct PhaseRows : EdgeRows {
  static constexpr bool kPhases = true;
  static constexpr bool kCounts = false;
  using EdgeRows::EdgeRows;
};

// ENABLED and DISABLED events. The simple decoder emits those of PSB+.
struct EventRows : NoRows {
  static constexpr bool kBounded = true;
  static constexpr bool kEvents = true;
  explicit EventRows(const BulkRoom& room) : NoRows(room), next_(room.event) {}
  void event(const BulkEvent& event) noexcept {
    *next_++ = event;
    ++rows;
  }

 private:
  BulkEvent* next_;
};

// Numbers of branches, those without a row included.
struct BranchNumbers {
  explicit BranchNumbers(const BulkRoom& room) : number(room.number), first_branch(room.first_branch) {}
  void put(const GroupCounts* counts, std::size_t at, std::size_t end, std::uint16_t of_path) noexcept {
    const std::uint64_t before = first_branch + branches;
    for (; at < end; at += RowGroup::kRows, ++counts) {
      for (std::size_t i = 0; i < RowGroup::kRows; ++i) number[at + i] = before + (*counts)[i];
    }
    branches += of_path;
  }
  std::uint64_t* number;
  std::uint64_t first_branch;
  std::uint64_t branches = 0;
};
struct NoBranchNumbers {
  explicit NoBranchNumbers(const BulkRoom&) {}
};

// kChosen: only the branches of the room's choice. kCounted: with the number of preceding instructions.
// kMarked: with the number of preceding branches, and with rows for ENABLED and DISABLED
// events.
template <bool kChosen, bool kCounted, bool kMarked = false>
struct BranchRows : std::conditional_t<kMarked, BranchNumbers, NoBranchNumbers> {
  using Numbers = std::conditional_t<kMarked, BranchNumbers, NoBranchNumbers>;
  static constexpr bool kBounded = true;
  static constexpr bool kMayBeNone = kChosen;
  static constexpr bool kEvents = false;
  static constexpr bool kMarks = kMarked;
  static constexpr bool kEdges = false;
  static constexpr bool kPhases = kMarked;
  static constexpr bool kCounts = false;
  explicit BranchRows(const BulkRoom& room)
      : Numbers(room),
        rows(room.row),
        choice_(room.choice),
        from_(room.from_ip),
        to_(room.to_ip),
        kind_(room.branch),
        flags_(room.flags),
        instruction_(room.instruction),
        retired_(room.first_instruction),
        enabled_(room.enabled),
        disabled_(room.disabled) {}
  void begin(PathCache& paths) noexcept {
    paths_ = &paths;
    const PathRows& known = rows_of(paths);
    parts_ = known.branch_parts();
    groups_ = known.groups();
    if constexpr (kCounted) counts_ = known.counts();
    if constexpr (kMarked) {
      numbers_ = known.numbers();
      branches_ = known.branches();
    }
  }
  void bits(const Transition& transition) { static_cast<void>(put(transition)); }
  void target(const Transition& transition) {
    const std::size_t last = put(transition);
    if constexpr (kChosen) last_ = last;
    if (last != 0 && to_ != nullptr && (transition.flags & TRANSITION_TARGET) != 0)
      to_[rows - 1] = transition.ip;
  }
  // Packets are enabled at `ip`.
  void mark_enabled(std::uint64_t ip) noexcept { mark(enabled_, ip, TO_KNOWN); }
  void mark_disabled() noexcept { mark(disabled_, 0, 0); }

  [[nodiscard]] std::size_t before_target() const noexcept { return rows - (kChosen ? last_ : 1); }
  [[nodiscard]] std::size_t head(const Transition& transition) const noexcept {
    return parts_[transition.path].head;
  }
  std::size_t rows;

 private:
  void mark(std::uint8_t kind, std::uint64_t ip, std::uint8_t flags) noexcept {
    from_[rows] = 0;
    to_[rows] = ip;
    kind_[rows] = kind;
    flags_[rows] = flags;
    instruction_[rows] = retired_;
    this->number[rows] = this->first_branch + this->branches;
    ++rows;
  }
  // Emits the rows of a path. Returns the number of rows of its last branch.
  std::size_t put(const Transition& transition) {
    if (transition.path >= parts_.size() || parts_[transition.path].first == 0) [[unlikely]]
      add(transition.path);
    const PathPart& part = parts_[transition.path];
    const RowGroup* group = groups_ + part.first;
    const std::size_t end = rows + (kChosen ? part.rows & (PathPart::kLast - 1U) : part.rows);
    for (std::size_t at = rows; at < end; at += RowGroup::kRows, ++group) {
      if (from_ != nullptr) std::memcpy(from_ + at, group->from.data(), sizeof group->from);
      if (to_ != nullptr) std::memcpy(to_ + at, group->to.data(), sizeof group->to);
      if (kind_ != nullptr) std::memcpy(kind_ + at, group->kind.data(), sizeof group->kind);
      if (flags_ != nullptr) std::memcpy(flags_ + at, group->flags.data(), sizeof group->flags);
    }
    if constexpr (kMarked) Numbers::put(numbers_ + part.first, rows, end, branches_[transition.path]);
    if constexpr (kCounted) put_counts(counts_ + part.first, end, transition.insns);
    rows = end;
    return kChosen && (part.rows & PathPart::kLast) == 0 ? 0 : 1;
  }
  void put_counts(const GroupCounts* counts, std::size_t end, std::uint32_t insns) noexcept {
    for (std::size_t at = rows; at < end; at += RowGroup::kRows, ++counts) {
      for (std::size_t i = 0; i < RowGroup::kRows; ++i) instruction_[at + i] = retired_ + (*counts)[i];
    }
    retired_ += insns;
  }
  [[nodiscard]] const PathRows& rows_of(PathCache& paths) const {
    if constexpr (kChosen) return paths.chosen_rows(choice_);
    return paths.path_rows();
  }
  [[gnu::noinline]] void add(PathId path) {
    if constexpr (kChosen) {
      paths_->add_path_branches(path, choice_);
    } else {
      paths_->add_path_branches(path);
    }
    begin(*paths_);
  }

  PathCache* paths_ = nullptr;
  std::span<const PathPart> parts_;
  const RowGroup* groups_ = nullptr;
  const GroupCounts* counts_ = nullptr;
  const GroupCounts* numbers_ = nullptr;
  std::span<const std::uint16_t> branches_;  // of each path
  std::size_t last_ = 1;                     // rows of the last TIP's own branch
  BranchChoice choice_;
  std::uint64_t* from_;
  std::uint64_t* to_;
  std::uint8_t* kind_;
  std::uint8_t* flags_;
  std::uint64_t* instruction_;
  std::uint64_t retired_;  // instructions of the stream so far, if kCounted
  std::uint8_t enabled_;
  std::uint8_t disabled_;
};

// Copies whole chunks. The next copy overwrites the excess.
template <typename T>
void copy_insns(T* to, const T* from, std::size_t count) noexcept {
  constexpr std::size_t kChunk = PathInsns::kSlack;
  for (std::size_t done = 0; done < count; done += kChunk) {
    std::memcpy(to + done, from + done, kChunk * sizeof(T));
  }
}

struct InsnRows {
  static constexpr bool kBounded = true;
  static constexpr bool kMayBeNone = false;
  static constexpr bool kEvents = false;
  static constexpr bool kMarks = false;
  static constexpr bool kEdges = false;
  static constexpr bool kPhases = false;
  static constexpr bool kCounts = false;
  explicit InsnRows(const BulkRoom& room) : rows(room.row), ip_(room.ip), size_(room.size), cls_(room.cls) {}
  void begin(PathCache& paths) noexcept {
    paths_ = &paths;
    insns_ = &paths.path_insns();
  }
  void bits(const Transition& transition) {
    std::uint32_t first = insns_->first(transition.path);
    if (first == 0) [[unlikely]]
      first = paths_->add_path_insns(transition.path);
    if (ip_ != nullptr) copy_insns(ip_ + rows, insns_->ips() + first, transition.insns);
    if (size_ != nullptr) copy_insns(size_ + rows, insns_->sizes() + first, transition.insns);
    if (cls_ != nullptr) copy_insns(cls_ + rows, insns_->classes() + first, transition.insns);
    rows += transition.insns;
  }
  void target(const Transition& transition) { bits(transition); }
  [[nodiscard]] std::size_t before_target() const noexcept { return rows; }
  [[nodiscard]] std::size_t head(const Transition& transition) const noexcept {
    return insns_->head(transition.path);
  }
  std::size_t rows;

 private:
  PathCache* paths_ = nullptr;
  const PathInsns* insns_ = nullptr;
  std::uint64_t* ip_;
  std::uint8_t* size_;
  std::uint8_t* cls_;
};

struct BlockRows {
  static constexpr bool kBounded = true;
  static constexpr bool kMayBeNone = false;
  static constexpr bool kEvents = false;
  static constexpr bool kMarks = false;
  static constexpr bool kEdges = false;
  static constexpr bool kPhases = false;
  static constexpr bool kCounts = false;
  explicit BlockRows(const BulkRoom& room)
      : rows(room.row),
        ip_(room.ip),
        bytes_(room.bytes),
        insns_(room.insns),
        instruction_(room.instruction),
        retired_(room.first_instruction),
        counts_branches_(room.count_branches) {}
  void begin(PathCache& paths) noexcept {
    paths_ = &paths;
    parts_ = paths.path_rows().block_parts();
    blocks_ = paths.path_rows().blocks();
  }
  void bits(const Transition& transition) {
    if (transition.path >= parts_.size() || parts_[transition.path].first == 0) [[unlikely]]
      add(transition.path);
    const PathPart& part = parts_[transition.path];
    if (counts_branches_) branches += paths_->path_rows().branches_of(transition.path);
    const PathBlock* block = blocks_ + part.first;
    for (const PathBlock* const end = block + part.rows; block != end; ++block, ++rows) {
      if (ip_ != nullptr) ip_[rows] = block->ip;
      if (bytes_ != nullptr) bytes_[rows] = block->bytes;
      if (insns_ != nullptr) insns_[rows] = block->insns;
      if (instruction_ != nullptr) {
        instruction_[rows] = retired_;
        retired_ += block->insns;
      }
    }
  }
  void target(const Transition& transition) { bits(transition); }
  [[nodiscard]] std::size_t before_target() const noexcept { return rows; }
  [[nodiscard]] std::size_t head(const Transition& transition) const noexcept {
    return parts_[transition.path].head;
  }
  std::size_t rows;
  std::uint64_t branches = 0;

 private:
  [[gnu::noinline]] void add(PathId path) {
    paths_->add_path_blocks(path);
    begin(*paths_);
  }

  PathCache* paths_ = nullptr;
  std::span<const PathPart> parts_;
  const PathBlock* blocks_ = nullptr;
  std::uint64_t* ip_;
  std::uint32_t* bytes_;
  std::uint32_t* insns_;
  std::uint64_t* instruction_;
  std::uint64_t retired_;  // instructions of the stream so far, if the column is selected
  bool counts_branches_;
};

}  // namespace ptkit::flow
