// Pool of memory for parts of tables. Reuse matters: the first touch of fresh memory costs more than
// decoding.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace ptkit::columns {

class MemoryPool : public std::enable_shared_from_this<MemoryPool> {
 public:
  // Limit of the released memory that the pool keeps. The rest is freed.
  static constexpr std::size_t kMostIdle = std::size_t{64} << 20U;

  MemoryPool() = default;
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // At least `bytes` bytes, aligned to a page. The last owner releases them to the pool. Null: out of memory.
  // Large blocks have huge pages if the system has them.
  [[nodiscard]] std::shared_ptr<void> take(std::size_t bytes);
  [[nodiscard]] std::size_t idle_bytes() const;

 private:
  struct Block {
    void* memory = nullptr;
    std::size_t size = 0;
  };
  [[nodiscard]] Block find(std::size_t size);
  void release(Block block) noexcept;

  mutable std::mutex mutex_;
  std::vector<Block> idle_;  // least recently released first
  std::size_t idle_bytes_ = 0;
};

}  // namespace ptkit::columns
