#include "tables/branches/loop_folder.h"

#include <algorithm>
#include <iterator>

#include "tables/columns/request.h"
#include "tables/feedback/count_table.h"

namespace ptkit::tables::branches {
namespace {

// The number of a value, which gets the next one if it has none.
template <typename Numbers, typename Is, typename Add>
[[nodiscard]] std::uint32_t number_of(Numbers& numbers, std::uint64_t hash, const Is& is, const Add& add) {
  const auto [first, last] = numbers.equal_range(hash);
  const auto found = std::find_if(first, last, [&](const auto& one) { return is(one.second); });
  if (found != last) return found->second;
  const std::uint32_t number = add();
  numbers.emplace(hash, number);
  return number;
}

}  // namespace

void LoopFolder::on_enter(Visit& visit, Visit*) {
  levels_.push_back({.visit = visit.number, .loop = visit.loop});
}

void LoopFolder::on_round(Visit& visit) {
  const std::size_t level = level_of(visit);
  if (level == levels_.size()) return on_enter(visit, nullptr);  // rows of another thread came between
  close(level + 1);
  end_round(level);
}

void LoopFolder::on_leave(Visit& visit) { close(level_of(visit)); }

void LoopFolder::on_row(const calls::BranchStep& row, std::uint8_t kind, Visit*, const calls::Owner& owner) {
  if (kind == columns::MARK_GAP) {
    close(0);
    tokens_.push_back({.op = FoldOp::GAP});
  }
  if (kind >= columns::MARK_ENABLED) {
    may_switch_ = true;
    return;
  }
  if (may_switch_ && (!has_owner_ || owner != owner_)) {
    // Levels without rows are those that this row begins.
    const auto is_empty = [](const Level& level) {
      return level.times == 0 && level.ended.empty() && level.round.empty();
    };
    std::size_t begun = levels_.size();
    while (begun != 0 && is_empty(levels_[begun - 1])) --begun;
    std::vector<Level> kept(std::make_move_iterator(levels_.begin() + static_cast<std::ptrdiff_t>(begun)),
                            std::make_move_iterator(levels_.end()));
    close(0);
    levels_ = std::move(kept);
    owner_ = owner;
    has_owner_ = true;
    tokens_.push_back({static_cast<std::uint64_t>(owner.tid), owner.space, FoldOp::OWNER});
  }
  may_switch_ = false;
  constexpr std::uint8_t kFlags = flow::FROM_KNOWN | flow::TO_KNOWN | flow::TAKEN | flow::IN_TX;
  append(row_of({row.from_ip, row.to_ip, FoldOp::ROW, kind, static_cast<std::uint8_t>(row.flags & kFlags)}));
}

// The number of levels: there is none.
std::size_t LoopFolder::level_of(const Visit& visit) const noexcept {
  std::size_t level = levels_.size();
  while (level != 0 && levels_[level - 1].visit != visit.number) --level;
  return level == 0 ? levels_.size() : level - 1;
}

void LoopFolder::append(Item item) {
  if (levels_.empty()) {
    emit(item);
    return forget();
  }
  levels_.back().round.push_back(item);
}

void LoopFolder::end_round(std::size_t number) {
  Level& level = levels_[number];
  if (level.round.empty()) return;
  const std::uint32_t body = body_of(level.round);
  level.round.clear();
  if (level.body != body) flush(number);
  level.body = body;
  ++level.times;
  if (number == 0 && items_.size() > most_items_) {
    flush(0);
    forget();
  }
}

// Writes down the rounds that were equal.
void LoopFolder::flush(std::size_t number) {
  Level& level = levels_[number];
  if (level.times == 0) return;
  const Repetition repetition{level.times, level.body, level.loop};
  level.times = 0;
  level.body = kNone;
  const bool is_outermost = number == 0;
  if (repetition.times > 1) {
    const Item item = repetition_of(repetition);
    return is_outermost ? emit(item) : level.ended.push_back(item);
  }
  const Body& body = bodies_[repetition.body];
  if (is_outermost) return emit_body(body);
  level.ended.insert(level.ended.end(), items_.begin() + static_cast<std::ptrdiff_t>(body.begin),
                     items_.begin() + static_cast<std::ptrdiff_t>(body.end));
}

// Ends the levels from this one on.
void LoopFolder::close(std::size_t first) {
  while (levels_.size() > first) {
    const std::size_t last = levels_.size() - 1;
    end_round(last);
    flush(last);
    const std::vector<Item> ended = std::move(levels_.back().ended);
    levels_.pop_back();
    for (const Item item : ended) append(item);
    if (levels_.empty()) forget();
  }
}

void LoopFolder::emit(Item item) {
  if (item < kRepetition) {
    tokens_.push_back(rows_[item]);
    return;
  }
  const Repetition& repetition = repetitions_[item - kRepetition];
  tokens_.push_back({repetition.times, map_.loop(repetition.loop).head, FoldOp::BEGIN});
  emit_body(bodies_[repetition.body]);
  tokens_.push_back({.op = FoldOp::END});
}

void LoopFolder::emit_body(const Body& body) {
  for (std::size_t i = body.begin; i < body.end; ++i) emit(items_[i]);
}

// Nothing refers to a body: what is kept may be forgotten.
void LoopFolder::forget() {
  const bool is_small = items_.size() <= most_items_ && rows_.size() <= most_items_;
  if (is_small) return;
  rows_.clear();
  repetitions_.clear();
  bodies_.clear();
  items_.clear();
  row_numbers_.clear();
  repetition_numbers_.clear();
  body_numbers_.clear();
}

LoopFolder::Item LoopFolder::row_of(const FoldToken& row) {
  const std::uint64_t key = row.first * 3 + row.second + (std::uint64_t{row.kind} << 48U) + row.flags;
  return number_of(
      row_numbers_, feedback::mixed(key), [&](Item one) { return rows_[one] == row; },
      [&] {
        rows_.push_back(row);
        return static_cast<Item>(rows_.size() - 1);
      });
}

LoopFolder::Item LoopFolder::repetition_of(const Repetition& repetition) {
  const std::uint64_t key = repetition.times * 3 + (std::uint64_t{repetition.body} << 32U);
  return number_of(
      repetition_numbers_, feedback::mixed(key),
      [&](Item one) { return repetitions_[one - kRepetition] == repetition; },
      [&] {
        repetitions_.push_back(repetition);
        return static_cast<Item>(repetitions_.size() - 1) | kRepetition;
      });
}

std::uint32_t LoopFolder::body_of(const std::vector<Item>& round) {
  std::uint64_t hash = round.size();
  for (const Item item : round) hash = feedback::mixed(hash + item);
  const auto is_same = [&](std::uint32_t one) {
    const Body& body = bodies_[one];
    return std::equal(round.begin(), round.end(), items_.begin() + static_cast<std::ptrdiff_t>(body.begin),
                      items_.begin() + static_cast<std::ptrdiff_t>(body.end));
  };
  return number_of(body_numbers_, hash, is_same, [&] {
    const std::size_t begin = items_.size();
    items_.insert(items_.end(), round.begin(), round.end());
    bodies_.push_back({begin, items_.size()});
    return static_cast<std::uint32_t>(bodies_.size() - 1);
  });
}

}  // namespace ptkit::tables::branches
