// All sums over frames that one pass gives: by function, by entry, by module, and by calling context.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "tables/calls/stack/frame_groups.h"
#include "tables/calls/sums/call_tree.h"
#include "tables/calls/sums/function_totals.h"

namespace ptkit::tables::calls {

// Raise it where the same rows give other frames or sums than before: indexes keep sums.
inline constexpr std::uint32_t kSumsVersion = 2;

// Sums are kept by cell (MoreGroups), so that lengths of frames are in memory once. Those by function, entry
// and module are made of the cells', one group after the other.
class CallSums final : public FrameSink {
 public:
  // Contexts that a tree may have which was not asked for: it is dropped where it gets larger.
  static constexpr std::size_t kMostContexts = std::size_t{1} << 17U;
  enum class Tree : std::uint8_t { NONE, SMALL, WHOLE };

  explicit CallSums(const tables::columns::Selection& selection, Tree tree,
                    std::size_t most_contexts = kMostContexts);

  void on_frame(const Frame& frame, const Owner& owner) override;
  void on_anomaly(const Anomaly&, const Owner&) override {}
  void on_hidden(const Frame& frame) override;
  [[nodiscard]] std::uint64_t bytes() const noexcept override;
  [[nodiscard]] std::uint64_t later_bytes(const FrameCounts& counts) const noexcept override;
  // Takes those of another stream, of which `functions` and `groups` have the numbers. All its frames have
  // ended.
  void add_all(CallSums&& others, const FunctionTable& functions, const MoreGroups& groups);
  // Rows of the table of functions, and of that of calling contexts. Null: out of memory. For sums of
  // add_all() only.
  [[nodiscard]] std::unique_ptr<tables::columns::Batch> functions(By by, tables::columns::ColumnMask mask);
  [[nodiscard]] bool has_tree() const noexcept { return tree_.has_value(); }
  [[nodiscard]] std::unique_ptr<tables::columns::Batch> tree(tables::columns::ColumnMask mask) const {
    return tree_->rows(mask);
  }

 private:
  struct Sums {
    Totals totals;  // by function
    std::array<Outermost, kMoreGroups> more;
  };
  static constexpr std::size_t kTables = 1 + kMoreGroups;

  [[nodiscard]] static std::uint32_t group_of(const MoreGroups::Cell& cell, std::size_t table) noexcept {
    return table == 0 ? cell.function : cell.groups[table - 1];
  }
  void drop_large_tree();
  [[nodiscard]] std::vector<std::uint32_t> renumber(const CallSums& others, const FunctionTable& from,
                                                    const MoreGroups& groups, std::size_t table);
  [[nodiscard]] static const Outermost& outermost_of(const Sums& sums, std::size_t table) noexcept {
    return table == 0 ? sums.totals.outermost : sums.more[table - 1];
  }
  [[nodiscard]] Totals sum_of(const std::vector<std::uint32_t>& cells, std::size_t table) const;

  FrameFilter filter_;
  std::vector<Sums> sums_;  // by cell
  std::optional<CallTree> tree_;
  std::size_t most_contexts_;
  // Of add_all(): functions, entries, modules, and their cells.
  std::array<FunctionTable, kTables> groups_;
  std::map<MoreGroups::Cell, std::uint32_t> numbers_;
};

}  // namespace ptkit::tables::calls
