// Numbers of functions: one for each function of a file, whatever the address and the space it is mapped to.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "calls/code_facts.h"

namespace ptkit::calls {

struct Function {
  std::uint64_t entry_ip = 0;               // of the first call
  trace::SpaceId space = trace::kAnySpace;  // of the first call
  std::int32_t file = -1;                   // index in TraceBundle::files; -1: none
  std::uint64_t offset = 0;                 // of the entry in the file
};

class FunctionTable {
 public:
  FunctionTable() : functions_(kFirstFunction) {}

  [[nodiscard]] std::uint32_t number(const Function& function) {
    const bool in_file = function.file >= 0;
    const Key key{function.file, in_file ? trace::kAnySpace : function.space,
                  in_file ? function.offset : function.entry_ip};
    const auto [place, is_new] = numbers_.emplace(key, static_cast<std::uint32_t>(functions_.size()));
    if (is_new) functions_.push_back(function);
    return place->second;
  }
  [[nodiscard]] const Function& at(std::uint32_t number) const noexcept { return functions_[number]; }
  [[nodiscard]] std::size_t size() const noexcept { return functions_.size(); }

 private:
  using Key = std::tuple<std::int32_t, trace::SpaceId, std::uint64_t>;

  std::map<Key, std::uint32_t> numbers_;
  std::vector<Function> functions_;
};

}  // namespace ptkit::calls
