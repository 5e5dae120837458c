#include "code/source/dwarf/functions.h"

#include <dwarf.h>

#include <unordered_map>

#include "code/source/dwarf/walker.h"

namespace ptkit::code::dwarf {
namespace {

bool is_function(Dwarf_Die& die) { return dwarf_tag(&die) == DW_TAG_subprogram; }

std::uint64_t number_of(Dwarf_Attribute* attribute) {
  Dwarf_Word value = 0;
  return dwarf_formudata(attribute, &value) == 0 ? value : 0;
}

std::uint64_t number_of(Dwarf_Die& die, unsigned attribute) {
  Dwarf_Attribute found;
  return number_of(dwarf_attr(&die, attribute, &found));
}

const char* integrated_string(Dwarf_Die& die, unsigned attribute) {
  Dwarf_Attribute found;
  return dwarf_formstring(dwarf_attr_integrate(&die, attribute, &found));
}

// The DIE that has a function's name: the abstract instance of an inlined one, of which there are many.
Dwarf_Die named_die(Dwarf_Die& die) {
  Dwarf_Attribute attribute;
  Dwarf_Die origin;
  if (dwarf_formref_die(dwarf_attr(&die, DW_AT_abstract_origin, &attribute), &origin) == nullptr) return die;
  return origin;
}

// The raw name that the linker knows, or else the one of the source. From the DIE or from those that it
// refers to; libdw follows 16 references at most.
FunctionName name_of(Dwarf_Die& die, Context& context) {
  Dwarf_Die named = named_die(die);
  const auto [known, is_new] = context.names.emplace(named.addr, FunctionName{});
  if (!is_new) return known->second;
  const char* name = integrated_string(named, DW_AT_linkage_name);
  if (name == nullptr) name = integrated_string(named, DW_AT_MIPS_linkage_name);
  if (name == nullptr) name = integrated_string(named, DW_AT_name);
  Dwarf_Attribute found;
  known->second.name = context.strings.number(name, context.budget);
  known->second.line =
      static_cast<std::uint32_t>(number_of(dwarf_attr_integrate(&named, DW_AT_decl_line, &found)));
  return known->second;
}

// By DW_AT_entry_pc: an address, or bytes from the lowest one.
std::uint64_t entry_of(Dwarf_Die& die) {
  Dwarf_Attribute attribute;
  Dwarf_Addr entry = 0;
  if (dwarf_attr(&die, DW_AT_entry_pc, &attribute) == nullptr) return 0;
  if (dwarf_formaddr(&attribute, &entry) == 0) return entry;
  return dwarf_lowpc(&die, &entry) == 0 ? entry + number_of(&attribute) : 0;
}

}  // namespace

InlineTree::InlineTree(const Dwarf_Die& function, const LineTable& files, Context& context) {
  struct Level {
    std::size_t depth = 0;
    std::uint32_t node = 0;
  };
  Dwarf_Die root = function;
  add(root, code::source::kNone, files, context);
  std::vector<Level> callers{{0, 0}};
  Walker walker(function, context.budget);
  while (Dwarf_Die* const die = walker.next(true)) {
    while (callers.back().depth >= walker.depth()) callers.pop_back();
    const int tag = dwarf_tag(die);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) continue;
    const auto node = static_cast<std::uint32_t>(nodes_.size());
    add(*die, tag == DW_TAG_subprogram ? code::source::kNone : callers.back().node, files, context);
    callers.push_back({walker.depth(), node});
  }
  spans_.finish();
  first_number_ = context.nodes;
  context.nodes += static_cast<std::uint32_t>(nodes_.size());
}

void InlineTree::add(Dwarf_Die& die, std::uint32_t caller, const LineTable& files, Context& context) {
  const auto index = static_cast<std::uint32_t>(nodes_.size());
  FunctionNode& node = nodes_.emplace_back();
  node.caller = caller;
  if (caller != code::source::kNone) node.level = nodes_[caller].level + 1;
  bool has_code = false;
  for_each_range(die, context, [&](std::uint64_t first, std::uint64_t last) {
    spans_.add(first, last, index);
    has_code = true;
  });
  if (!has_code) return;
  const FunctionName named = name_of(die, context);
  node.name = named.name;
  node.declared_line = named.line;
  if (caller == code::source::kNone) return;
  node.call_file = files.file(number_of(die, DW_AT_call_file));
  node.call_line = static_cast<std::uint32_t>(number_of(die, DW_AT_call_line));
  node.entry = entry_of(die);
}

Functions::Functions(const Dwarf_Die& unit, Context& context) : unit_(unit) { find(false, context); }

// Without `nested`, entries below functions are skipped, where the compiler says how far they reach.
void Functions::find(bool nested, Context& context) {
  has_nested_ = nested;
  std::unordered_map<const void*, std::unique_ptr<const InlineTree>> known;  // numbers of nodes stay
  for (Function& one : functions_) {
    if (one.tree != nullptr) known.emplace(one.die.addr, std::move(one.tree));
  }
  functions_.clear();
  spans_ = {};
  Walker walker(unit_, context.budget);
  bool into = true;
  while (Dwarf_Die* const die = walker.next(into)) {
    into = true;
    if (!is_function(*die)) continue;
    into = nested;
    const auto index = static_cast<std::uint32_t>(functions_.size());
    bool has_code = false;
    for_each_range(*die, context, [&](std::uint64_t first, std::uint64_t last) {
      spans_.add(first, last, index);
      has_code = true;
    });
    if (!has_code) continue;
    const auto tree = known.find(die->addr);
    functions_.push_back({*die, tree == known.end() ? nullptr : std::move(tree->second)});
  }
  spans_.finish();
}

const InlineTree* Functions::at(std::uint64_t address, const LineTable& files, Context& context) {
  std::uint64_t first = 0;
  std::uint64_t last = UINT64_MAX;
  return at(address, files, context, first, last);
}

const InlineTree* Functions::at(std::uint64_t address, const LineTable& files, Context& context,
                                std::uint64_t& first, std::uint64_t& last) {
  if (spans_.at(address) == code::source::kNone && !has_nested_)
    find(true, context);  // GNU C has functions within functions, which lie elsewhere
  const std::uint32_t index = spans_.at(address, first, last);
  if (index == code::source::kNone) return nullptr;
  Function& function = functions_[index];
  if (!function.tree) function.tree = std::make_unique<const InlineTree>(function.die, files, context);
  return function.tree.get();
}

LineRow Functions::declaration_at(std::uint64_t address, const LineTable& files) {
  const std::uint32_t index = spans_.at(address);
  if (index == code::source::kNone) return {};
  Dwarf_Die& die = functions_[index].die;
  Dwarf_Attribute file;
  Dwarf_Attribute line;
  // Numbers of files are those of a unit.
  if (dwarf_attr_integrate(&die, DW_AT_decl_file, &file) == nullptr || file.cu != die.cu ||
      dwarf_attr_integrate(&die, DW_AT_decl_line, &line) == nullptr)
    return {};
  return {address, files.file(number_of(&file)), static_cast<std::uint32_t>(number_of(&line))};
}

}  // namespace ptkit::code::dwarf
