#include "dwarf/functions.h"

#include <dwarf.h>

#include "dwarf/walker.h"

namespace ptkit::dwarf {
namespace {

bool is_function(Dwarf_Die& die) { return dwarf_tag(&die) == DW_TAG_subprogram; }

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
std::uint32_t name_of(Dwarf_Die& die, Context& context) {
  Dwarf_Die named = named_die(die);
  const auto [known, is_new] = context.names.emplace(named.addr, kNone);
  if (!is_new) return known->second;
  const char* name = integrated_string(named, DW_AT_linkage_name);
  if (name == nullptr) name = integrated_string(named, DW_AT_MIPS_linkage_name);
  if (name == nullptr) name = integrated_string(named, DW_AT_name);
  return known->second = context.strings.number(name, context.budget);
}

std::uint64_t number_of(Dwarf_Die& die, unsigned attribute) {
  Dwarf_Attribute found;
  Dwarf_Word value = 0;
  return dwarf_formudata(dwarf_attr(&die, attribute, &found), &value) == 0 ? value : 0;
}

}  // namespace

InlineTree::InlineTree(const Dwarf_Die& function, const LineTable& files, Context& context) {
  struct Level {
    std::size_t depth = 0;
    std::uint32_t node = 0;
  };
  Dwarf_Die root = function;
  add(root, kNone, files, context);
  std::vector<Level> callers{{0, 0}};
  Walker walker(function, context.budget);
  while (Dwarf_Die* const die = walker.next(true)) {
    while (callers.back().depth >= walker.depth()) callers.pop_back();
    const int tag = dwarf_tag(die);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) continue;
    const auto node = static_cast<std::uint32_t>(nodes_.size());
    add(*die, tag == DW_TAG_subprogram ? kNone : callers.back().node, files, context);
    callers.push_back({walker.depth(), node});
  }
  spans_.finish();
}

void InlineTree::add(Dwarf_Die& die, std::uint32_t caller, const LineTable& files, Context& context) {
  const auto index = static_cast<std::uint32_t>(nodes_.size());
  FunctionNode& node = nodes_.emplace_back();
  node.caller = caller;
  bool has_code = false;
  for_each_range(die, context, [&](std::uint64_t first, std::uint64_t last) {
    spans_.add(first, last, index);
    has_code = true;
  });
  if (!has_code) return;
  node.name = name_of(die, context);
  if (caller == kNone) return;
  node.call_file = files.file(number_of(die, DW_AT_call_file));
  node.call_line = static_cast<std::uint32_t>(number_of(die, DW_AT_call_line));
}

Functions::Functions(const Dwarf_Die& unit, Context& context) : unit_(unit) { find(false, context); }

// Without `nested`, entries below functions are skipped, where the compiler says how far they reach.
void Functions::find(bool nested, Context& context) {
  has_nested_ = nested;
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
    if (has_code) functions_.push_back({*die, nullptr});
  }
  spans_.finish();
}

const InlineTree* Functions::at(std::uint64_t address, const LineTable& files, Context& context) {
  std::uint32_t index = spans_.at(address);
  if (index == kNone && !has_nested_) {  // GNU C has functions within functions, which lie elsewhere
    find(true, context);
    index = spans_.at(address);
  }
  if (index == kNone) return nullptr;
  Function& function = functions_[index];
  if (!function.tree) function.tree = std::make_unique<const InlineTree>(function.die, files, context);
  return function.tree.get();
}

}  // namespace ptkit::dwarf
