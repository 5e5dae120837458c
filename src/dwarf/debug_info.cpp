#include "dwarf/debug_info.h"

#include <dwarf.h>

#include <deque>
#include <mutex>
#include <optional>

#include "dwarf/context.h"
#include "dwarf/functions.h"
#include "dwarf/handle.h"
#include "dwarf/line_table.h"
#include "dwarf/walker.h"

namespace ptkit::dwarf {
namespace {

// An entry has several bytes, and a lookup visits each at most three times.
constexpr std::uint64_t kLeastSteps = 1'000'000;

}  // namespace

class DebugInfo::Impl {
 public:
  explicit Impl(std::unique_ptr<Handle> handle)
      : handle_(std::move(handle)), context_(kLeastSteps + handle_->size()) {
    for (const GElf_Phdr& segment : handle_->elf().segments()) {
      if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 && segment.p_memsz != 0)
        context_.code.emplace_back(segment.p_vaddr, segment.p_vaddr + (segment.p_memsz - 1));
    }
    context_.line_programs = handle_->section("debug_line");
    context_.string_sections = {handle_->section("debug_line_str"), handle_->section("debug_str")};
    find_units();
  }

  SourceLine line_at(std::uint64_t address) {
    const std::lock_guard lock(mutex_);
    Unit* const unit = unit_at(address);
    return unit == nullptr ? SourceLine{} : line_of(lines_of(*unit).at(address));
  }

  std::vector<Frame> frames_at(std::uint64_t address) {
    const std::lock_guard lock(mutex_);
    std::vector<Frame> frames;
    Unit* const unit = unit_at(address);
    if (unit == nullptr) return frames;
    const LineTable& lines = lines_of(*unit);
    LineRow row = lines.at(address);
    if (!unit->functions) unit->functions.emplace(unit->die, context_);
    const InlineTree* const tree = unit->functions->at(address, lines, context_);
    const FunctionNode* node = tree == nullptr ? nullptr : tree->at(address);
    if (node == nullptr && row.file != kNone) frames.push_back({{}, line_of(row)});
    for (; node != nullptr; node = tree->caller(*node)) {
      frames.push_back({context_.strings.text(node->name), line_of(row)});
      row = {0, node->call_file, node->call_line};
    }
    return frames;
  }

  bool is_cut() {
    const std::lock_guard lock(mutex_);
    return context_.budget.is_spent();
  }

 private:
  struct Unit {
    Dwarf_Die die{};
    std::optional<LineTable> lines;  // made at the first lookup
    std::optional<Functions> functions;
  };

  void find_units() {
    Dwarf_CU* unit = nullptr;
    Dwarf_Half version = 0;
    std::uint8_t type = 0;
    Dwarf_Die die;
    // Without the place of a split unit, which libdw would open wherever the skeleton says.
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
    if (has_code) units_.push_back({die, {}, {}});
  }

  Unit* unit_at(std::uint64_t address) {
    const std::uint32_t index = spans_.at(address);
    return index == kNone ? nullptr : &units_[index];
  }

  const LineTable& lines_of(Unit& unit) {
    if (!unit.lines) unit.lines.emplace(unit.die, context_);
    return *unit.lines;
  }

  [[nodiscard]] SourceLine line_of(const LineRow& row) const {
    return row.file == kNone ? SourceLine{} : SourceLine{context_.strings.text(row.file), row.line};
  }

  std::mutex mutex_;  // guards all: libdw is not thread-safe
  std::unique_ptr<Handle> handle_;
  Context context_;
  std::deque<Unit> units_;
  Spans spans_;
};

std::shared_ptr<DebugInfo> DebugInfo::open(trace::TraceBuffer file) {
  auto handle = Handle::open(std::move(file));
  if (!handle) return nullptr;
  return std::shared_ptr<DebugInfo>(new DebugInfo(std::make_unique<Impl>(std::move(handle))));
}

DebugInfo::DebugInfo(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DebugInfo::~DebugInfo() = default;

SourceLine DebugInfo::line_at(std::uint64_t address) const { return impl_->line_at(address); }
std::vector<Frame> DebugInfo::frames_at(std::uint64_t address) const { return impl_->frames_at(address); }
bool DebugInfo::is_cut() const { return impl_->is_cut(); }

}  // namespace ptkit::dwarf
