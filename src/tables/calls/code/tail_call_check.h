// Finds direct jumps that are tail calls. Called once for each jump of a path of decoded code.
#pragma once

#include <cstdint>
#include <mutex>

#include "flow/rows/branch_choice.h"
#include "tables/calls/code/edge_cache.h"
#include "tables/calls/code/symbol_facts.h"

namespace ptkit::tables::calls {

class TailCallCheck final : public flow::JumpTest {
 public:
  // Both must outlive this.
  TailCallCheck(const code::image::Image& image, const code::symbol::Symbols& symbols)
      : facts_(image, symbols, functions_) {}

  [[nodiscard]] bool has(const code::image::CodeView& view, std::uint64_t from,
                         std::uint64_t to) const override {
    const std::scoped_lock lock(mutex_);
    static_cast<void>(facts_.follow(view.space(), view.valid_from()));
    const CodeLocation source = facts_.at(from);
    // Jumps from stubs are part of the call.
    return source.is(CODE_STUB) || is_tail(source, facts_.at(to));
  }

 private:
  mutable std::mutex mutex_;  // guards the members below
  mutable FunctionTable functions_;
  mutable SymbolFacts facts_;
};

}  // namespace ptkit::tables::calls
