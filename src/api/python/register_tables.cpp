// Table readers. Decode without the GIL, in slices, so that Ctrl-C and callbacks are handled.
#include <algorithm>
#include <atomic>
#include <chrono>

#include "api/python/bindings.h"
#include "api/python/engines.h"
#include "api/python/long_calls.h"
#include "api/python/reader_input.h"
#include "tables/columns/read/stream_workers.h"

namespace ptkit::api::python {
namespace {

constexpr const char* kReaderInUse = "another thread reads from this reader";

using tables::columns::TableReader;
using Clock = std::chrono::steady_clock;

// Memory of consecutive parts that are read into the same columns.
struct Part {
  tables::columns::PartMemory memory;
  std::size_t rows = 0;
  std::vector<tables::columns::OwnerRun> runs;  // of the last part
  py::dict given;
  bool runs_given = false;
  py::dict arrays{py::reinterpret_steal<py::dict>(nullptr)};  // in `memory`
};

struct Reader {
  std::shared_ptr<Session> session;
  Part part;
  std::unique_ptr<TableReader> reader;
  std::atomic<bool> busy{false};

  // The reader's destructor joins its threads, which may wait for the GIL in a callback.
  ~Reader() {
    const py::gil_scoped_release release;
    reader.reset();
  }
  Reader() = default;
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  void rethrow() const {
    if (session->callback != nullptr) session->callback->rethrow();
  }
};

tables::columns::TableId table_by_name(const std::string& name) {
  for (std::size_t table = 0; table < tables::columns::kTableCount; ++table) {
    const auto id = static_cast<tables::columns::TableId>(table);
    if (tables::columns::table_name(id) == name) return id;
  }
  throw py::key_error("no table " + name);
}

std::unique_ptr<Reader> make_reader(std::shared_ptr<Session> session, const std::string& table,
                                    const std::vector<std::string>& names, std::vector<std::uint32_t> streams,
                                    const py::dict& selection, const std::string& engine,
                                    const std::string& resync, bool time, bool context, bool ticks, bool sync,
                                    bool side_tables, bool select_sides, bool whole, std::size_t threads,
                                    const std::shared_ptr<IndexHandle>& index,
                                    const std::shared_ptr<tables::columns::RowBudget>& budget) {
  tables::columns::Request request;
  request.table = table_by_name(table);
  request.mask = mask_of(request.table, names);
  request.time = time;
  request.estimate = time && tables::columns::wants_estimate(request.table, request.mask);
  request.context = context;
  request.sync = sync;
  request.side_tables = side_tables;
  request.select_sides = select_sides;
  request.offset_runs = whole;
  request.selection = selection_of(selection);
  request.half_edges = selection.contains("half_edges");
  request.counts_blocks = selection.contains("counted_blocks");
  if (selection.contains("bins")) {
    request.bins = selection["bins"].cast<std::vector<std::uint64_t>>();
    if (selection["by"].cast<std::string>() == "instructions")
      request.phases_by = tables::columns::PhasesBy::INSTRUCTIONS;
  }
  TableReader::Input input = reader_input(session, {std::move(streams), engine, resync, threads, ticks});
  if (index != nullptr && !ticks) input.index = index->index;
  if (budget != nullptr) input.budget = budget;
  input.packet_factory = make_packet_factory(engine, session);
  auto reader = std::make_unique<Reader>();
  reader->session = std::move(session);
  reader->reader = std::make_unique<TableReader>(std::move(input), request);
  return reader;
}

bool same_runs(const std::vector<tables::columns::OwnerRun>& some,
               const std::vector<tables::columns::OwnerRun>& others) {
  return std::equal(some.begin(), some.end(), others.begin(), others.end(),
                    [](const tables::columns::OwnerRun& one, const tables::columns::OwnerRun& other) {
                      return one.row == other.row && one.same_owner(other);
                    });
}

// Whether a step ended because an allocation failed or the memory budget is exceeded.
[[nodiscard]] bool has_no_room(TableReader::Step step) noexcept {
  return step == TableReader::Step::NO_MEMORY || step == TableReader::Step::COUNT ||
         step == TableReader::Step::NO_ROOM;
}

// Decodes until `rows` rows or the end. With `stop_on_error`, also stops at the first error row.
void work(Reader& self, std::size_t rows, bool stop_on_error) {
  auto step = TableReader::Step::MORE;
  {
    const py::gil_scoped_release release;
    auto last = Clock::now();
    while (step == TableReader::Step::MORE && !(stop_on_error && self.reader->error_rows() > 0)) {
      step = self.reader->step(rows);
      if (Clock::now() - last < kSignalPeriod) continue;
      const py::gil_scoped_acquire gil;
      check_signals();
      self.rethrow();
      last = Clock::now();
    }
  }
  check_signals();
  self.rethrow();
  if (has_no_room(step)) throw std::bad_alloc();
}

py::tuple read(Reader& self, std::optional<std::size_t> rows, bool stop_on_error) {
  const ExclusiveUse use(self.busy, kReaderInUse);
  const std::size_t limit = rows.value_or(SIZE_MAX);
  work(self, limit, stop_on_error);
  return batch_to_python(self.reader->take(limit));
}

// Arrays by name. They keep the memory of their rows.
py::dict arrays_of(const Reader& self, const tables::columns::PartMemory& part, std::size_t rows) {
  const tables::columns::Request& request = self.reader->request();
  const py::capsule owner(new std::shared_ptr<void>(part.memory),
                          [](void* shared) { delete static_cast<std::shared_ptr<void>*>(shared); });
  const auto infos = tables::columns::columns_of(request.table);
  py::dict arrays;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    if (((request.mask >> i) & 1) == 0) continue;
    arrays[py::str(infos[i].name.data(), infos[i].name.size())] =
        ((part.uniform >> i) & 1) != 0 ? uniform_array(infos[i].type, part.values[i], rows)
                                       : read_only_array(infos[i].type, part.columns[i], rows, owner);
  }
  return arrays;
}

// Takes memory for parts of `rows` rows, which fill() writes.
void make_part(Reader& self, std::size_t rows) {
  const tables::columns::Request& request = self.reader->request();
  const ExclusiveUse use(self.busy, kReaderInUse);
  Part part;
  part.memory = tables::columns::take_part(*tables::columns::MemoryPool::of_process(), request.table,
                                           request.mask, rows + TableReader::kSlackRows);
  if (part.memory.memory == nullptr) throw std::bad_alloc();
  part.rows = rows;
  self.part = std::move(part);
}

// The arrays of a part. Those of the memory that all parts share are made once, and again where other columns
// are uniform.
py::dict part_arrays(const Reader& self, Part& part, const tables::columns::PartMemory& found) {
  if (found.memory != part.memory.memory) return arrays_of(self, found, found.rows);
  if (part.arrays && part.memory.uniform == found.uniform && part.memory.values == found.values)
    return part.arrays;
  part.memory.uniform = found.uniform;
  part.memory.values = found.values;
  part.arrays = arrays_of(self, part.memory, part.rows);
  return part.arrays;
}

// Fills the part with rows, partially only at the end. Returns the number of rows, their runs (the same
// object while they do not change), whether there are errors or gaps, and arrays, which may be longer.
py::tuple fill(Reader& self, bool stop_on_error) {
  const ExclusiveUse use(self.busy, kReaderInUse);
  Part& part = self.part;
  if (part.memory.memory == nullptr) throw std::runtime_error("make_part() comes first");
  self.reader->attach(part.memory);
  work(self, part.rows, stop_on_error);
  std::vector<tables::columns::OwnerRun> runs;
  const tables::columns::PartMemory found = self.reader->end_part(part.rows, runs);
  if (!part.runs_given || !same_runs(runs, part.runs)) {
    part.given = runs_to_python(runs);
    part.runs = std::move(runs);
    part.runs_given = true;
  }
  return py::make_tuple(found.rows, part.given, self.reader->has_error_rows(),
                        part_arrays(self, part, found));
}

py::object side(std::unique_ptr<tables::columns::Batch> batch) {
  return batch == nullptr ? py::object(py::none()) : py::object(batch_to_python(std::move(batch)));
}

// Gives several threads to streams that are larger than one thread's share: their segments are decoded in
// parallel.
void share_threads(const std::vector<Reader*>& readers, std::size_t threads) {
  std::uint64_t total = 0;
  for (const Reader* reader : readers) total += reader->reader->bytes_total();
  for (Reader* reader : readers) {
    const bool large = reader->reader->bytes_total() > total / std::max<std::size_t>(threads, 1);
    reader->reader->set_threads(large ? threads : 1);
  }
}

py::tuple read_all(const std::vector<Reader*>& readers, std::size_t threads) {
  if (readers.empty()) throw py::value_error("no readers");
  share_threads(readers, threads);
  std::vector<TableReader*> inner;
  for (Reader* reader : readers) inner.push_back(reader->reader.get());
  std::unique_ptr<tables::columns::Batch> all, errors, gaps;
  {
    const py::gil_scoped_release release;
    tables::columns::StreamWorkers workers(std::move(inner), threads);
    while (!workers.wait_for(kSignalPeriod)) {
      const py::gil_scoped_acquire gil;
      check_signals();
      readers.front()->rethrow();
    }
    if (!workers.out_of_memory()) {
      all = workers.take_rows();
      errors = workers.take_errors();
      gaps = workers.take_gaps();
    }
  }
  readers.front()->rethrow();
  return py::make_tuple(batch_to_python(std::move(all)), side(std::move(errors)), side(std::move(gaps)));
}

// Idle memory of the pool counts as free.
base::MemoryLeft left_with_idle(const std::string& root) {
  base::MemoryLeft left = base::memory_left(root);
  const std::uint64_t idle = tables::columns::MemoryPool::of_process()->idle_bytes();
  for (base::MemoryBound* bound : {&left.address_space, &left.pages}) {
    if (bound->bytes < UINT64_MAX - idle) bound->bytes += idle;
  }
  return left;
}

std::shared_ptr<tables::columns::RowBudget> make_budget(std::uint64_t row_bytes, std::uint64_t after_bytes,
                                                        std::optional<std::uint64_t> most_rows, bool estimate,
                                                        const std::string& root) {
  tables::columns::RowBudget::Input input;
  input.row_bytes = row_bytes;
  input.after_bytes = after_bytes;
  input.most_rows = most_rows.value_or(UINT64_MAX);
  input.estimate = estimate;
  input.left = [root] { return left_with_idle(root); };
  return std::make_shared<tables::columns::RowBudget>(std::move(input));
}

// (bytes that may be allocated, name of the limit): the smallest of all limits.
py::tuple memory_left(const std::string& root) {
  const base::MemoryBound least = left_with_idle(root).least();
  return py::make_tuple(least.usable(), py::str(std::string(base::memory_limit_name(least.limit))));
}

}  // namespace

void register_tables(py::module_& module) {
  py::class_<tables::columns::RowBudget, std::shared_ptr<tables::columns::RowBudget>>(
      module, "RowBudget", "What the rows of a table may take, for all its readers.")
      .def(py::init(&make_budget), py::kw_only(), py::arg("row_bytes") = 0, py::arg("after_bytes") = 0,
           py::arg("most_rows") = py::none(), py::arg("estimate") = true, py::arg("root") = "")
      .def_property_readonly("rows", &tables::columns::RowBudget::rows)
      .def_property_readonly("expected_rows", &tables::columns::RowBudget::expected_rows);
  module.def("memory_left", &memory_left, py::arg("root") = "",
             "Bytes that this process may take, and the limit that says so.");
  py::class_<Reader>(module, "Reader", "One table of some streams, in parts.")
      .def(py::init(&make_reader), py::arg("session"), py::arg("table"), py::kw_only(), py::arg("columns"),
           py::arg("streams"), py::arg("selection"), py::arg("engine"), py::arg("resync"), py::arg("time"),
           py::arg("context"), py::arg("ticks"), py::arg("sync"), py::arg("side_tables"),
           py::arg("select_sides") = false, py::arg("whole") = false, py::arg("threads") = 1,
           py::arg("index") = py::none(), py::arg("budget") = py::none())
      .def("read", &read, py::arg("rows"), py::arg("stop_on_error") = false)
      .def(
          "reserve",
          [](Reader& self, std::size_t rows) {
            if (!self.reader->reserve(rows)) throw std::bad_alloc();
          },
          py::arg("rows"))
      .def("make_part", &make_part, py::arg("rows"))
      .def("fill", &fill, py::arg("stop_on_error") = false)
      .def("errors", [](Reader& self) { return side(self.reader->take_errors()); })
      .def("gaps", [](Reader& self) { return side(self.reader->take_gaps()); })
      .def_property_readonly("prefers_segments",
                             [](const Reader& self) { return self.reader->prefers_segments(); })
      .def_property_readonly("error_rows", [](const Reader& self) { return self.reader->error_rows(); })
      .def_property_readonly("instructions", [](const Reader& self) { return self.reader->instructions(); })
      .def_property_readonly("bytes_done", [](const Reader& self) { return self.reader->bytes_done(); })
      .def_property_readonly("bytes_total", [](const Reader& self) { return self.reader->bytes_total(); });
  module.def(
      "trim_memory", [](std::uint64_t keep) { return tables::columns::MemoryPool::of_process()->trim(keep); },
      py::arg("keep") = 0, "Gives idle memory of the pool back to the system; returns the number of bytes.");
  module.def(
      "set_pool_limit",
      [](std::uint64_t bytes) { tables::columns::MemoryPool::of_process()->set_most_idle(bytes); },
      py::arg("bytes"));
  module.def(
      "pool_bytes", [] { return tables::columns::MemoryPool::of_process()->idle_bytes(); },
      "Idle bytes of the pool.");
  module.def("read_all", &read_all, py::arg("readers"), py::arg("threads"));
  module.def("engines", &engine_names, "Names of the engines of this build.");
}

}  // namespace ptkit::api::python
