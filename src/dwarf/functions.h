// The functions of a unit by address, and what is inlined into them. Internal to src/dwarf.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "dwarf/context.h"
#include "dwarf/line_table.h"
#include "dwarf/spans.h"

namespace ptkit::dwarf {

// A function or an inlined call of one.
struct FunctionNode {
  std::uint32_t caller = kNone;  // the node that it is inlined into
  std::uint32_t name = kNone;    // numbers of strings
  std::uint32_t call_file = kNone;
  std::uint32_t call_line = 0;
};

// A function with all calls that are inlined into it.
class InlineTree {
 public:
  InlineTree(const Dwarf_Die& function, const LineTable& files, Context& context);

  // The innermost node at an address, or null.
  [[nodiscard]] const FunctionNode* at(std::uint64_t address) const noexcept {
    return node(spans_.at(address));
  }
  [[nodiscard]] const FunctionNode* caller(const FunctionNode& of) const noexcept { return node(of.caller); }

 private:
  [[nodiscard]] const FunctionNode* node(std::uint32_t index) const noexcept {
    return index == kNone ? nullptr : &nodes_[index];
  }
  void add(Dwarf_Die& die, std::uint32_t caller, const LineTable& files, Context& context);

  std::vector<FunctionNode> nodes_;
  Spans spans_;
};

class Functions {
 public:
  Functions(const Dwarf_Die& unit, Context& context);

  // The function at an address, or null.
  [[nodiscard]] const InlineTree* at(std::uint64_t address, const LineTable& files, Context& context);

 private:
  struct Function {
    Dwarf_Die die{};
    std::unique_ptr<const InlineTree> tree;  // made at the first lookup
  };
  void find(bool nested, Context& context);

  Dwarf_Die unit_;
  std::deque<Function> functions_;
  Spans spans_;
  bool has_nested_ = false;
};

}  // namespace ptkit::dwarf
