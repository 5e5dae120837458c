// The container of a PDB, MSF 7.00: a file of blocks, of which each stream has a list. Bytes are read where
// they lie in the file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace ptkit::code::pdb {

// Why a stream cannot be used: "stream 12 is damaged at offset 64: a symbol is cut".
[[nodiscard]] std::string damage_at(std::uint32_t stream, std::uint64_t offset, std::string_view reason);

class Stream {
 public:
  Stream() = default;
  Stream(std::uint32_t number, std::uint32_t size, base::Bytes file, std::uint32_t block_bytes,
         std::span<const std::uint32_t> blocks)
      : number_(number), size_(size), file_(file), block_bytes_(block_bytes), blocks_(blocks) {}

  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  // Bytes from an offset on that lie in the file one after another: at least one, 64 KiB or a block at most.
  [[nodiscard]] base::Bytes run_at(std::uint32_t offset) const noexcept;

 private:
  std::uint32_t number_ = 0;
  std::uint32_t size_ = 0;
  base::Bytes file_;
  std::uint32_t block_bytes_ = 1;
  std::span<const std::uint32_t> blocks_;
};

class MsfFile {
 public:
  static constexpr std::string_view kMagic{
      "Microsoft C/C++ MSF 7.00\r\n\x1a"
      "DS\0\0\0",
      32};

  // The bytes must outlive the object.
  explicit MsfFile(base::Bytes file);
  // The streams have their blocks in it.
  MsfFile(const MsfFile&) = delete;
  MsfFile& operator=(const MsfFile&) = delete;

  // Why the file has no streams; empty: it has.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  [[nodiscard]] std::uint64_t file_bytes() const noexcept { return file_.size(); }
  // Empty: there is no such stream, or `problem` says why it cannot be read.
  [[nodiscard]] Stream stream(std::uint32_t number, std::string& problem) const;

 private:
  struct Entry {
    std::uint32_t size = 0;
    std::uint32_t first = 0;  // of its blocks in blocks_
    bool is_damaged = false;
  };
  void read_directory();
  [[nodiscard]] bool is_block(std::uint32_t number) const noexcept {
    return number != 0 && number < block_count_;
  }

  base::Bytes file_;
  std::uint32_t block_bytes_ = 0;
  std::uint32_t block_count_ = 0;
  std::vector<Entry> streams_;
  std::vector<std::uint32_t> blocks_;
  std::string problem_;
};

}  // namespace ptkit::code::pdb
