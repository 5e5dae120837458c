// Where a Walker gets decoded code from. The pool of caches implements this: it has the graph of the fast
// path beside each cache, which nothing in this folder knows.
#pragma once

#include "flow/code/block_cache.h"

namespace ptkit::flow {

class CodeSource {
 public:
  CodeSource() = default;
  CodeSource(const CodeSource&) = delete;
  CodeSource& operator=(const CodeSource&) = delete;
  virtual ~CodeSource() = default;

  // The cache of this code. Valid until the next call, which may release all caches.
  [[nodiscard]] virtual BlockCache& of(const code::image::CodeView& view, code::insn::ExecMode mode) = 0;
  // Empties the cache that of() returned last.
  virtual void clear_last() = 0;
};

}  // namespace ptkit::flow
