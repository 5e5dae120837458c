// Counts of basic blocks and of their instructions, over arrays of blocks.
#include <cstring>

#include "api/python/bindings.h"
#include "tables/coverage/block_counts.h"

namespace ptkit::api::python {
namespace {

using tables::coverage::BlockCounts;
using tables::coverage::ExecutedBlock;
using tables::coverage::InstructionCount;

// A column, which may have stride 0: all rows have one value.
template <typename T>
class Cells {
 public:
  Cells(const py::array_t<T>& array, py::ssize_t rows)
      : bytes_(static_cast<const char*>(static_cast<const void*>(array.data()))), stride_(array.strides(0)) {
    if (array.ndim() != 1 || array.size() != rows) throw py::value_error("columns of one length are needed");
  }
  [[nodiscard]] T operator[](py::ssize_t row) const noexcept {
    T value;
    std::memcpy(&value, bytes_ + row * stride_, sizeof value);
    return value;
  }

 private:
  const char* bytes_;
  py::ssize_t stride_;
};

void add_blocks(BlockCounts& self, const py::array_t<std::uint64_t>& ips,
                const py::array_t<std::int32_t>& instructions, const py::array_t<std::uint8_t>& modes,
                const py::array_t<std::uint32_t>& spaces) {
  const py::ssize_t rows = ips.size();
  if (rows == 0) return;
  const Cells ip(ips, rows);
  const Cells size(instructions, rows);
  const Cells mode(modes, rows);
  const Cells space(spaces, rows);
  const py::gil_scoped_release nogil;
  for (py::ssize_t row = 0; row < rows; ++row)
    self.add({ip[row], static_cast<std::uint32_t>(size[row]), space[row],
              static_cast<code::insn::ExecMode>(mode[row])});
}

py::array_t<bool> add_counted(BlockCounts& self, const py::array_t<std::uint64_t>& from_ips,
                              const py::array_t<std::uint64_t>& to_ips,
                              const py::array_t<std::uint8_t>& kinds,
                              const py::array_t<std::uint32_t>& spaces,
                              const py::array_t<std::int64_t>& counts) {
  const py::ssize_t rows = from_ips.size();
  py::array_t<bool> is_block(rows);
  if (rows == 0) return is_block;
  const Cells from(from_ips, rows);
  const Cells to(to_ips, rows);
  const Cells kind(kinds, rows);
  const Cells space(spaces, rows);
  const Cells count(counts, rows);
  bool* const out = is_block.mutable_data();
  const py::gil_scoped_release nogil;
  for (py::ssize_t row = 0; row < rows; ++row)
    out[row] = self.add_counted(from[row], to[row], static_cast<flow::BranchKind>(kind[row]), space[row],
                                static_cast<std::uint64_t>(count[row]));
  return is_block;
}

template <typename T, typename Member>
py::array_t<T> column_of(const std::vector<InstructionCount>& counts, Member member) {
  py::array_t<T> cells(static_cast<py::ssize_t>(counts.size()));
  T* out = cells.mutable_data();
  for (const InstructionCount& one : counts) *out++ = static_cast<T>(one.*member);
  return cells;
}

py::dict instructions(const BlockCounts& self, const Session& session) {
  std::vector<InstructionCount> counts;
  {
    const py::gil_scoped_release nogil;
    counts = count_instructions(self, *session.image);
  }
  if (session.callback != nullptr) session.callback->rethrow();
  py::dict columns;
  columns["ip"] = column_of<std::uint64_t>(counts, &InstructionCount::ip);
  columns["space"] = column_of<std::uint32_t>(counts, &InstructionCount::space);
  columns["size"] = column_of<std::uint8_t>(counts, &InstructionCount::size);
  columns["count"] = column_of<std::int64_t>(counts, &InstructionCount::count);
  columns["instructions"] = column_of<std::int64_t>(counts, &InstructionCount::instructions);
  return columns;
}

}  // namespace

void register_counts(py::module_& module) {
  py::class_<BlockCounts>(module, "BlockCounts", "How often each basic block was executed.")
      .def(py::init<>())
      .def("add", &add_blocks, py::arg("ip"), py::arg("instructions"), py::arg("mode"), py::arg("space"),
           "Counts rows of the table of blocks, by their columns.")
      .def("add_counted", &add_counted, py::arg("from_ip"), py::arg("to_ip"), py::arg("kind"),
           py::arg("space"), py::arg("count"),
           "Counts the blocks among rows of counted edges. Returns which rows these are.")
      .def("instructions", &instructions, py::arg("session"),
           "Columns of every instruction of the blocks, by space and address.");
}

}  // namespace ptkit::api::python
