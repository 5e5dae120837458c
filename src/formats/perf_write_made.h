// Code that lies in no file (made at run time, or of a file that is gone), put into one for perf: each
// version of the bytes has its own place there. For .cpp files of this folder only.
#pragma once

#include <array>
#include <bitset>
#include <map>
#include <vector>

#include "base/bytes.h"
#include "base/interval_map.h"

namespace ptkit::formats::perf {

class MadeCode {
 public:
  struct Chunk {
    std::uint64_t address = 0;
    std::uint64_t size = 0;
    std::uint64_t offset = 0;  // in the file
  };
  static constexpr std::uint64_t kFirstOffset = 4096;  // room for the file's own head

  void put(std::uint64_t address, base::Bytes bytes);
  void forget(std::uint64_t begin, std::uint64_t end);
  // Something else was mapped over [begin, end): what is known there is to be mapped again.
  void hidden(std::uint64_t begin, std::uint64_t end);
  // What has changed since the last call, in pieces as large as can be.
  [[nodiscard]] std::vector<Chunk> take();
  [[nodiscard]] std::vector<std::uint8_t> release() { return std::move(file_); }
  [[nodiscard]] bool empty() const noexcept { return file_.empty(); }

 private:
  static constexpr std::size_t kPageBytes = 4096;
  struct Page {
    std::array<std::uint8_t, kPageBytes> bytes{};
    std::bitset<kPageBytes> known;
  };

  // Gives each known run within [begin, end): its page, first and last address + 1.
  template <typename Each>
  void for_each_run(std::uint64_t begin, std::uint64_t end, Each&& each);
  [[nodiscard]] const Page* page_of(std::uint64_t address) const;
  void change(std::uint64_t begin, std::uint64_t end);
  [[nodiscard]] bool known(std::uint64_t address) const;
  // Their offset in the file: where these bytes were put before, or behind all others.
  [[nodiscard]] std::uint64_t place_of(std::uint64_t begin, std::uint64_t end);
  [[nodiscard]] bool is_at(std::uint64_t offset, base::Bytes bytes) const;

  std::map<std::uint64_t, Page> pages_;
  std::map<std::uint64_t, std::uint64_t> changed_;  // begin, end: disjoint and apart
  base::IntervalMap<std::uint64_t> places_;         // address - offset, where they were put last
  std::vector<std::uint8_t> file_;                  // from kFirstOffset on
};

}  // namespace ptkit::formats::perf
