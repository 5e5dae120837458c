// Pool of decoded code, and of the automata over it, that outlives the decoders. A decoder acquires caches,
// uses each alone, and releases them to the pool when it ends.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "flow/code/code_source.h"
#include "flow/fast/path_cache.h"

namespace ptkit::flow {

// The blocks of one view of memory in one execution mode, and the paths through them.
struct CachedCode {
  CachedCode(const code::image::CodeView& view, code::insn::ExecMode mode, std::uint32_t cs_base)
      : blocks(view, mode, cs_base) {}

  // Makes the paths if there are none, or if they are for other returns.
  [[nodiscard]] PathCache& paths_for(const ReturnRules& returns) {
    if (paths == nullptr || paths->returns() != returns) paths = std::make_unique<PathCache>(blocks, returns);
    return *paths;
  }
  void clear() {
    paths.reset();  // in the memory of `blocks`
    blocks.clear();
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return blocks.bytes(); }  // of both

  BlockCache blocks;
  std::unique_ptr<PathCache> paths;  // null: no decoder has used the fast path yet
};

// Thread-safe. Idle caches take at most `most_bytes` of memory: above it, the least recently released caches
// are dropped. Caches in use are not counted: each has only the code that one decoder executed.
class CodeCachePool {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{256} << 20U;

  explicit CodeCachePool(const code::image::Image& image, std::size_t most_bytes = kMostBytes)
      : image_(image), most_bytes_(most_bytes) {
    filter_signs_.reserve(kMostFilterSigns);
  }
  CodeCachePool(const CodeCachePool&) = delete;
  CodeCachePool& operator=(const CodeCachePool&) = delete;

  // Moves a cache for this code to the end of `out`: the idle cache with the most decoded code, or else a new
  // one. `view` belongs to the pool's image.
  void acquire(const code::image::CodeView& view, code::insn::ExecMode mode, std::uint32_t cs_base,
               std::list<CachedCode>& out);
  // Takes all of `caches`. With a code callback, caches that met missing code are dropped: the next decoder
  // calls the callback again.
  void release(std::list<CachedCode>& caches) noexcept;

  // Idle caches.
  struct Figures {
    std::size_t caches = 0;
    std::size_t bytes = 0;
    std::size_t decoded = 0;  // instructions that were decoded
  };
  [[nodiscard]] Figures idle() const;

  // Takes signs of address ranges that are not known (AddressFilter::watch): their offsets in `stream`, which
  // outlives the pool. From any thread.
  void note_filter_signs(base::Bytes stream, std::span<const std::uint64_t> offsets) noexcept;
  // Number of stream offsets with signs, of all decoders; at most kMostFilterSigns. An offset that several
  // decoders met counts once.
  [[nodiscard]] std::size_t filter_signs() const;

  // True if a decoder has acquired code of this width. From any thread.
  [[nodiscard]] bool met(code::insn::ExecMode mode) const noexcept {
    return (modes_.load(std::memory_order_relaxed) & bit_of(mode)) != 0;
  }

 private:
  static constexpr std::size_t kMostFilterSigns = 1024;

  // 16, 32 and 64 are distinct bits.
  [[nodiscard]] static unsigned bit_of(code::insn::ExecMode mode) noexcept {
    return static_cast<unsigned>(mode);
  }

  const code::image::Image image_;  // shares the views, which the caches refer to
  const std::size_t most_bytes_;
  mutable std::mutex mutex_;    // guards the members below
  std::list<CachedCode> idle_;  // most recently released first
  std::size_t idle_bytes_ = 0;
  std::vector<const std::uint8_t*> filter_signs_;  // ascending; never grows above its capacity
  std::atomic<unsigned> modes_{0};
};

// The caches of one decoder.
class CodeCaches final : public CodeSource {
 public:
  // Limit for the memory of all caches together. Many caches follow each other where processes alternate, and
  // each change of code has a view of its own.
  static constexpr std::size_t kMostBytes = std::size_t{256} << 20U;

  // `pool` may be null: then the caches are private. `cs_base`: base of 16 and 32-bit code.
  explicit CodeCaches(CodeCachePool* pool, std::uint32_t cs_base = 0) noexcept
      : pool_(pool), cs_base_(cs_base) {}
  ~CodeCaches() override { release_all(); }
  CodeCaches(const CodeCaches&) = delete;
  CodeCaches& operator=(const CodeCaches&) = delete;

  [[nodiscard]] BlockCache& of(const code::image::CodeView& view, code::insn::ExecMode mode) override;
  void clear_last() override;
  // The blocks that of() returned last, with their paths.
  [[nodiscard]] CachedCode& last() noexcept { return *last_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return other_bytes_ + (last_ ? last_->bytes() : 0); }
  // Called for each cache right before it is emptied or released.
  void before_clear(std::function<void(CachedCode&)> callback) { before_clear_ = std::move(callback); }

 private:
  void release_all() noexcept;

  CodeCachePool* pool_;
  std::uint32_t cs_base_;
  std::list<CachedCode> caches_;
  CachedCode* last_ = nullptr;  // no other cache has grown since
  std::size_t other_bytes_ = 0;
  std::function<void(CachedCode&)> before_clear_;
  std::map<std::pair<std::uint32_t, code::insn::ExecMode>, CachedCode*> by_code_;
};

}  // namespace ptkit::flow
