#include "tables/calls/python_frames.h"

#include <algorithm>
#include <array>

#include "code/symbol/names/python_name.h"

namespace ptkit::tables::calls {
namespace {

using namespace std::string_view_literals;

// Functions of CPython 3.11 to 3.14, sorted.
constexpr std::array kCalls{
    "PyEval_EvalCode"sv,
    "PyEval_EvalCodeEx"sv,
    "PyEval_EvalFrame"sv,
    "PyEval_EvalFrameEx"sv,
    "PyObject_Call"sv,
    "PyObject_CallFunction"sv,
    "PyObject_CallFunctionObjArgs"sv,
    "PyObject_CallMethod"sv,
    "PyObject_CallMethodObjArgs"sv,
    "PyObject_CallNoArgs"sv,
    "PyObject_CallObject"sv,
    "PyObject_CallOneArg"sv,
    "PyObject_Vectorcall"sv,
    "PyObject_VectorcallDict"sv,
    "PyObject_VectorcallMethod"sv,
    "PyVectorcall_Call"sv,
    "_PyEvalFrameClearAndPop"sv,
    "_PyEvalFramePushAndInit"sv,
    "_PyEval_EvalFrame"sv,
    "_PyEval_FrameClearAndPop"sv,
    "_PyEval_Vector"sv,
    "_PyFunction_Vectorcall"sv,
    "_PyObject_Call"sv,
    "_PyObject_CallFunctionVa"sv,
    "_PyObject_CallMethod"sv,
    "_PyObject_CallMethodFormat"sv,
    "_PyObject_CallMethodId"sv,
    "_PyObject_CallMethodIdObjArgs"sv,
    "_PyObject_Call_Prepend"sv,
    "_PyObject_FastCall"sv,
    "_PyObject_FastCallDictTstate"sv,
    "_PyObject_MakeTpCall"sv,
    "_PyObject_VectorcallDictTstate"sv,
    "_PyObject_VectorcallTstate"sv,
    "_PyVectorcall_Call"sv,
    "_Py_BuiltinCallFastWithKeywords_StackRef"sv,
    "_Py_VectorCallInstrumentation_StackRefSteal"sv,
    "_Py_VectorCall_StackRefSteal"sv,
    "cfunction_call"sv,
    "cfunction_vectorcall_FASTCALL"sv,
    "cfunction_vectorcall_FASTCALL_KEYWORDS"sv,
    "cfunction_vectorcall_FASTCALL_KEYWORDS_METHOD"sv,
    "cfunction_vectorcall_NOARGS"sv,
    "cfunction_vectorcall_O"sv,
    "gen_iternext"sv,
    "gen_send_ex"sv,
    "gen_send_ex2"sv,
    "initialize_locals"sv,
    "method_vectorcall"sv,
    "method_vectorcall_FASTCALL"sv,
    "method_vectorcall_FASTCALL_KEYWORDS"sv,
    "method_vectorcall_FASTCALL_KEYWORDS_METHOD"sv,
    "method_vectorcall_NOARGS"sv,
    "method_vectorcall_O"sv,
    "method_vectorcall_VARARGS"sv,
    "method_vectorcall_VARARGS_KEYWORDS"sv,
    "object_vacall"sv,
    "slot_tp_call"sv,
    "vectorcall_maybe"sv,
    "vectorcall_method"sv,
};
static_assert(std::ranges::is_sorted(kCalls));

}  // namespace

PythonRole python_role(std::string_view raw_name) noexcept {
  if (code::symbol::is_python_name(raw_name)) return PythonRole::FUNCTION;
  const std::string_view name = raw_name.substr(0, raw_name.find_first_of(".@"));  // parts and PLT entries
  if (name == "py_trampoline_evaluator") return PythonRole::TRAMPOLINE;
  if (name == "_PyEval_EvalFrameDefault") return PythonRole::EVALUATOR;
  if (name == "_Py_MakeCoro") return PythonRole::GENERATOR;
  return std::ranges::binary_search(kCalls, name) ? PythonRole::CALL : PythonRole::NONE;
}

PythonRole PythonFrames::role_of(std::uint32_t function) {
  if (function < kFirstFunction) return PythonRole::NONE;
  if (function >= roles_.size()) roles_.resize(std::max<std::size_t>(function + 1, roles_.size() * 2));
  Role& role = roles_[function];
  if (role.known) return role.role;
  const Function& of = functions_.at(function);
  const auto symbol = symbols_.find(of.space, of.code_tsc, of.entry_ip);
  role = {true, symbol ? python_role(symbol->raw_name) : PythonRole::NONE};
  return role.role;
}

bool PythonFrames::hides(PythonRole role) const noexcept {
  if (role == PythonRole::TRAMPOLINE) return true;
  return (role == PythonRole::EVALUATOR || role == PythonRole::CALL) && frames_ == FrameView::PYTHON;
}

// Frames end before their parents. What a hidden frame has is that of its parent, and a parent that is hidden
// itself hands it on.
void PythonFrames::on_frame(const Frame& frame, const Owner& owner) {
  Above above;
  if (const auto found = above_.find(frame.id); found != above_.end()) {
    above = found->second;
    above_.erase(found);
  }
  const PythonRole role = role_of(frame.function);
  const bool has_parent = (frame.flags & FRAME_PARENT) != 0;
  // The evaluator's frame is between those of the function and of what makes its generator.
  const bool evaluates_it = role == PythonRole::EVALUATOR && above.is_generator;
  if (has_parent && (role == PythonRole::GENERATOR || evaluates_it)) above_[frame.parent].is_generator = true;
  const bool makes_generator = role == PythonRole::FUNCTION && above.is_generator;
  if (has_parent && (makes_generator || hides(role))) {
    above_[frame.parent].self_instructions += frame.self_instructions + above.self_instructions;
    return sink_.on_hidden(frame);
  }
  Frame shown = frame;
  shown.self_instructions += above.self_instructions;
  sink_.on_frame(shown, owner);
}

void HiddenFrames::add(const Frame& frame, bool hidden) {
  if (frame.id >= frames_.size()) frames_.resize(std::max<std::size_t>(frame.id + 1, frames_.size() * 2));
  Known& known = frames_[frame.id];
  known.hidden = hidden;
  known.how = frame.how;
  if ((frame.flags & FRAME_PARENT) != 0) known.parent = frame.parent;
}

// Counts the hidden frames below a frame and below its parents, and leads each to its next parent that is
// shown.
void HiddenFrames::count(std::uint64_t id) {
  path_.clear();
  for (std::uint64_t at = id; at < frames_.size() && frames_[at].below < 0; at = frames_[at].parent)
    path_.push_back(at);
  while (!path_.empty()) {
    Known& frame = frames_[path_.back()];
    path_.pop_back();
    frame.below = 0;
    if (frame.parent >= frames_.size()) continue;
    const Known& parent = frames_[frame.parent];
    frame.below = parent.below + (parent.hidden ? 1 : 0);
    if (!parent.hidden) continue;
    frame.parent = parent.parent;
    if (frame.how == CallKind::TAIL) frame.how = parent.how;
  }
}

void HiddenFrames::apply(tables::columns::Batch& rows) {
  using enum tables::columns::Column;
  auto* const parents = rows.cells<calls_parent>();
  auto* const depths = rows.cells<calls_depth>();
  auto* const hows = rows.cells<calls_how>();
  for (std::uint64_t id = 0; id < std::min<std::uint64_t>(frames_.size(), rows.rows()); ++id) {
    count(id);
    const Known& frame = frames_[id];
    if (parents != nullptr && frame.parent != kNone) parents[id] = frame.parent;
    if (depths != nullptr) depths[id] -= frame.below;
    if (hows != nullptr) hows[id] = static_cast<std::uint8_t>(frame.how);
  }
}

}  // namespace ptkit::tables::calls
