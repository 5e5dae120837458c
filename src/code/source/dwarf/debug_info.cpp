#include "code/source/dwarf/debug_info.h"

#include <dwarf.h>

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "code/source/dwarf/context.h"
#include "code/source/dwarf/functions.h"
#include "code/source/dwarf/handle.h"
#include "code/source/dwarf/line_table.h"
#include "code/source/dwarf/split_units.h"
#include "code/source/dwarf/walker.h"

namespace ptkit::code::dwarf {

using code::source::Frame;
using code::source::InlinedCall;
using code::source::InlinedSpan;
using code::source::kMostLevels;
using code::source::SourceLine;
using code::source::Spans;

class DebugInfo::Impl {
 public:
  Impl(std::unique_ptr<Handle> handle, FindSplit find_split)
      : handle_(std::move(handle)),
        context_(handle_->steps(), handle_->memory()),
        split_(*handle_, context_, std::move(find_split)) {
    if (handle_->is_refused()) return;
    for (const GElf_Phdr& segment : handle_->elf().segments()) {
      if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 && segment.p_memsz != 0)
        context_.code.emplace_back(segment.p_vaddr, segment.p_vaddr + (segment.p_memsz - 1));
    }
    context_.line_programs = handle_->section("debug_line");
    context_.string_sections = {handle_->section("debug_line_str"), handle_->section("debug_str")};
    find_units();
  }

  UnitLines lines_at(std::uint64_t address) {
    const Spans::Span span = spans_.span_at(address);
    if (span.value == code::source::kNone) return {nullptr, span.first, span.last};
    Unit& unit = units_[span.value];
    const LineTable* lines = unit.known_lines.load(std::memory_order_acquire);
    if (lines == nullptr) {
      const std::lock_guard lock(mutex_);
      lines = &lines_of(unit);
    }
    return {lines, span.first, span.last};
  }

  std::vector<Frame> frames_at(std::uint64_t address) {
    const std::lock_guard lock(mutex_);
    std::vector<Frame> frames;
    Unit* const unit = unit_at(address);
    if (unit == nullptr) return frames;
    const LineTable& lines = lines_of(*unit);
    LineRow row = lines.at(address);
    InlinedSpan span{0, UINT64_MAX, InlinedCall::kNone};
    const InlineTree* const tree = tree_at(*unit, address, span);
    const FunctionNode* node = tree == nullptr ? nullptr : tree->at(address);
    if (node == nullptr && row.file != code::source::kNone) frames.push_back({{}, lines.line_of(row)});
    for (; node != nullptr; node = tree->caller(*node)) {
      frames.push_back({context_.strings.text(node->name), lines.line_of(row)});
      row = {0, node->call_file, node->call_line};
    }
    return frames;
  }

  SourceLine declaration_at(std::uint64_t address) {
    const std::lock_guard lock(mutex_);
    Unit* const unit = unit_at(address);
    if (unit == nullptr) return {};
    const LineTable& lines = lines_of(*unit);
    return lines.line_of(functions_of(*unit).declaration_at(address, lines));
  }

  InlinedSpan inlined_at(std::uint64_t address) {
    const std::lock_guard lock(mutex_);
    InlinedSpan span{0, UINT64_MAX, InlinedCall::kNone};
    const std::uint32_t index = spans_.at(address, span.first, span.last);
    if (index == code::source::kNone) return span;
    const FunctionNode* node = nullptr;
    const InlineTree* const tree = tree_at(units_[index], address, span);
    if (tree != nullptr) node = tree->at(address, span.first, span.last);
    if (node == nullptr || node->level == 0) return span;
    if (node->level > kMostLevels) context_.has_deep_calls = true;
    while (node->level > kMostLevels) node = tree->caller(*node);
    span.call = tree->number(*node);
    return span;
  }

  InlinedCall inlined_call(std::uint32_t number) {
    const std::lock_guard lock(mutex_);
    const InlineTree& tree = *std::prev(trees_.upper_bound(number))->second;
    const FunctionNode& node = tree.numbered(number);
    constexpr unsigned kHalf = 32;
    InlinedCall call;
    call.level = node.level;
    call.function = std::uint64_t{node.name} << kHalf | node.declared_line;
    if (node.level > 1) call.caller = tree.number(*tree.caller(node));
    return call;
  }

  bool begins_call(std::uint32_t number, std::uint64_t address) {
    const std::lock_guard lock(mutex_);
    const InlineTree& tree = *std::prev(trees_.upper_bound(number))->second;
    const FunctionNode& node = tree.numbered(number);
    const auto begin = line_in(tree, node, node.entry);
    return node.entry == address || !begin || begin == line_in(tree, node, address);
  }

  std::string missing_split() {
    const std::lock_guard lock(mutex_);
    return split_.missing();
  }

  bool is_cut() {
    const std::lock_guard lock(mutex_);
    return handle_->is_refused() || context_.has_deep_calls || context_.budget.is_spent() ||
           context_.memory.is_spent();
  }

 private:
  struct Unit {
    explicit Unit(const Dwarf_Die& of) noexcept : die(of) {}
    Dwarf_Die die;
    std::optional<LineTable> lines;                       // made at the first lookup
    std::atomic<const LineTable*> known_lines = nullptr;  // the same: does not change any more
    std::optional<Functions> functions;
  };

  void find_units() {
    Dwarf_CU* unit = nullptr;
    Dwarf_Half version = 0;
    std::uint8_t type = 0;
    Dwarf_Die die;
    // Without the path of a split unit, which libdw would open wherever the skeleton says.
    while (dwarf_get_units(handle_->get(), unit, &unit, &version, &type, &die, nullptr) == 0) {
      if (!context_.budget.take()) break;
      if (dwarf_tag(&die) != DW_TAG_compile_unit && dwarf_tag(&die) != DW_TAG_skeleton_unit) continue;
      add_unit(die, version);
    }
    spans_.finish();
  }

  void add_unit(Dwarf_Die& die, Dwarf_Half version) {
    const auto index = static_cast<std::uint32_t>(units_.size());
    bool has_code = false;
    const auto add = [&](std::uint64_t first, std::uint64_t last) {
      spans_.add(first, last, index);
      has_code = true;
    };
    for_each_range(die, context_, add);
    if (!has_code && version < 3) {  // strict DWARF 2 has no ranges: a unit in several sections says nothing
      Walker walker(die, context_.budget);
      for (Dwarf_Die* one = walker.next(true); one != nullptr; one = walker.next(false)) {
        if (dwarf_tag(one) == DW_TAG_subprogram) for_each_range(*one, context_, add);
      }
    }
    if (has_code) units_.emplace_back(die);
  }

  // File and line of a call's code at an address; nullopt: the address is not of the call.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> line_in(const InlineTree& tree,
                                                                 const FunctionNode& node,
                                                                 std::uint64_t address) {
    const FunctionNode* const at = tree.at(address);
    const FunctionNode* const inner = tree.inner(node, at);
    if (inner != nullptr && inner->caller == code::source::kNone) return std::nullopt;
    if (inner != nullptr) {
      if (tree.caller(*inner) != &node) return std::nullopt;
      return std::pair(inner->call_file, inner->call_line);
    }
    Unit* const unit = unit_at(address);
    if (at == nullptr || unit == nullptr) return std::nullopt;
    const LineRow row = lines_of(*unit).at(address);
    return std::pair(row.file, row.line);
  }

  const InlineTree* tree_at(Unit& unit, std::uint64_t address, InlinedSpan& span) {
    const InlineTree* const tree =
        functions_of(unit).at(address, lines_of(unit), context_, span.first, span.last);
    if (tree != nullptr) trees_.emplace(tree->first_number(), tree);
    return tree;
  }

  Unit* unit_at(std::uint64_t address) {
    const std::uint32_t index = spans_.at(address);
    return index == code::source::kNone ? nullptr : &units_[index];
  }

  const LineTable& lines_of(Unit& unit) {
    if (!unit.lines)
      unit.known_lines.store(&unit.lines.emplace(unit.die, context_), std::memory_order_release);
    return *unit.lines;
  }

  Functions& functions_of(Unit& unit) {
    if (unit.functions) return *unit.functions;
    const auto whole = split_.whole(unit.die);
    return unit.functions.emplace(whole ? *whole : unit.die, context_);
  }

  std::mutex mutex_;  // guards all that changes: libdw is not thread-safe
  std::unique_ptr<Handle> handle_;
  Context context_;
  SplitUnits split_;
  std::deque<Unit> units_;
  Spans spans_;
  std::map<std::uint32_t, const InlineTree*> trees_;  // by the number of the first node
};

std::shared_ptr<DebugInfo> DebugInfo::open(trace::TraceBuffer file, const FindAlternate& find_alternate,
                                           FindSplit find_split) {
  auto handle = Handle::open(std::move(file), find_alternate);
  if (!handle) return nullptr;
  const auto type = handle->elf().header().e_type;
  if (type != ET_EXEC && type != ET_DYN) return nullptr;  // addresses of object files are not final
  return std::shared_ptr<DebugInfo>(
      new DebugInfo(std::make_unique<Impl>(std::move(handle), std::move(find_split))));
}

DebugInfo::DebugInfo(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DebugInfo::~DebugInfo() = default;

DebugInfo::UnitLines DebugInfo::lines_at(std::uint64_t address) const { return impl_->lines_at(address); }
std::unique_ptr<code::source::LineCursor> DebugInfo::line_cursor() const {
  return std::make_unique<LineCursor>(*this);
}
std::vector<Frame> DebugInfo::frames_at(std::uint64_t address) const { return impl_->frames_at(address); }
SourceLine DebugInfo::declaration_at(std::uint64_t address) const { return impl_->declaration_at(address); }
InlinedSpan DebugInfo::inlined_at(std::uint64_t address) const { return impl_->inlined_at(address); }
InlinedCall DebugInfo::inlined_call(std::uint32_t number) const { return impl_->inlined_call(number); }
bool DebugInfo::begins_call(std::uint32_t number, std::uint64_t address) const {
  return impl_->begins_call(number, address);
}
bool DebugInfo::is_cut() const { return impl_->is_cut(); }
std::string DebugInfo::missing_split() const { return impl_->missing_split(); }

code::source::SourceLine LineCursor::at(std::uint64_t address) {
  if (address < unit_.first || address > unit_.last) {
    const LineTable* const before = unit_.lines;
    unit_ = info_->lines_at(address);
    if (unit_.lines != before) row_ = 0;
  }
  return unit_.lines == nullptr ? code::source::SourceLine{}
                                : unit_.lines->line_of(unit_.lines->at(address, row_));
}

}  // namespace ptkit::code::dwarf
