// The functions of a unit by address, and what is inlined into them. Internal to src/code/source/dwarf.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "code/source/dwarf/context.h"
#include "code/source/dwarf/line_table.h"
#include "code/source/spans.h"

namespace ptkit::code::dwarf {

// A function or an inlined call of one.
struct FunctionNode {
  std::uint32_t caller = code::source::kNone;  // the node that it is inlined into
  std::uint32_t level = 0;                     // inlined calls that it is in, itself included
  std::uint32_t name = code::source::kNone;    // number of a string
  std::uint32_t declared_line = 0;
  std::uint32_t call_file = code::source::kNone;  // by its number in the unit's line table
  std::uint32_t call_line = 0;
  std::uint64_t entry = 0;  // address at which the inlined call begins; 0: not known
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
  // The call that is inlined in a node at an address, or null; `of` is at the address or contains what is.
  [[nodiscard]] const FunctionNode* inner(const FunctionNode& of, const FunctionNode* at) const noexcept {
    const FunctionNode* inner = nullptr;
    for (; at != nullptr && at != &of; at = caller(*at)) inner = at;
    return inner;
  }
  // Also cuts [first, last] to addresses of this node.
  [[nodiscard]] const FunctionNode* at(std::uint64_t address, std::uint64_t& first,
                                       std::uint64_t& last) const noexcept {
    return node(spans_.at(address, first, last));
  }
  // Of all nodes of a file, their numbers are different.
  [[nodiscard]] std::uint32_t number(const FunctionNode& of) const noexcept {
    return first_number_ + static_cast<std::uint32_t>(&of - nodes_.data());
  }
  [[nodiscard]] const FunctionNode& numbered(std::uint32_t number) const noexcept {
    return nodes_[number - first_number_];
  }
  [[nodiscard]] std::uint32_t first_number() const noexcept { return first_number_; }

 private:
  [[nodiscard]] const FunctionNode* node(std::uint32_t index) const noexcept {
    return index == code::source::kNone ? nullptr : &nodes_[index];
  }
  void add(Dwarf_Die& die, std::uint32_t caller, const LineTable& files, Context& context);

  std::vector<FunctionNode> nodes_;
  code::source::Spans spans_;
  std::uint32_t first_number_ = 0;
};

class Functions {
 public:
  Functions(const Dwarf_Die& unit, Context& context);

  // The function at an address, or null.
  [[nodiscard]] const InlineTree* at(std::uint64_t address, const LineTable& files, Context& context);
  // Also cuts [first, last] to addresses of which it is the function.
  [[nodiscard]] const InlineTree* at(std::uint64_t address, const LineTable& files, Context& context,
                                     std::uint64_t& first, std::uint64_t& last);
  // The line on which the function at an address is declared; no file: not known.
  [[nodiscard]] LineRow declaration_at(std::uint64_t address, const LineTable& files);

 private:
  struct Function {
    Dwarf_Die die{};
    std::unique_ptr<const InlineTree> tree;  // made at the first lookup
  };
  void find(bool nested, Context& context);

  Dwarf_Die unit_;
  std::deque<Function> functions_;
  code::source::Spans spans_;
  bool has_nested_ = false;
};

}  // namespace ptkit::code::dwarf
