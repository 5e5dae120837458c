// Frames of streams for Python: which ones, and how all of their streams are read. Reads without the GIL.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/python/bindings.h"
#include "api/python/long_calls.h"
#include "tables/calls/stack_probe.h"
#include "tables/calls/stack_states.h"
#include "tables/calls/stream_calls.h"
#include "tables/columns/read/reader.h"
#include "tables/columns/read/stream_readers.h"
#include "tables/columns/request.h"

namespace ptkit::api::python {

// Options for the frames of a stream, and results beside those that a sink gets.
struct Looks {
  tables::calls::StackProbe* probe = nullptr;
  bool all_branches = false;
  bool all_groups = false;
  std::vector<tables::calls::StackStates>* noted = nullptr;  // of each stream
};

// Arguments that all reads of calls have in common.
struct CallQuery {
  std::shared_ptr<Session> session;
  std::vector<std::uint32_t> streams;
  std::vector<tables::columns::TableReader::Input> inputs;  // of each stream
  tables::columns::Selection frames;                        // selects frames
  tables::columns::Selection owners;                        // selects threads, processes and spaces
  std::size_t threads = 1;
  bool time = true;
  tables::calls::Tails tails = tables::calls::Tails::NESTED;
  tables::calls::FrameView frames_shown = tables::calls::FrameView::NATIVE;
  bool inlines = false;
  bool select_sides = false;  // errors and gaps are those of the selection
  std::shared_ptr<tables::columns::RowBudget> budget;
  std::optional<tables::calls::StreamCalls::Input::Window> window;
  std::vector<std::optional<tables::calls::StackStates>> states;  // of each stream, or none

  [[nodiscard]] tables::calls::StreamCalls::Input input(std::size_t index, std::size_t own_threads,
                                                        const Looks& looks) const;
  [[nodiscard]] std::unique_ptr<tables::calls::StreamCalls> open(std::size_t index, std::size_t own_threads,
                                                                 tables::calls::FrameSink& sink,
                                                                 const Looks& looks) const;
  // Large streams are decoded on several threads, one after the other.
  [[nodiscard]] std::size_t threads_of(std::size_t index) const;
  void rethrow() const;
};

// Adds the class to the module. Arguments of its methods are those of `register_calls`.
[[nodiscard]] py::class_<CallQuery, std::shared_ptr<CallQuery>> register_call_query(py::module_& module);

// Reads all streams, each with the reader that `open` makes; `take` gets them in order.
template <typename Reader>
void read_streams(const CallQuery& query, typename tables::columns::StreamReaders<Reader>::Make open,
                  typename tables::columns::StreamReaders<Reader>::Take take) {
  bool out_of_memory = false;
  {
    const py::gil_scoped_release release;
    tables::columns::StreamReaders<Reader> readers(query.streams.size(), query.threads, std::move(open),
                                                   std::move(take));
    while (!readers.wait_for(kSignalPeriod)) {
      const py::gil_scoped_acquire gil;
      check_signals();
      query.rethrow();
    }
    out_of_memory = readers.out_of_memory();
  }
  query.rethrow();
  if (out_of_memory) throw std::bad_alloc();
}

// Makes readers with a sink each.
template <typename Sink>
tables::columns::StreamReaders<tables::calls::StreamCalls>::Make into(
    const CallQuery& query, const std::vector<std::unique_ptr<Sink>>& sinks, const Looks& looks = {}) {
  return [&query, &sinks, looks](std::size_t index) {
    return query.open(index, query.threads_of(index), *sinks[index], looks);
  };
}

void append(std::unique_ptr<tables::columns::Batch>& all, std::unique_ptr<tables::columns::Batch> more);

[[nodiscard]] py::tuple to_python(std::unique_ptr<tables::columns::Batch>& batch,
                                  tables::columns::TableId table,
                                  tables::columns::ColumnMask mask = tables::columns::kAllColumns);

// Memory of what all streams have together. Throws std::bad_alloc if what follows does not fit.
class Gathered {
 public:
  explicit Gathered(const CallQuery& query) : budget_(query.budget) {}
  ~Gathered() {
    if (budget_ != nullptr) static_cast<void>(budget_->report_bytes(share_, 0, 0));
  }
  Gathered(const Gathered&) = delete;
  Gathered& operator=(const Gathered&) = delete;
  void report(std::uint64_t bytes) {
    if (budget_ != nullptr &&
        budget_->report_bytes(share_, bytes, 0) == tables::columns::RowBudget::Answer::STOP)
      throw std::bad_alloc();
  }

 private:
  std::shared_ptr<tables::columns::RowBudget> budget_;
  tables::columns::RowBudget::Share share_;
};

// Rows of decode errors and of gaps.
struct ErrorTables {
  std::unique_ptr<tables::columns::Batch> errors;
  std::unique_ptr<tables::columns::Batch> gaps;

  template <typename Stream>
  void add(Stream& stream) {
    append(errors, stream.take_errors());
    append(gaps, stream.take_gaps());
  }
  [[nodiscard]] py::tuple take(const py::object& rows) {
    return py::make_tuple(rows, to_python(errors, tables::columns::TableId::errors),
                          to_python(gaps, tables::columns::TableId::gaps));
  }
};

}  // namespace ptkit::api::python
