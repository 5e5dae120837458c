// The executed code bytes of one process: by address for the bundle, and by block for forked children.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "trace/bundle.h"

namespace ptkit::capture {

// The code of one address space. Adjacent bytes become one code region. Changed bytes become another region
// with the time from which they are valid.
class CodeStore {
 public:
  explicit CodeStore(trace::SpaceId space) : space_(space) {}

  // Maps an address range to a file from now on.
  void map(std::uint64_t begin, std::uint64_t end, std::int32_t file, std::uint64_t file_offset);
  // Adds the bytes at `address` as of `tsc`. Returns true if the store had other bytes there.
  bool add(std::uint64_t address, base::Bytes bytes, std::uint64_t tsc);
  // Whether the address is mapped to a file.
  [[nodiscard]] bool is_of_file(std::uint64_t address) const;
  // Whether the store has any byte from `first` to `last`.
  [[nodiscard]] bool has(std::uint64_t first, std::uint64_t last) const;
  // Takes the code regions since the last call.
  [[nodiscard]] std::vector<trace::CodeRegion> take();

 private:
  static constexpr std::size_t kPageBytes = 4096;
  struct Page {
    std::array<std::uint8_t, kPageBytes> bytes{};
    std::bitset<kPageBytes> known;
    std::bitset<kPageBytes> dirty;  // not in `ready_` yet
    bool listed = false;            // `dirty_pages_` has the page
    bool changed = false;           // some bytes have changed
  };
  struct Source {
    std::uint64_t end = 0;
    std::int32_t file = -1;
    std::uint64_t file_offset = 0;  // of the range's first byte
  };

  bool add_to_page(std::uint64_t address, base::Bytes bytes, std::uint64_t tsc);
  void collect();
  void collect(std::uint64_t page_address, Page& page);
  void emit(std::uint64_t address, base::Bytes bytes, std::uint64_t tsc_from);

  trace::SpaceId space_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::vector<std::uint64_t> dirty_pages_;
  std::map<std::uint64_t, Source> sources_;  // by begin
  std::vector<trace::CodeRegion> ready_;
};

// The code bytes of the blocks of one process. A forked child reads the bytes of inherited blocks here.
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
