// Decoded code that outlives the decoders which made it: lent to one decoder at a time, taken back when that
// ends.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <utility>

#include "flow/block_cache.h"

namespace ptkit::flow {

// Thread-safe. What nobody uses takes a bounded amount of memory: beyond it, the caches that were given back
// longest ago are dropped. Caches on loan are not counted: each has what one decoder met.
class CodeCachePool {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{256} << 20U;

  // `folder` is where decoded code is kept from one process to the next; by default, it is not.
  explicit CodeCachePool(const image::Image& image, std::size_t most_bytes = kMostBytes,
                         image::CodeFolder folder = image::CodeFolder(""))
      : image_(image), most_bytes_(most_bytes), kept_(image_.bundle(), std::move(folder)) {}
  ~CodeCachePool() { save(); }
  CodeCachePool(const CodeCachePool&) = delete;
  CodeCachePool& operator=(const CodeCachePool&) = delete;

  // Moves a cache for this code into `out`: of those at hand the one that knows most, else a new one.
  // `view` is one of the pool's image.
  void lend(const image::CodeView& view, insn::ExecMode mode, std::uint32_t cs_base,
            std::list<BlockCache>& out);
  // Takes all of `caches`. Those that may know less code than there is by now are dropped: a callback that
  // had none for an address is asked again.
  void take_back(std::list<BlockCache>& caches) noexcept;

  // What is at hand.
  struct Figures {
    std::size_t caches = 0;
    std::size_t bytes = 0;
    std::size_t decoded = 0;   // instructions that were decoded
    std::size_t recalled = 0;  // of them, by an earlier process
  };
  [[nodiscard]] Figures idle() const;

  // Was there code of this width so far? From any thread.
  [[nodiscard]] bool met(insn::ExecMode mode) const noexcept {
    return (modes_.load(std::memory_order_relaxed) & bit_of(mode)) != 0;
  }

  // Writes what is at hand and not kept yet, if it is much. The destructor does it, too.
  void save() noexcept;

 private:
  void save_learned();
  // 16, 32 and 64 have bits of their own.
  [[nodiscard]] static unsigned bit_of(insn::ExecMode mode) noexcept { return static_cast<unsigned>(mode); }

  const image::Image image_;  // shares the views, which the caches refer to
  const std::size_t most_bytes_;
  image::KeptFiles kept_;
  mutable std::mutex mutex_;    // guards what follows
  std::list<BlockCache> idle_;  // given back last: first
  std::size_t idle_bytes_ = 0;
  std::atomic<unsigned> modes_{0};
};

// The caches that one decoder uses.
class CodeCaches {
 public:
  // Of memory in all caches together, where one cache comes after another: processes take turns, and each
  // moment at which code changes has a view of its own.
  static constexpr std::size_t kMostBytes = std::size_t{256} << 20U;

  // `pool` may be null: its own only. `cs_base`: of 16 and 32-bit code.
  explicit CodeCaches(CodeCachePool* pool, std::uint32_t cs_base = 0) noexcept
      : pool_(pool), cs_base_(cs_base) {}
  ~CodeCaches() { let_go(); }
  CodeCaches(const CodeCaches&) = delete;
  CodeCaches& operator=(const CodeCaches&) = delete;

  // Lives until the next call, which may let all go that were asked for before: see kMostBytes.
  [[nodiscard]] BlockCache& of(const image::CodeView& view, insn::ExecMode mode);
  // Empties one of the caches.
  void clear(BlockCache& cache);
  [[nodiscard]] std::size_t bytes() const noexcept { return other_bytes_ + (last_ ? last_->bytes() : 0); }
  // Called for each cache right before it is emptied or let go.
  void before_clear(std::function<void(BlockCache&)> callback) { before_clear_ = std::move(callback); }

 private:
  void let_go() noexcept;

  CodeCachePool* pool_;
  std::uint32_t cs_base_;
  std::list<BlockCache> caches_;
  BlockCache* last_ = nullptr;  // that was asked for: no other one has grown since
  std::size_t other_bytes_ = 0;
  std::function<void(BlockCache&)> before_clear_;
  std::map<std::pair<std::uint32_t, insn::ExecMode>, BlockCache*> by_code_;
};

}  // namespace ptkit::flow
