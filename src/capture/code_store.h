// The code bytes of one address space as far as they were executed, on their way to the bundle: bytes that
// lie together go out together, changed ones again with the time from which they are valid.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "trace/bundle.h"

namespace ptkit::capture {

class CodeStore {
 public:
  explicit CodeStore(trace::SpaceId space) : space_(space) {}

  // Where the bytes of an address range come from, from now on.
  void map(std::uint64_t begin, std::uint64_t end, std::int32_t file, std::uint64_t file_offset);
  // The bytes at `address`, as seen at `tsc`. True if others were seen there before.
  bool add(std::uint64_t address, base::Bytes bytes, std::uint64_t tsc);
  // Of the addresses from `first` to `last`, any byte.
  [[nodiscard]] bool has(std::uint64_t first, std::uint64_t last) const;
  // What has come since the last call.
  [[nodiscard]] std::vector<trace::CodeRegion> take();

 private:
  static constexpr std::size_t kPageBytes = 4096;
  struct Page {
    std::array<std::uint8_t, kPageBytes> bytes{};
    std::bitset<kPageBytes> known;
    std::bitset<kPageBytes> fresh;  // not in `ready_` yet
    bool listed = false;            // in `fresh_pages_`
    bool changed = false;           // some bytes were others before
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
  std::vector<std::uint64_t> fresh_pages_;
  std::map<std::uint64_t, Source> sources_;  // by begin
  std::vector<trace::CodeRegion> ready_;
};

}  // namespace ptkit::capture
