// Sums over the frames of each group, made as frames end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tables/calls/code/function_table.h"
#include "tables/calls/frame_rows.h"
#include "tables/calls/stack/frame.h"
#include "tables/calls/stack/frame_groups.h"
#include "tables/calls/sums/frame_sums.h"
#include "tables/calls/sums/quantiles.h"
#include "tables/columns/batch.h"

namespace ptkit::tables::calls {

struct Outermost : GroupSums {
  OffCpuTime off_cpu;

  void add(const Frame& frame, const GroupShare& share) {
    if (GroupSums::add(frame, share) && frame.off_cpu.any()) [[unlikely]]
      off_cpu.add(frame.off_cpu);
  }
  void add_all(const Outermost& others) {
    GroupSums::add_all(others);
    off_cpu.add(others.off_cpu);
  }
};

struct Totals : FrameSums {
  Outermost outermost;  // by group, or by function
  bool has_frames = false;
  Quantiles durations;  // TSC ticks
  Quantiles lengths;    // instructions

  [[nodiscard]] std::uint64_t lists_bytes() const noexcept { return durations.bytes() + lengths.bytes(); }
  void add(const Frame& frame);
  void add_all(const Totals& others);
};

// Sums that a row of the table of functions is made of. Finding quantiles changes the order of lengths.
struct RowTotals {
  Totals& totals;
  const Outermost& outermost;  // instead of those of `totals`
};

// The rows of groups from their sums, most instructions first. `instructions`: of each group; those that are
// no group of frames have none. `totals_of` is called for one group after the other. Null: out of memory.
[[nodiscard]] std::unique_ptr<tables::columns::Batch> rows_of_totals(
    By by, const FunctionTable& groups, const std::vector<std::optional<std::uint64_t>>& instructions,
    const std::function<RowTotals(std::uint32_t group)>& totals_of, tables::columns::ColumnMask mask);

// A row of the table of functions for each number, without sums. Null: out of memory.
[[nodiscard]] std::unique_ptr<tables::columns::Batch> function_rows(const FunctionTable& functions);

// By group. Instructions and branches of a frame that has another one of its group below are counted there.
class FunctionTotals final : public FrameSink {
 public:
  explicit FunctionTotals(const tables::columns::Selection& selection) : filter_(selection) {}

  void on_frame(const Frame& frame, const Owner& owner) override;
  void on_anomaly(const Anomaly&, const Owner&) override {}
  [[nodiscard]] std::uint64_t bytes() const noexcept override;
  [[nodiscard]] std::uint64_t later_bytes(const FrameCounts& counts) const noexcept override;
  // Adds those of another stream, of which `groups` has the numbers.
  void add_all(const FunctionTotals& others, const FrameGroups& groups);
  // Rows sorted by instructions, most first. Null: out of memory.
  [[nodiscard]] std::unique_ptr<tables::columns::Batch> rows(tables::columns::ColumnMask mask);

 private:
  FrameFilter filter_;
  By by_ = By::FUNCTION;  // of add_all()
  FunctionTable groups_;
  std::vector<Totals> totals_;
};

}  // namespace ptkit::tables::calls
