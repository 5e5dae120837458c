// Types and functions shared by the files of this folder. module.cpp calls every register_ function once.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "base/status.h"
#include "code/image/image.h"
#include "code/symbol/load_addresses.h"
#include "code/symbol/source_lines.h"
#include "code/symbol/symbols.h"
#include "flow/fast/code_cache_pool.h"
#include "flow/index/index.h"
#include "flow/rows/branch_choice.h"
#include "tables/columns/batch.h"
#include "tables/columns/read/stream_facts.h"
#include "trace/bundle.h"

namespace ptkit::api::python {

namespace py = pybind11;

// A bundle that Python may change.
struct BundleHandle {
  std::shared_ptr<trace::TraceBundle> bundle = std::make_shared<trace::TraceBundle>();
};

// A Python function that supplies code. Decoders call it without the GIL. Its exception is kept until the
// decoder has returned.
class CodeCallback {
 public:
  explicit CodeCallback(py::object function) : function_(std::move(function)) {}
  ~CodeCallback();
  CodeCallback(const CodeCallback&) = delete;
  CodeCallback& operator=(const CodeCallback&) = delete;

  [[nodiscard]] std::size_t read(trace::SpaceId space, std::uint64_t address, std::span<std::uint8_t> out);
  void rethrow();  // with the GIL

 private:
  py::object function_;
  std::mutex mutex_;
  std::exception_ptr raised_;
};

// An immutable bundle with its code and symbols.
struct Session {
  std::shared_ptr<const trace::TraceBundle> bundle;
  std::shared_ptr<CodeCallback> callback;  // may be null
  std::unique_ptr<code::image::Image> image;
  std::unique_ptr<flow::JumpTest> tail_jumps;        // the code caches refer to it
  std::unique_ptr<flow::CodeCachePool> code_caches;  // caches of decoded code
  std::unique_ptr<code::symbol::Symbols> symbols;
  // Without the debug files of this machine: call stacks are the same on each.
  std::unique_ptr<code::symbol::Symbols> recorded_symbols;
  std::unique_ptr<code::symbol::LoadAddresses> loads;
  std::shared_ptr<const code::symbol::DebugModules> debug;  // null: only what the bundle has
  std::unique_ptr<code::symbol::SourceLines> lines;
  std::shared_ptr<tables::columns::StreamFacts> facts;
  // Bytes of streams that all readers decoded, and the builder of an index.
  std::shared_ptr<std::atomic<std::uint64_t>> decoded = std::make_shared<std::atomic<std::uint64_t>>(0);
};

// An index, and the bytes of its file.
struct IndexHandle {
  trace::TraceBuffer bytes;
  std::shared_ptr<const flow::index::Index> index;
};

[[noreturn]] void raise_failure(const base::Failure& failure);
// Sets the address ranges that were programmed: ("filter" or "stop", first, last).
using Ranges = std::vector<std::tuple<std::string, std::uint64_t, std::uint64_t>>;
void set_ranges(trace::Configuration& configuration, const Ranges& ranges);
// Takes the memory that a stream's bytes need, or raises an error.
void prepare_stream(const trace::Stream& stream);

template <typename T>
T value_or_raise(base::Result<T> result) {
  if (!result.ok()) raise_failure(result.failure());
  return std::move(result.value());
}

// Borrows contiguous bytes and keeps their owner alive. Raises TypeError for other objects.
[[nodiscard]] trace::TraceBuffer buffer_from_python(const py::object& owner, const char* what);

// (rows, columns, runs): dictionaries of read-only arrays that own the batch's memory, and of RunColumns.
[[nodiscard]] py::tuple batch_to_python(std::unique_ptr<tables::columns::Batch> batch);
// An array of cells that `owner` keeps alive; empty without cells.
[[nodiscard]] py::array read_only_array(tables::columns::CellType type, void* cells, std::size_t rows,
                                        const py::object& owner);
// A read-only array of stride 0: all rows have this value.
[[nodiscard]] py::array uniform_array(tables::columns::CellType type, std::uint64_t value, std::size_t rows);
[[nodiscard]] py::dict runs_to_python(const std::vector<tables::columns::OwnerRun>& runs);

void register_arrow(py::module_& module);
void register_base(py::module_& module);
void register_bundle(py::module_& module);
void register_call_notes(py::module_& module);
void register_calls(py::module_& module);
void register_counts(py::module_& module);
void register_coverage(py::module_& module);
void register_packets(py::module_& module);
void register_enums(py::module_& module);
void register_open(py::module_& module);
void register_export(py::module_& module);
void register_readers(py::module_& module);
void register_index(py::module_& module);
void register_engines(py::module_& module);
void register_msr(py::module_& module);
void register_schema(py::module_& module);
void register_session(py::module_& module);
void register_symbols(py::module_& module);
void register_lines(py::module_& module);
void register_tables(py::module_& module);
void register_timeline(py::module_& module);
void register_timeline_files(py::module_& module);
void register_runs(py::module_& module);
void register_branches(py::module_& module);
void register_recorder(py::module_& module);
// The recorder, and queries of the drivers of this system.
void register_recorders(py::module_& module);

}  // namespace ptkit::api::python
