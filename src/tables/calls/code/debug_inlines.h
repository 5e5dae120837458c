// Inlined calls by the debug information of files. Each path is looked at once for each version of the code.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "code/image/image.h"
#include "code/insn/insn.h"
#include "code/source/source_info.h"
#include "code/symbol/debug_modules.h"
#include "tables/calls/code/function_table.h"
#include "tables/calls/code/inline_facts.h"

namespace ptkit::tables::calls {

class DebugInlines final : public InlineFacts {
 public:
  // All must outlive this.
  DebugInlines(const code::image::Image& image, const code::symbol::DebugModules& debug,
               FunctionTable& functions)
      : image_(image), debug_(debug), functions_(functions), calls_(1), sources_(1), slots_(kSlots) {}

  void follow(trace::SpaceId space, std::uint64_t tsc) override;
  [[nodiscard]] const InlinePath& path(std::uint64_t first, std::uint64_t last,
                                       std::uint64_t instructions) override;
  [[nodiscard]] bool begins_at(std::uint32_t call, std::uint64_t ip) override;
  [[nodiscard]] const InlinedCall& call(std::uint32_t number) const override { return calls_[number]; }

 private:
  // Addresses up to `last` are in this call.
  struct Span {
    std::uint64_t last = 0;
    std::uint32_t call = kNotInlined;
  };
  // A call in its file.
  struct Source {
    const code::source::SourceInfo* info = nullptr;
    std::uint32_t call = 0;
  };
  struct Slot {
    std::uint64_t first = 0;
    InlinePath* path = nullptr;
  };
  static constexpr std::size_t kSlots = std::size_t{1} << 12U;

  [[nodiscard]] InlinePath& find(std::uint64_t first);
  void begin(InlinePath& path, std::uint64_t first);
  void look_at(InlinePath& path, std::uint64_t last, std::uint64_t instructions);
  [[nodiscard]] std::uint64_t go_on(InlinePath& path, code::insn::ExecMode mode, std::uint64_t instructions);
  [[nodiscard]] Span span_at(std::uint64_t ip);
  [[nodiscard]] std::uint32_t number_of(const Function& location, const code::source::SourceInfo& info,
                                        std::uint32_t call);

  const code::image::Image& image_;
  const code::symbol::DebugModules& debug_;
  FunctionTable& functions_;
  const code::image::CodeView* view_ = nullptr;
  std::deque<InlinedCall> calls_;                             // by number
  std::deque<Source> sources_;                                // by number
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;  // by file, and number in the file
  // By the number of the view, and the first address.
  std::unordered_map<std::uint32_t, std::unordered_map<std::uint64_t, InlinePath>> paths_;
  std::unordered_map<std::uint64_t, InlinePath>* known_ = nullptr;
  // By the address, in the present view: a call and whether it begins there.
  std::unordered_map<std::uint64_t, std::vector<std::pair<std::uint32_t, bool>>> begins_;
  std::vector<Slot> slots_;  // a direct-mapped cache of known_
};

}  // namespace ptkit::tables::calls
