// Collects code that no file has (JIT code, code of deleted or changed files) in one file for perf. Each
// version of the bytes has its own range of the file. For .cpp files of this folder only.
#pragma once

#include <array>
#include <bitset>
#include <map>
#include <vector>

#include "base/bytes.h"
#include "base/interval_map.h"

namespace ptkit::formats::perf {

class JitElf {
 public:
  struct Chunk {
    std::uint64_t address = 0;
    std::uint64_t size = 0;
    std::uint64_t offset = 0;  // file offset
  };
  static constexpr std::uint64_t kFirstOffset = 4096;  // space for the ELF header

  void put(std::uint64_t address, base::Bytes bytes);
  void forget(std::uint64_t begin, std::uint64_t end);
  // Another file was mapped over [begin, end): code that is known there must be mapped again.
  void remap(std::uint64_t begin, std::uint64_t end);
  // Returns code that changed since the last call, in the largest possible chunks.
  [[nodiscard]] std::vector<Chunk> take_changes();
  [[nodiscard]] std::vector<std::uint8_t> release() { return std::move(file_); }
  [[nodiscard]] bool empty() const noexcept { return file_.empty(); }

 private:
  static constexpr std::size_t kPageBytes = 4096;
  struct Page {
    std::array<std::uint8_t, kPageBytes> bytes{};
    std::bitset<kPageBytes> known;
  };

  // Calls `each` for each run of known bytes within [begin, end): page, first address, last address + 1.
  template <typename Each>
  void for_each_run(std::uint64_t begin, std::uint64_t end, Each&& each);
  [[nodiscard]] const Page* page_of(std::uint64_t address) const;
  void change(std::uint64_t begin, std::uint64_t end);
  [[nodiscard]] bool known(std::uint64_t address) const;
  // Returns the file offset of the bytes of [begin, end): that of equal earlier bytes, or the end of the
  // file.
  [[nodiscard]] std::uint64_t offset_of(std::uint64_t begin, std::uint64_t end);
  [[nodiscard]] bool file_has(std::uint64_t offset, base::Bytes bytes) const;

  std::map<std::uint64_t, Page> pages_;
  std::map<std::uint64_t, std::uint64_t> changed_;  // begin -> end; disjoint, not adjacent
  base::IntervalMap<std::uint64_t> offsets_;        // address - offset, where they were put last
  std::vector<std::uint8_t> file_;                  // from kFirstOffset on
};

}  // namespace ptkit::formats::perf
