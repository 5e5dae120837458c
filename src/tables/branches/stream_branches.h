// Statistics of the branches of one stream: reads its rows in parts.
#pragma once

#include <cstdint>
#include <memory>

#include "tables/branches/outcome_runs.h"
#include "tables/calls/stream_calls.h"
#include "tables/columns/edge_tally.h"
#include "tables/columns/read/reader.h"

namespace ptkit::tables::branches {

struct BranchTotals {
  std::vector<BranchRuns> conditional;  // by space and address
  columns::EdgeTally indirect;          // calls and jumps; flow::half_edge: the target is not known
  bool has_gaps = false;

  void add_all(BranchTotals&& others);
};

class StreamBranches {
 public:
  // Of its members, those that select: reader, selection, window, budget.
  using Input = calls::StreamCalls::Input;
  explicit StreamBranches(Input input);
  ~StreamBranches();
  StreamBranches(const StreamBranches&) = delete;
  StreamBranches& operator=(const StreamBranches&) = delete;

  using Step = columns::TableReader::Step;
  // Works for a few milliseconds at most. Step::READY is never returned.
  [[nodiscard]] Step step();
  void cancel() noexcept { reader_.cancel(); }
  [[nodiscard]] const columns::TableReader& reader() const noexcept { return reader_; }
  [[nodiscard]] std::unique_ptr<columns::Batch> take_errors() { return reader_.take_errors(); }
  [[nodiscard]] std::unique_ptr<columns::Batch> take_gaps() { return reader_.take_gaps(); }
  // After Step::END.
  [[nodiscard]] BranchTotals take();

 private:
  void feed(columns::Batch& rows);
  void follow(const columns::OwnerRun& run);

  bool is_one_of_several_;  // streams of processors: threads go on in others
  bool is_active_;          // the window has begun, and has not ended
  columns::TableReader reader_;
  std::shared_ptr<columns::RowBudget> budget_;
  columns::RowBudget::Share share_;
  columns::OwnerRun owner_;
  OutcomeRuns outcomes_;
  columns::EdgeTally indirect_;
  bool has_gaps_ = false;
};

}  // namespace ptkit::tables::branches
