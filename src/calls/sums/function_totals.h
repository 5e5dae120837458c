// Sums over the frames of each group, made as frames end.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "calls/code/function_table.h"
#include "calls/frame_rows.h"
#include "calls/stack/frame.h"
#include "calls/stack/frame_groups.h"
#include "calls/sums/quantiles.h"
#include "columns/batch.h"

namespace ptkit::calls {

struct Totals {
  std::uint64_t count = 0;
  std::uint64_t begin_unseen = 0;
  std::uint64_t crossing = 0;
  std::uint64_t instructions = 0;
  std::uint64_t self_instructions = 0;
  std::uint64_t branches = 0;
  std::uint64_t least = 0;
  std::uint64_t most = 0;
  AwayTime away;
  bool has_frames = false;
  bool time_known = false;
  bool count_exact = true;
  Quantiles durations;  // TSC ticks
  Quantiles lengths;    // instructions

  void add(const Frame& frame);
  void add_all(const Totals& others);
};

// A row of the table of functions for each number, without sums. Null: out of memory.
[[nodiscard]] std::unique_ptr<columns::Batch> function_rows(const FunctionTable& functions);

// By group. Instructions and branches of a frame that has another one of its group below are counted there.
class FunctionTotals final : public FrameSink {
 public:
  explicit FunctionTotals(const columns::Selection& selection) : filter_(selection) {}

  void on_frame(const Frame& frame, const Owner& owner) override;
  void on_anomaly(const Anomaly&, const Owner&) override {}
  [[nodiscard]] std::uint64_t bytes() const noexcept override;
  [[nodiscard]] std::uint64_t later_bytes(const FrameCounts& counts) const noexcept override;
  // Adds those of another stream, of which `groups` has the numbers.
  void add_all(const FunctionTotals& others, const FrameGroups& groups);
  // Rows sorted by instructions, most first. Null: out of memory.
  [[nodiscard]] std::unique_ptr<columns::Batch> rows(columns::ColumnMask mask);

 private:
  FrameFilter filter_;
  By by_ = By::FUNCTION;  // of add_all()
  FunctionTable groups_;
  std::vector<Totals> totals_;
};

}  // namespace ptkit::calls
