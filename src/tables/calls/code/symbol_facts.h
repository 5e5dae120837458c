// Facts of code by the symbols of its files. Each address is looked up once for each version of the code.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "code/bounds/table.h"
#include "code/image/image.h"
#include "code/insn/insn.h"
#include "code/symbol/symbols.h"
#include "flow/rows/branch_choice.h"
#include "tables/calls/code/code_facts.h"
#include "tables/calls/code/edge_cache.h"
#include "tables/calls/code/function_table.h"

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
  [[nodiscard]] const ImportModule& module_of(std::string_view name);
  [[nodiscard]] FileLocation file_location(std::uint64_t ip) const;
  [[nodiscard]] static std::uint32_t unwind_flags(const FileLocation& location, std::uint64_t begin);
  [[nodiscard]] CodeLocation find(std::uint64_t ip) const;
  [[nodiscard]] code::insn::Insn insn_at(std::uint64_t ip) const;
  [[nodiscard]] std::uint32_t number_at(std::uint64_t entry) const;

  const code::image::Image& image_;
  const code::symbol::Symbols& symbols_;
  FunctionTable& functions_;
  const code::image::CodeView* view_ = nullptr;
  // By the number of the view.
  std::unordered_map<std::uint32_t, std::unordered_map<std::uint64_t, CodeLocation>> locations_;
  std::unordered_map<std::uint64_t, CodeLocation>* known_ = nullptr;
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
