// Folds rows without loss: repetitions of what is executed between two visits of a loop's head in one frame.
//
//   a b a b a b c  ->  x 3 { a b } c
//
// Bodies are hash-consed: each distinct one is kept once, and two are compared by their numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tables/branches/loop_walk.h"

namespace ptkit::tables::branches {

// Stored in arrays: append only.
enum class FoldOp : std::uint8_t {
  ROW,    // a branch: first is from_ip, second is to_ip
  BEGIN,  // rows up to the END that belongs to it are repeated: first is how often, second is the head
  END,
  GAP,    // control flow is not known
  OWNER,  // the following rows are of this thread (first) and space (second)
};

struct FoldToken {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  FoldOp op = FoldOp::ROW;
  std::uint8_t kind = 0;
  std::uint8_t flags = 0;

  bool operator==(const FoldToken&) const = default;
};

class LoopFolder final : public LoopWatcher {
 public:
  // What is kept of bodies, in items, until the outermost loop ends a round; then they are forgotten.
  static constexpr std::size_t kMostItems = std::size_t{1} << 20U;

  explicit LoopFolder(const LoopMap& map, std::size_t most_items = kMostItems)
      : map_(map), most_items_(most_items) {}

  void on_enter(Visit& visit, Visit* outer) override;
  void on_round(Visit& visit) override;
  void on_leave(Visit& visit) override;
  void on_row(const calls::BranchStep& row, std::uint8_t kind, Visit* innermost,
              const calls::Owner& owner) override;
  // No more rows come.
  void finish() { close(0); }
  [[nodiscard]] std::size_t size() const noexcept { return tokens_.size(); }
  [[nodiscard]] std::vector<FoldToken> take() noexcept { return std::exchange(tokens_, {}); }

 private:
  using Item = std::uint32_t;  // number of a row, or of a repetition after kRepetition
  static constexpr Item kRepetition = Item{1} << 31U;
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // Items of bodies [begin, end) in `items_`.
  struct Body {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  struct Repetition {
    std::uint64_t times = 0;
    std::uint32_t body = 0;
    std::int32_t loop = 0;

    bool operator==(const Repetition&) const = default;
  };
  struct Level {
    std::uint64_t visit = 0;
    std::int32_t loop = 0;
    std::vector<Item> ended{};  // of rounds that have ended, but for the last ones, which are equal
    std::uint32_t body = kNone;
    std::uint64_t times = 0;
    std::vector<Item> round{};  // the open one
  };
  [[nodiscard]] std::size_t level_of(const Visit& visit) const noexcept;
  void append(Item item);
  void end_round(std::size_t level);
  void flush(std::size_t level);
  void close(std::size_t level);
  void emit(Item item);
  void emit_body(const Body& body);
  void forget();
  [[nodiscard]] Item row_of(const FoldToken& row);
  [[nodiscard]] Item repetition_of(const Repetition& repetition);
  [[nodiscard]] std::uint32_t body_of(const std::vector<Item>& round);

  const LoopMap& map_;
  std::size_t most_items_;
  std::vector<Level> levels_;  // outermost first
  std::vector<FoldToken> tokens_;
  calls::Owner owner_;
  bool has_owner_ = false;
  bool may_switch_ = true;
  std::vector<FoldToken> rows_;
  std::vector<Repetition> repetitions_;
  std::vector<Body> bodies_;
  std::vector<Item> items_;
  std::unordered_multimap<std::uint64_t, Item> row_numbers_;  // by hash
  std::unordered_multimap<std::uint64_t, Item> repetition_numbers_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> body_numbers_;
};

}  // namespace ptkit::tables::branches
