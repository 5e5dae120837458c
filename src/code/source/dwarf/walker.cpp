#include "code/source/dwarf/walker.h"

#include <dwarf.h>

namespace ptkit::code::dwarf {
namespace {

// Deeper trees are damaged: compilers bound how deep they inline.
constexpr std::size_t kDeepest = 1000;

const std::uint8_t* end_of_unit(Dwarf_Die die) {
  const Dwarf_Off offset = dwarf_dieoffset(&die);
  const Dwarf_Off start = offset - dwarf_cuoffset(&die);
  Dwarf_Off next = 0;
  size_t header = 0;
  Dwarf* const dwarf = dwarf_cu_getdwarf(die.cu);
  const int failed = dwarf_nextcu(dwarf, start, &next, &header, nullptr, nullptr, nullptr);
  const auto* const at = static_cast<const std::uint8_t*>(die.addr);
  return failed != 0 || next < offset ? at : at + (next - offset);
}

}  // namespace

Walker::Walker(const Dwarf_Die& root, code::source::Budget& budget)
    : budget_(budget), die_(root), end_(end_of_unit(root)) {}

Dwarf_Die* Walker::next(bool into) {
  const std::size_t depth = depth_;
  do {
    if (!step(into)) return nullptr;
  } while (!into && depth_ > depth);
  return &die_;
}

bool Walker::step(bool into) {
  if (!budget_.take()) return false;
  Dwarf_Die next{};
  bool single = true;  // libdw finds the sibling in one step
  if (dwarf_haschildren(&die_) > 0 && (into || dwarf_hasattr(&die_, DW_AT_sibling) == 0)) {
    const int no_child = dwarf_child(&die_, &next);
    if (no_child < 0) return false;
    single = no_child != 0;
  }
  if (!single) return ++depth_ < kDeepest && go_to(next);
  if (depth_ == 0) return false;  // a root without children
  const int no_sibling = dwarf_siblingof(&die_, &next);
  if (no_sibling == 0) return go_to(next);
  return no_sibling > 0 && leave(next.addr);
}

// `end_of_list` is at the null entry that ends the current list of siblings.
bool Walker::leave(const void* end_of_list) {
  const auto* at = static_cast<const std::uint8_t*>(end_of_list);
  if (at < die_.addr) return false;
  for (; at < end_ && *at == 0; ++at) {
    if (--depth_ == 0) return false;
  }
  if (at >= end_) return false;
  Dwarf_Die next{};
  next.addr = const_cast<std::uint8_t*>(at);
  next.cu = die_.cu;
  return go_to(next);
}

bool Walker::go_to(const Dwarf_Die& next) {
  if (next.addr <= die_.addr) return false;
  die_ = next;
  return dwarf_tag(&die_) != DW_TAG_invalid;
}

}  // namespace ptkit::code::dwarf
