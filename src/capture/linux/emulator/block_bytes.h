// The code bytes of the blocks of one process. A forked child reads the bytes of inherited blocks here.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/bytes.h"

namespace ptkit::capture {

class BlockBytes {
 public:
  struct Block {
    std::uint64_t pc = 0;
    std::vector<std::uint8_t> bytes;
  };

  // Begins with the first `inherited` blocks of `parent`.
  BlockBytes(std::shared_ptr<const BlockBytes> parent, std::uint32_t inherited)
      : parent_(std::move(parent)), inherited_(inherited) {}

  void add(std::uint64_t pc, base::Bytes bytes);
  // `number` is that of an added or inherited block.
  [[nodiscard]] Block get(std::uint32_t number) const;

 private:
  struct Entry {
    std::uint64_t pc = 0;
    std::uint64_t begin = 0;  // in bytes_
  };

  std::shared_ptr<const BlockBytes> parent_;
  std::uint32_t inherited_;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace ptkit::capture
