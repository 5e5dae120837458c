// Numbers of functions: one for each function of a file, whatever the address and the space it is mapped to.
// Inlined calls of a function have another number than the function.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "base/node_bytes.h"
#include "tables/calls/code/code_facts.h"

namespace ptkit::tables::calls {

// Of an imported function, if its import slot does not name the module.
inline constexpr std::uint64_t kUnknownModule = 1;

struct Function {
  std::uint64_t entry_ip = 0;               // of the first call
  trace::SpaceId space = trace::kAnySpace;  // of the first call
  // Index in TraceBundle::files; -1: none. Of an imported function, the file that its module is.
  std::int32_t file = -1;
  std::uint64_t offset = 0;                 // of the entry in the file
  std::uint64_t code_tsc = trace::kTscMin;  // from when on the space had the function at `entry_ip`
  std::uint64_t inlined = 0;  // inlined calls: which function of the file; 0: the function at entry_ip
  // Of an imported function of which the code is not traced: which name; `entry_ip` is that of a branch
  // through its import slot. 0: it is none.
  std::uint64_t import = 0;
  // Which module has it: a hash of the name, or kUnknownModule.
  std::uint64_t import_module = kUnknownModule;
  std::uint8_t level = 0;              // inlined calls that entry_ip is in, up to that of the function
  std::int64_t thread = trace::kNoId;  // of its outermost code, which is in no function; all else is unset
  // Without a file: the memory that has the entry (code::symbol::AnonModule). It depends on space and address
  // alone.
  std::optional<std::uint64_t> memory_base{};
  trace::SpaceId memory_space = trace::kAnySpace;
};

// The cell of `entry_ip`, which is not known of a thread's outermost code: its number is there instead.
[[nodiscard]] inline std::uint64_t stored_entry(const Function& function) noexcept {
  return function.thread == trace::kNoId ? function.entry_ip : static_cast<std::uint64_t>(function.thread);
}

class FunctionTable {
 public:
  FunctionTable() : functions_(kFirstFunction) {}

  [[nodiscard]] std::uint32_t number(const Function& function) {
    if (function.import != 0)
      return number({trace::kNoId, kImports, trace::kAnySpace, function.import_module, function.import},
                    function);
    const bool in_file = function.file >= 0;
    const bool in_calls = in_file && function.inlined != 0;
    const Key key{function.thread, function.file, in_file ? trace::kAnySpace : function.space,
                  in_calls  ? 0
                  : in_file ? function.offset
                            : function.entry_ip,
                  function.inlined};
    return number(key, function);
  }
  [[nodiscard]] const Function& at(std::uint32_t number) const noexcept { return functions_[number]; }
  [[nodiscard]] std::size_t size() const noexcept { return functions_.size(); }
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return functions_.capacity() * sizeof(Function) +
           numbers_.size() * base::node_bytes<decltype(numbers_)::value_type>();
  }

 private:
  using Key = std::tuple<std::int64_t, std::int32_t, trace::SpaceId, std::uint64_t, std::uint64_t>;
  static constexpr std::int32_t kImports = -2;  // instead of a file

  [[nodiscard]] std::uint32_t number(const Key& key, const Function& function) {
    const auto [found, is_new] = numbers_.emplace(key, static_cast<std::uint32_t>(functions_.size()));
    if (is_new) functions_.push_back(function);
    return found->second;
  }

  std::map<Key, std::uint32_t> numbers_;
  std::vector<Function> functions_;
};

}  // namespace ptkit::tables::calls
