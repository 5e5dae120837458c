// Runs of one stream: reads its taken branches in parts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "code/symbol/row_views.h"
#include "tables/columns/read/reader.h"
#include "tables/columns/request.h"
#include "tables/feedback/file_runs.h"

namespace ptkit::tables::feedback {

class StreamRuns {
 public:
  // Runs that end within it, and branches within it.
  struct Window {
    columns::PhasesBy by = columns::PhasesBy::TIME;
    std::uint64_t begin = 0;
    std::uint64_t end = UINT64_MAX;
  };
  struct Input {
    columns::TableReader::Input reader;  // of this one stream
    const code::image::Image& image;
    columns::Selection owners;  // of threads, processes and spaces
    std::optional<Window> window = std::nullopt;
    bool select_sides = false;                             // errors and gaps are those of the selection
    std::shared_ptr<columns::RowBudget> budget = nullptr;  // of all streams; null: memory is not checked
  };
  // Objects that `input` refers to, and `runs`, must outlive this.
  StreamRuns(Input input, FileRuns& runs);
  ~StreamRuns();
  StreamRuns(const StreamRuns&) = delete;
  StreamRuns& operator=(const StreamRuns&) = delete;

  using Step = columns::TableReader::Step;
  // Works for a few milliseconds at most. Step::READY is never returned.
  [[nodiscard]] Step step();
  void cancel() noexcept { reader_.cancel(); }

 private:
  // A row, as far as runs need it.
  struct Row {
    std::uint64_t from_ip = 0;
    std::uint64_t to_ip = 0;
    std::uint64_t instruction = 0;
    std::uint64_t tsc = 0;
    std::uint32_t tsc_error = 0;
    std::uint8_t kind = 0;
    std::uint8_t flags = 0;
  };
  void feed(columns::Batch& rows);
  void take(const Row& row);
  void take_branch(const Row& row);
  void take_mark(const Row& row);
  void close(const Row& row, std::uint64_t instruction, bool by_branch);
  void forget(std::uint64_t instruction) noexcept;
  [[nodiscard]] const code::image::CodeView* view_at(const Row& row, std::uint64_t ip);
  void count_losses();
  [[nodiscard]] bool has_memory();

  FileRuns& runs_;
  code::symbol::RowViews views_;
  bool by_owner_;   // rows of some owners only
  bool has_times_;  // code changes with time
  bool has_window_;
  bool is_active_;  // the window has begun
  bool has_ended_ = false;
  columns::TableReader reader_;
  std::shared_ptr<columns::RowBudget> budget_;
  columns::RowBudget::Share share_;
  trace::SpaceId space_ = trace::kAnySpace;
  Run run_;                   // the open run, without its end
  Executions executions_;     // of the branch before it
  std::uint64_t first_ = 0;   // instructions of the stream before it
  std::uint64_t now_ = 0;     // the same of the last row
  bool is_after_gap_ = true;  // nothing is known of the control flow
};

}  // namespace ptkit::tables::feedback
