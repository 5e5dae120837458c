// Frames of Python functions without those of CPython's evaluation.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tables/calls/frame_rows.h"
#include "tables/calls/python_frames.h"
#include "tables/calls/stack/frame_groups.h"
#include "tables/calls/sums/call_tree.h"

namespace ptkit::tables::calls {
namespace {

using Names = std::vector<std::string>;

// Frames of functions that have these names, which end as they are given.
class Trace {
 public:
  explicit Trace(Names names) : names_(std::move(names)) {
    auto bundle = std::make_shared<trace::TraceBundle>();
    bundle->files.push_back({"list", "", {}, {}});
    for (std::size_t i = 0; i < names_.size(); ++i) {
      bundle->files[0].symbols.push_back({names_[i], entry_of(i), 0x10});
      static_cast<void>(functions.number({.entry_ip = entry_of(i), .space = 0, .file = -1, .offset = 0}));
    }
    bundle->names = {{0, 0, 0x10'0000, 0, 0}};
    symbols = std::make_unique<code::symbol::Symbols>(std::move(bundle));
  }

  // A call of a function by the open frame `parent`; -1: by none.
  [[nodiscard]] Frame frame(std::uint64_t id, std::int64_t parent, std::size_t name,
                            std::uint64_t self) const {
    Frame out;
    out.id = id;
    out.function = out.group = static_cast<std::uint32_t>(kFirstFunction + name);
    out.entry_ip = entry_of(name);
    out.self_instructions = self;
    out.flags = FRAME_ENTRY;
    if (parent < 0) return out;
    out.parent = static_cast<std::uint64_t>(parent);
    out.flags |= std::uint16_t{FRAME_PARENT};
    return out;
  }
  [[nodiscard]] const std::string& name(const Frame& frame) const {
    return names_.at(frame.function - kFirstFunction);
  }

  FunctionTable functions;
  std::unique_ptr<code::symbol::Symbols> symbols;

 private:
  [[nodiscard]] static std::uint64_t entry_of(std::size_t name) noexcept { return 0x1000 + name * 0x10; }
  Names names_;
};

struct Shown final : FrameSink {
  explicit Shown(const Trace& of) : trace(of) {}
  void on_frame(const Frame& frame, const Owner&) override {
    self[trace.name(frame)] += frame.self_instructions;
    ++count[trace.name(frame)];
  }
  void on_anomaly(const Anomaly&, const Owner&) override {}

  const Trace& trace;
  std::map<std::string, std::uint64_t> self;
  std::map<std::string, int> count;
};

enum Name : std::uint8_t { MAIN, EVALUATOR, VECTORCALL, TRAMPOLINE, F, G, GENERATE, SORTED };
const Names kNames{"main",
                   "_PyEval_EvalFrameDefault",
                   "PyObject_Vectorcall@plt",
                   "py_trampoline_evaluator",
                   "py::f:/a/f.py",
                   "py::g:/a/f.py",
                   "_Py_MakeCoro",
                   "builtin_sorted"};

// main() runs f(), which calls sorted(), which calls g().
void run(const Trace& trace, FrameSink& sink) {
  sink.on_frame(trace.frame(8, 7, EVALUATOR, 1'0000'0000), {});
  sink.on_frame(trace.frame(7, 6, G, 1000'0000), {});
  sink.on_frame(trace.frame(6, 5, TRAMPOLINE, 100'0000), {});
  sink.on_frame(trace.frame(5, 4, SORTED, 10'0000), {});
  sink.on_frame(trace.frame(4, 3, VECTORCALL, 1'0000), {});
  sink.on_frame(trace.frame(3, 2, EVALUATOR, 1000), {});
  sink.on_frame(trace.frame(2, 1, F, 100), {});
  sink.on_frame(trace.frame(1, 0, TRAMPOLINE, 10), {});
  sink.on_frame(trace.frame(0, -1, MAIN, 1), {});
}

TEST(PythonFrames, GiveInstructionsToTheFunctionBelow) {
  const Trace trace(kNames);
  Shown shown(trace);
  PythonFrames python(FrameView::PYTHON, trace.functions, *trace.symbols, shown);
  run(trace, python);
  EXPECT_EQ(shown.self, (std::map<std::string, std::uint64_t>{{"main", 11},
                                                              {"py::f:/a/f.py", 1'1100},
                                                              {"builtin_sorted", 110'0000},
                                                              {"py::g:/a/f.py", 1'1000'0000}}));
}

TEST(PythonFrames, MixedViewLeavesOutTrampolinesOnly) {
  const Trace trace(kNames);
  Shown shown(trace);
  PythonFrames mixed(FrameView::MIXED, trace.functions, *trace.symbols, shown);
  run(trace, mixed);
  EXPECT_EQ(shown.count.count("py_trampoline_evaluator"), 0u);
  EXPECT_EQ(shown.self.at("_PyEval_EvalFrameDefault"), 1'0000'1000u);
  EXPECT_EQ(shown.self.at("PyObject_Vectorcall@plt"), 1'0000u);
  EXPECT_EQ(shown.self.at("main"), 11u);
}

TEST(PythonFrames, CallThatMakesAGeneratorIsPartOfItsCaller) {
  const Trace trace(kNames);
  Shown shown(trace);
  PythonFrames python(FrameView::PYTHON, trace.functions, *trace.symbols, shown);
  python.on_frame(trace.frame(3, 2, GENERATE, 5), {});
  python.on_frame(trace.frame(2, 1, EVALUATOR, 4), {});
  python.on_frame(trace.frame(1, 0, G, 3), {});  // makes the generator
  python.on_frame(trace.frame(5, 4, EVALUATOR, 2), {});
  python.on_frame(trace.frame(4, 0, G, 1), {});  // goes on with it
  python.on_frame(trace.frame(0, -1, F, 0), {});
  EXPECT_EQ(shown.count.at("py::g:/a/f.py"), 1);
  EXPECT_EQ(shown.self.at("py::g:/a/f.py"), 3u);
  EXPECT_EQ(shown.self.at("_Py_MakeCoro"), 5u);
  EXPECT_EQ(shown.self.at("py::f:/a/f.py"), 7u);
}

TEST(PythonFrames, FrameWithNothingBelowStays) {
  const Trace trace(kNames);
  Shown shown(trace);
  PythonFrames python(FrameView::PYTHON, trace.functions, *trace.symbols, shown);
  python.on_frame(trace.frame(1, 0, VECTORCALL, 2), {});
  python.on_frame(trace.frame(0, -1, EVALUATOR, 1), {});
  EXPECT_EQ(shown.self, (std::map<std::string, std::uint64_t>{{"_PyEval_EvalFrameDefault", 3}}));
}

TEST(PythonFrames, RowsAndTreesHaveTheNextShownParent) {
  using enum tables::columns::Column;
  const Trace trace(kNames);
  FrameTable table({}, tables::columns::kAllColumns, 0, true);
  PythonFrames of_table(FrameView::PYTHON, trace.functions, *trace.symbols, table);
  run(trace, of_table);
  FrameIndex notes;
  const auto rows = table.take(100, trace.functions, notes);
  ASSERT_EQ(rows->rows(), 4u);
  const std::vector<std::uint64_t> ids(rows->cells<calls_id>(), rows->cells<calls_id>() + 4);
  const std::vector<std::uint64_t> parents(rows->cells<calls_parent>(), rows->cells<calls_parent>() + 4);
  const std::vector<std::int32_t> depths(rows->cells<calls_depth>(), rows->cells<calls_depth>() + 4);
  EXPECT_EQ(ids, (std::vector<std::uint64_t>{100, 102, 105, 107}));
  EXPECT_EQ(parents, (std::vector<std::uint64_t>{0, 100, 102, 105}));
  EXPECT_EQ(depths, (std::vector<std::int32_t>{0, -1, -3, -4}));  // given as 0: less the hidden ones below

  CallTree tree;
  PythonFrames of_tree(FrameView::PYTHON, trace.functions, *trace.symbols, tree);
  run(trace, of_tree);
  CallTree all;
  all.add_all(tree, trace.functions);
  const auto nodes = all.rows(tables::columns::kAllColumns);
  ASSERT_EQ(nodes->rows(), 4u);
  for (std::size_t row = 0; row < 4; ++row)
    EXPECT_EQ(nodes->cells<call_tree_depth>()[row], static_cast<std::int32_t>(row));
}

// builtin_sorted() is the first function of its file that is shown above f(), which is JIT code.
TEST(PythonFrames, HiddenFramesAreNoRecursionOfTheirFile) {
  FunctionTable functions;
  const std::uint32_t evaluator = functions.number({.entry_ip = 0x1000, .file = 0, .offset = 0});
  const std::uint32_t sorted = functions.number({.entry_ip = 0x1010, .file = 0, .offset = 0x10});
  FrameGroups groups(By::MODULE, functions);
  EXPECT_EQ(groups.of(evaluator, 0x1000, 0, 0, true), groups.of(sorted, 0x1010, 0, 0, true));
  groups.hide([=](std::uint32_t function) { return function == evaluator; });
  EXPECT_NE(groups.of(evaluator, 0x1000, 0, 0, true), groups.of(sorted, 0x1010, 0, 0, true));
  EXPECT_EQ(groups.of(evaluator, 0x1000, 0), groups.of(sorted, 0x1010, 0));  // with nothing below it is shown
}

// f() calls the vectorcall, which jumps to builtin_sorted().
TEST(PythonFrames, FunctionThatAHiddenOneJumpsToIsCalled) {
  const Trace trace(kNames);
  FrameTable table({}, tables::columns::kAllColumns, 0, true);
  PythonFrames python(FrameView::PYTHON, trace.functions, *trace.symbols, table);
  Frame sorted = trace.frame(2, 1, SORTED, 1);
  sorted.how = CallKind::TAIL;
  Frame vectorcall = trace.frame(1, 0, VECTORCALL, 1);
  vectorcall.how = CallKind::CALL;
  python.on_frame(sorted, {});
  python.on_frame(vectorcall, {});
  python.on_frame(trace.frame(0, -1, F, 1), {});
  FrameIndex notes;
  const auto rows = table.take(0, trace.functions, notes);
  ASSERT_EQ(rows->rows(), 2u);
  EXPECT_EQ(rows->cells<tables::columns::Column::calls_how>()[1], static_cast<std::uint8_t>(CallKind::CALL));
}

TEST(PythonRole, KnowsPartsAndStubsOfFunctions) {
  EXPECT_EQ(python_role("py::f:x.py"), PythonRole::FUNCTION);
  EXPECT_EQ(python_role("py::f:"), PythonRole::FUNCTION);  // redacted
  EXPECT_EQ(python_role("py::object::cast"), PythonRole::NONE);
  EXPECT_EQ(python_role("vectorcall_maybe.constprop.0"), PythonRole::CALL);
  EXPECT_EQ(python_role("_PyEval_EvalFrameDefault.cold"), PythonRole::EVALUATOR);
  EXPECT_EQ(python_role("PyDict_GetItem"), PythonRole::NONE);
}

}  // namespace
}  // namespace ptkit::tables::calls
