// Memory for parts of tables that is used again: the first touch of fresh memory costs more than decoding.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace ptkit::columns {

class MemoryPool : public std::enable_shared_from_this<MemoryPool> {
 public:
  // What was given back and waits to be used again, at most. What is more goes back to the system.
  static constexpr std::size_t kMostIdle = std::size_t{64} << 20U;

  MemoryPool() = default;
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // So many bytes at the least, aligned to a page; the last owner gives them back. Null: out of memory.
  // Large blocks have huge pages where the system has them.
  [[nodiscard]] std::shared_ptr<void> take(std::size_t bytes);
  [[nodiscard]] std::size_t idle_bytes() const;

 private:
  struct Block {
    void* memory = nullptr;
    std::size_t size = 0;
  };
  [[nodiscard]] Block find(std::size_t size);
  void give_back(Block block) noexcept;

  mutable std::mutex mutex_;
  std::vector<Block> idle_;  // given back longest ago first
  std::size_t idle_bytes_ = 0;
};

}  // namespace ptkit::columns
