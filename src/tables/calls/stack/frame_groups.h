// Groups that frames are summed up by: their functions, the addresses of these, or their files.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/node_bytes.h"
#include "tables/calls/code/function_table.h"
#include "tables/calls/stack/frame.h"

namespace ptkit::tables::calls {

enum class By : std::uint8_t { FUNCTION, ENTRY, MODULE };

[[nodiscard]] constexpr By by_of(std::string_view name) noexcept {
  if (name == "entry") return By::ENTRY;
  return name == "module" ? By::MODULE : By::FUNCTION;
}

class FrameGroups {
 public:
  // `functions` has the numbers of frames' functions, and must outlive this.
  FrameGroups(By by, const FunctionTable& functions) : by_(by), functions_(functions) {}

  // Frames of these functions are not shown where others are below them, so no frame recurs because of them.
  using IsHidden = std::function<bool(std::uint32_t function)>;
  void hide(IsHidden is_hidden) { is_hidden_ = std::move(is_hidden); }

  // The group of frames of this function that were entered at this address. `level`: of an inlined call.
  // `is_above`: above another frame.
  [[nodiscard]] std::uint32_t of(std::uint32_t function, std::uint64_t entry_ip, trace::SpaceId space,
                                 std::uint8_t level = 0, bool is_above = false) {
    if (by_ == By::FUNCTION || function < kFirstFunction) return function;
    const Function& of = functions_.at(function);
    if (of.thread != trace::kNoId) return by_ == By::MODULE ? kUnknownFunction : groups_.number(of);
    Function group{.entry_ip = entry_ip, .space = space, .file = -1, .offset = 0, .code_tsc = of.code_tsc};
    if (of.import != 0) return groups_.number(by_ == By::ENTRY ? of : module_of_import(of));
    const bool is_alone = is_above && is_hidden_ && is_hidden_(function);
    if (by_ == By::MODULE && !is_alone) {
      group.file = of.file;
      if (group.file < 0) group = memory_of(of);
    } else {
      group.inlined = of.inlined;
      group.level = level;
    }
    return groups_.number(group);
  }
  // Of the groups that have numbers.
  [[nodiscard]] const FunctionTable& table() const noexcept {
    return by_ == By::FUNCTION ? functions_ : groups_;
  }
  // Gives groups that have none yet numbers in this order: those of another table.
  void give_numbers(std::span<const Function> groups) {
    for (const Function& group : groups) static_cast<void>(groups_.number(group));
  }
  [[nodiscard]] By by() const noexcept { return by_; }
  // Without those of the functions.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return groups_.bytes(); }

 private:
  // A file of the trace, or a module that only imports name.
  [[nodiscard]] static Function module_of_import(const Function& function) {
    Function module = function;
    module.import = function.file >= 0 ? 0 : function.import_module;
    return module;
  }

  // Memory that has the code of a function without a file.
  [[nodiscard]] static Function memory_of(const Function& function) {
    if (!function.memory_base) return {};
    Function memory{.entry_ip = *function.memory_base, .space = function.memory_space};
    memory.code_tsc = function.code_tsc;
    memory.memory_base = function.memory_base;
    return memory;
  }

  By by_;
  const FunctionTable& functions_;
  FunctionTable groups_;
  IsHidden is_hidden_;
};

// All groups of frames at once. Frames of a *cell* have the same function, entry and module, so that sums by
// each of these are made of the sums of cells.
class MoreGroups {
 public:
  static constexpr std::array<By, kMoreGroups> kBy{By::ENTRY, By::MODULE};
  struct Cell {
    std::uint32_t function = kUnknownFunction;
    std::array<std::uint32_t, kMoreGroups> groups{};

    friend bool operator<(const Cell& one, const Cell& other) noexcept {
      return std::tie(one.function, one.groups) < std::tie(other.function, other.groups);
    }
  };

  explicit MoreGroups(const FunctionTable& functions)
      : groups_{FrameGroups(kBy[0], functions), FrameGroups(kBy[1], functions)} {}

  void hide(const FrameGroups::IsHidden& is_hidden) {
    for (FrameGroups& groups : groups_) groups.hide(is_hidden);
  }
  // The cell of a frame: see FrameGroups::of().
  [[nodiscard]] std::uint32_t of(std::uint32_t function, std::uint64_t entry_ip, trace::SpaceId space,
                                 std::uint8_t level, bool is_above) {
    if (function >= last_.size()) last_.resize(std::max<std::size_t>(function + 1, last_.size() * 2));
    Last& last = last_[function];
    const Last frame{entry_ip, space, level, is_above, true, last.cell};
    if (last == frame) return last.cell;
    last = frame;
    Cell cell{.function = function};
    for (std::size_t i = 0; i < kMoreGroups; ++i)
      cell.groups[i] = groups_[i].of(function, entry_ip, space, level, is_above);
    last.cell = number(cell);
    return last.cell;
  }
  // Give groups, of kBy, and cells that have none yet numbers in this order.
  void give_numbers(std::size_t index, std::span<const Function> groups) {
    groups_[index].give_numbers(groups);
  }
  void give_numbers(std::span<const Cell> cells) {
    for (const Cell& cell : cells) static_cast<void>(number(cell));
  }
  [[nodiscard]] const Cell& cell(std::uint32_t number) const noexcept { return cells_[number]; }
  [[nodiscard]] std::size_t size() const noexcept { return cells_.size(); }
  // Of kBy.
  [[nodiscard]] const FrameGroups& groups(std::size_t index) const noexcept { return groups_[index]; }
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    std::uint64_t sum = last_.capacity() * sizeof(Last) + cells_.capacity() * sizeof(Cell) +
                        numbers_.size() * base::node_bytes<decltype(numbers_)::value_type>();
    for (const FrameGroups& groups : groups_) sum += groups.bytes();
    return sum;
  }

 private:
  // The last frame of a function.
  struct Last {
    std::uint64_t entry_ip = 0;
    trace::SpaceId space = trace::kAnySpace;
    std::uint8_t level = 0;
    bool is_above = false;
    bool is_known = false;
    std::uint32_t cell = 0;

    bool operator==(const Last&) const = default;
  };

  [[nodiscard]] std::uint32_t number(const Cell& cell) {
    const auto [found, is_new] = numbers_.emplace(cell, static_cast<std::uint32_t>(cells_.size()));
    if (is_new) cells_.push_back(cell);
    return found->second;
  }

  std::array<FrameGroups, kMoreGroups> groups_;
  std::vector<Last> last_;  // by function
  std::map<Cell, std::uint32_t> numbers_;
  std::vector<Cell> cells_;
};

}  // namespace ptkit::tables::calls
