// Sums over the frames of all streams that are read.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "api/python/bindings.h"
#include "api/python/calls/call_query.h"
#include "tables/calls/sums/call_sums.h"

namespace ptkit::api::python {

// Sums of each stream, and those of all streams together.
class StreamSums {
 public:
  StreamSums(const CallQuery& query, tables::calls::CallSums::Tree tree) : all_(query.frames, tree) {
    for (std::size_t i = 0; i < query.streams.size(); ++i)
      of_streams_.push_back(std::make_unique<tables::calls::CallSums>(query.frames, tree));
  }
  [[nodiscard]] const std::vector<std::unique_ptr<tables::calls::CallSums>>& of_streams() const {
    return of_streams_;
  }
  void end_stream(std::size_t index, const tables::calls::StreamCalls& calls) {
    all_.add_all(std::move(*of_streams_[index]), calls.functions(), calls.groups());
    of_streams_[index].reset();
  }
  [[nodiscard]] std::uint64_t bytes() const { return all_.bytes(); }
  // Rows by what the frames are summed up by, and "tree", if that was not dropped.
  [[nodiscard]] py::dict to_python() {
    py::dict found;
    for (const auto& [name, by] :
         {std::pair("function", tables::calls::By::FUNCTION), std::pair("entry", tables::calls::By::ENTRY),
          std::pair("module", tables::calls::By::MODULE)})
      found[name] = rows_to_python(
          all_.functions(by, tables::columns::usual_columns(tables::columns::TableId::functions)));
    if (all_.has_tree())
      found["tree"] =
          rows_to_python(all_.tree(tables::columns::usual_columns(tables::columns::TableId::call_tree)));
    return found;
  }

 private:
  [[nodiscard]] static py::tuple rows_to_python(std::unique_ptr<tables::columns::Batch> rows) {
    if (rows == nullptr) throw std::bad_alloc();
    rows->shrink();
    return batch_to_python(std::move(rows));
  }

  std::vector<std::unique_ptr<tables::calls::CallSums>> of_streams_;
  tables::calls::CallSums all_;
};

}  // namespace ptkit::api::python
