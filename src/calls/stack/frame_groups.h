// What frames are summed up by: their functions, the addresses of these, or their files.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "calls/code/function_table.h"

namespace ptkit::calls {

enum class By : std::uint8_t { FUNCTION, ENTRY, MODULE };

[[nodiscard]] constexpr By by_of(std::string_view name) noexcept {
  if (name == "entry") return By::ENTRY;
  return name == "module" ? By::MODULE : By::FUNCTION;
}

class FrameGroups {
 public:
  // `functions` has the numbers of frames' functions, and must outlive this.
  FrameGroups(By by, const FunctionTable& functions) : by_(by), functions_(functions) {}

  // Frames of these functions are not shown where others are below them, so no frame recurs because of them.
  using IsHidden = std::function<bool(std::uint32_t function)>;
  void hide(IsHidden is_hidden) { is_hidden_ = std::move(is_hidden); }

  // The group of frames of this function that were entered at this address. `level`: of an inlined call.
  // `is_above`: above another frame.
  [[nodiscard]] std::uint32_t of(std::uint32_t function, std::uint64_t entry_ip, trace::SpaceId space,
                                 std::uint8_t level = 0, bool is_above = false) {
    if (by_ == By::FUNCTION || function < kFirstFunction) return function;
    const Function& of = functions_.at(function);
    if (of.thread != trace::kNoId) return by_ == By::MODULE ? kUnknownFunction : groups_.number(of);
    Function group{.entry_ip = entry_ip, .space = space, .file = -1, .offset = 0, .code_tsc = of.code_tsc};
    if (of.import != 0) return groups_.number(by_ == By::ENTRY ? of : module_of_import(of));
    const bool is_alone = is_above && is_hidden_ && is_hidden_(function);
    if (by_ == By::MODULE && !is_alone) {
      group.file = of.file;
      if (group.file < 0) group = memory_of(of);
    } else {
      group.inlined = of.inlined;
      group.level = level;
    }
    return groups_.number(group);
  }
  // Of the groups that have numbers.
  [[nodiscard]] const FunctionTable& table() const noexcept {
    return by_ == By::FUNCTION ? functions_ : groups_;
  }
  [[nodiscard]] By by() const noexcept { return by_; }
  // Without those of the functions.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return groups_.bytes(); }

 private:
  // A file of the trace, or a module that only imports name.
  [[nodiscard]] static Function module_of_import(const Function& function) {
    Function module = function;
    module.import = function.file >= 0 ? 0 : function.import_module;
    return module;
  }

  // Memory that has the code of a function without a file.
  [[nodiscard]] static Function memory_of(const Function& function) {
    if (!function.memory_base) return {};
    Function memory{.entry_ip = *function.memory_base, .space = function.memory_space};
    memory.code_tsc = function.code_tsc;
    memory.memory_base = function.memory_base;
    return memory;
  }

  By by_;
  const FunctionTable& functions_;
  FunctionTable groups_;
  IsHidden is_hidden_;
};

}  // namespace ptkit::calls
