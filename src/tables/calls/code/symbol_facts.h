// Facts of code by the symbols of its files. Each address is looked up once for each version of the code.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "code/bounds/table.h"
#include "code/image/image.h"
#include "code/insn/insn.h"
#include "code/symbol/symbols.h"
#include "flow/rows/branch_choice.h"
#include "tables/calls/code/code_facts.h"
#include "tables/calls/code/edge_cache.h"
#include "tables/calls/code/function_table.h"
#include "tables/calls/code/ip_map.h"

namespace ptkit::tables::calls {

class SymbolFacts final : public CodeFacts {
 public:
  // All must outlive this.
  SymbolFacts(const code::image::Image& image, const code::symbol::Symbols& symbols, FunctionTable& functions)
      : image_(image), symbols_(symbols), functions_(functions) {}

  CodeVersion follow(trace::SpaceId space, std::uint64_t tsc) override;
  [[nodiscard]] CodeLocation at(std::uint64_t ip) override;
  [[nodiscard]] std::uint32_t function_at(std::uint64_t ip) override;
  [[nodiscard]] std::uint32_t function_of_thread(std::int64_t tid) override;
  [[nodiscard]] std::uint32_t import_at(std::uint64_t ip) override;
  [[nodiscard]] bool has_code(std::uint64_t ip) override;
  [[nodiscard]] std::uint64_t end_of(std::uint64_t ip) override;
  [[nodiscard]] bool is_retpoline_call(std::uint64_t ip) override;
  [[nodiscard]] bool begins_retpoline(std::uint64_t ip) override;
  [[nodiscard]] bool follows_call(std::uint64_t ip) override;
  [[nodiscard]] bool is_far_call(std::uint64_t ip) override;
  [[nodiscard]] bool loads_stack_pointer(std::uint64_t entry, std::uint64_t ip) override;
  [[nodiscard]] std::optional<std::uint64_t> landing_pad_of(std::uint64_t ip) override;
  // Memory of the addresses that were looked up.
  [[nodiscard]] std::uint64_t bytes() const noexcept;

 private:
  // A byte of a file.
  struct FileLocation {
    const code::bounds::UnwindTable* unwind = nullptr;  // of the file; null: the byte is of no file
    std::int32_t file = -1;
    std::uint64_t offset = 0;
  };
  // A module that imports name.
  struct ImportModule {
    std::uint64_t hash = 0;
    std::int32_t file = -1;  // of the trace; -1: none is this module
  };
  // What was found before: the addresses [first, last] of a view have this symbol, or are of this file.
  struct KnownSymbol {
    std::uint64_t first = 1;
    std::uint64_t last = 0;
    code::symbol::Symbol symbol{};
    std::uint32_t function = kUnknownFunction;
    std::uint32_t flags = 0;  // by the name
  };
  struct KnownFile {
    const code::image::CodeView* view = nullptr;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    FileLocation location{};  // of the first address
  };
  [[nodiscard]] const ImportModule& module_of(std::string_view name);
  [[nodiscard]] FileLocation file_location(std::uint64_t ip);
  [[nodiscard]] static std::uint32_t unwind_flags(const FileLocation& location, std::uint64_t begin);
  [[nodiscard]] CodeLocation find(std::uint64_t ip);
  // Null: none covers the address. Valid until the next call.
  [[nodiscard]] const KnownSymbol* symbol_at(std::uint64_t ip);
  [[nodiscard]] code::insn::Insn insn_at(std::uint64_t ip) const;
  [[nodiscard]] std::uint32_t number_at(std::uint64_t entry);

  const code::image::Image& image_;
  const code::symbol::Symbols& symbols_;
  FunctionTable& functions_;
  const code::image::CodeView* view_ = nullptr;
  // By the number of the view.
  std::unordered_map<std::uint32_t, IpMap<CodeLocation>> locations_;
  IpMap<CodeLocation>* known_ = nullptr;
  // By the number of the view, and by the first address.
  std::unordered_map<std::uint32_t, std::map<std::uint64_t, KnownSymbol>> symbols_by_ip_;
  std::map<std::uint64_t, KnownSymbol>* known_symbols_ = nullptr;
  const KnownSymbol* known_symbol_ = nullptr;  // of the last address
  KnownFile known_file_;
  std::unordered_map<std::uint32_t, std::unordered_map<std::uint64_t, std::uint32_t>> imports_;
  std::map<std::string, ImportModule, std::less<>> import_modules_;
};

// Finds direct jumps that are tail calls. Called once for each jump of a path of decoded code.
class TailCallCheck final : public flow::JumpTest {
 public:
  // Both must outlive this.
  TailCallCheck(const code::image::Image& image, const code::symbol::Symbols& symbols)
      : facts_(image, symbols, functions_) {}

  [[nodiscard]] bool has(const code::image::CodeView& view, std::uint64_t from,
                         std::uint64_t to) const override {
    const std::scoped_lock lock(mutex_);
    const std::uint64_t code = std::uint64_t{1} + view.id();
    Known* known = &slot_of(from, to);
    if (known->from == from && known->to == to && known->view == code) return known->is_tail_call;
    if (known->view == code && ++displaced_ > known_.size() / 4 && known_.size() < kMostKnown) {
      grow();
      known = &slot_of(from, to);
    }
    *known = {from, to, code, is_tail_call(view, from, to)};
    return known->is_tail_call;
  }

 private:
  // A jump is on many paths.
  struct Known {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    std::uint64_t view = 0;  // 1 + its number; 0: the slot is free
    bool is_tail_call = false;
  };
  static constexpr std::size_t kLeastKnown = std::size_t{1} << 10U;
  static constexpr std::size_t kMostKnown = std::size_t{1} << 17U;

  [[nodiscard]] Known& slot_of(std::uint64_t from, std::uint64_t to) const {
    return known_[flow::edge_hash(from, to) & (known_.size() - 1)];
  }
  void grow() const {
    std::vector<Known> old(known_.size() * 2);
    std::swap(old, known_);
    displaced_ = 0;
    for (const Known& one : old) {
      if (one.view != 0) slot_of(one.from, one.to) = one;
    }
  }

  [[nodiscard]] bool is_tail_call(const code::image::CodeView& view, std::uint64_t from,
                                  std::uint64_t to) const {
    static_cast<void>(facts_.follow(view.space(), view.valid_from()));
    const CodeLocation source = facts_.at(from);
    // Jumps from stubs are part of the call.
    return source.is(CODE_STUB) || is_tail(source, facts_.at(to));
  }

  mutable std::mutex mutex_;  // guards the members below
  mutable FunctionTable functions_;
  mutable SymbolFacts facts_;
  mutable std::vector<Known> known_ = std::vector<Known>(kLeastKnown);
  mutable std::size_t displaced_ = 0;
};

}  // namespace ptkit::tables::calls
