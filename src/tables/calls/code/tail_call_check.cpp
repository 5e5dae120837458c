#include "tables/calls/code/tail_call_check.h"

#include "tables/calls/code/edge_cache.h"

namespace ptkit::tables::calls {

bool TailCallCheck::has(const code::image::CodeView& view, std::uint64_t from, std::uint64_t to) const {
  const std::scoped_lock lock(mutex_);
  static_cast<void>(facts_.follow(view.space(), view.valid_from()));
  const CodeLocation source = facts_.at(from);
  // Jumps from stubs are part of the call.
  return source.is(CODE_STUB) || is_tail(source, facts_.at(to));
}

}  // namespace ptkit::tables::calls
