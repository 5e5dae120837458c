#include "tables/calls/code/debug_inlines.h"

#include <algorithm>
#include <array>

#include "code/symbol/row_views.h"
#include "flow/rows/bulk.h"

namespace ptkit::tables::calls {
namespace {

using code::insn::ExecMode;
using code::insn::InsnClass;

// Whether the next instruction in memory may follow. SYSCALL and the like may go on there.
[[nodiscard]] bool goes_on(InsnClass cls) noexcept {
  return cls == InsnClass::OTHER || cls == InsnClass::COND_JUMP || cls == InsnClass::FAR_CALL ||
         cls == InsnClass::PTWRITE;
}

}  // namespace

void DebugInlines::follow(trace::SpaceId space, std::uint64_t tsc) {
  const code::image::CodeView* const view = &image_.view(space, tsc);
  if (view == view_) return;
  view_ = view;
  known_ = &paths_[view->id()];
  slots_.assign(kSlots, Slot{});
  begins_.clear();
}

const InlinePath& DebugInlines::path(std::uint64_t first, std::uint64_t last, std::uint64_t instructions) {
  Slot& slot = slots_[flow::edge_hash(first, 0) & (kSlots - 1)];
  const bool is_here = slot.path != nullptr && slot.first == first;
  InlinePath& path = is_here ? *slot.path : find(first);
  slot = {first, &path};
  if (last >= first && last <= path.same_until) return path;
  if (path.instructions < instructions && !path.is_whole) look_at(path, last, instructions);
  return path;
}

InlinePath& DebugInlines::find(std::uint64_t first) {
  const auto [found, is_new] = known_->try_emplace(first);
  if (is_new) begin(found->second, first);
  return found->second;
}

void DebugInlines::begin(InlinePath& path, std::uint64_t first) {
  const Span span = span_at(first);
  path = {};
  path.changes.push_back({first, 0, 0, span.call});
  path.same_until = path.span_last = span.last;
  path.next_ip = first;
}

// Goes on to so many instructions. The mode is not known: it is the one in which the last of them is at
// `last`.
void DebugInlines::look_at(InlinePath& path, std::uint64_t last, std::uint64_t instructions) {
  const std::uint64_t first = path.changes.front().ip;
  const std::uint64_t reached = go_on(path, ExecMode::BITS64, instructions);
  if (last == 0 || (reached == last && path.instructions == instructions)) return;
  begin(path, first);
  const std::uint64_t again = go_on(path, ExecMode::BITS32, instructions);
  if (again != last || path.instructions != instructions) begin(path, first);
  path.is_whole = true;
}

// Returns the address of the last instruction.
std::uint64_t DebugInlines::go_on(InlinePath& path, ExecMode mode, std::uint64_t instructions) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 24U;
  constexpr std::size_t kLongestInsn = 15;
  const std::uint64_t wanted = std::min(instructions, kMost);
  std::uint64_t last = path.next_ip;
  while (path.instructions < wanted && !path.is_whole) {
    std::array<std::uint8_t, kLongestInsn> bytes{};
    code::insn::Insn insn;
    last = path.next_ip;
    const base::Bytes code = base::Bytes(bytes).first(view_->read(last, bytes));
    if (code::insn::decode(mode, code, insn) != base::Status::OK) {
      path.is_whole = true;
      break;
    }
    if (last > path.span_last) {
      const Span span = span_at(last);
      path.span_last = span.last;
      if (path.changes.size() == 1 && span.call == path.changes.front().call) path.same_until = span.last;
      if (span.call != path.changes.back().call)
        path.changes.push_back({last, path.instructions, path.branches, span.call});
    }
    ++path.instructions;
    if (insn.cls == InsnClass::COND_JUMP) ++path.branches;
    path.is_whole = !goes_on(insn.cls);
    path.next_ip = last + insn.size;
  }
  return last;
}

bool DebugInlines::begins_at(std::uint32_t call, std::uint64_t ip) {
  auto& known = begins_[ip];
  for (const auto& [number, begins] : known) {
    if (number == call) return begins;
  }
  const code::image::Provenance where = code::symbol::file_at(image_, *view_, ip);
  const auto linked = debug_.linked_address(where.region, ip);
  const Source& source = sources_[call];
  known.emplace_back(call, !linked || source.info->begins_call(source.call, *linked));
  return known.back().second;
}

DebugInlines::Span DebugInlines::span_at(std::uint64_t ip) {
  // Other code may be mapped at the next page.
  constexpr std::uint64_t kPage = 0xfff;
  Span span{ip | kPage, kNotInlined};
  const code::image::Provenance where = code::symbol::file_at(image_, *view_, ip);
  const code::source::SourceInfo* const info = debug_.lines_of(where.file);
  if (info == nullptr) return span;
  const auto linked = debug_.linked_address(where.region, ip);
  if (!linked) return span;
  const code::source::InlinedSpan found = info->inlined_at(*linked);
  span.last = ip + std::min(span.last - ip, found.last - *linked);
  if (found.call == code::source::InlinedCall::kNone) return span;
  const trace::CodeRegion& region = image_.bundle().code[static_cast<std::size_t>(where.region)];
  Function location{ip, view_->space(), where.file, ip - region.address + region.file_offset};
  span.call = number_of(location, *info, found.call);
  return span;
}

// The number of a call that has the code at `location`.
std::uint32_t DebugInlines::number_of(const Function& location, const code::source::SourceInfo& info,
                                      std::uint32_t call) {
  constexpr unsigned kHalf = 32;
  const auto key = std::uint64_t{static_cast<std::uint32_t>(location.file)} << kHalf | call;
  if (const auto known = numbers_.find(key); known != numbers_.end()) return known->second;
  const code::source::InlinedCall found = info.inlined_call(call);
  InlinedCall own;
  own.level = found.level;
  if (found.caller != code::source::InlinedCall::kNone) own.caller = number_of(location, info, found.caller);
  Function function = location;
  function.inlined = found.function + 1;
  function.level = static_cast<std::uint8_t>(found.level);
  own.function = functions_.number(function);
  calls_.push_back(own);
  sources_.push_back({&info, call});
  const auto number = static_cast<std::uint32_t>(calls_.size() - 1);
  numbers_.emplace(key, number);
  return number;
}

}  // namespace ptkit::tables::calls
