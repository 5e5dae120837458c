#include "code/source/pdb/msf.h"

#include <algorithm>
#include <bit>

#include "code/source/pdb/cursor.h"

namespace ptkit::code::pdb {
namespace {

constexpr std::uint32_t kLongestRun = std::uint32_t{1} << 16U;
constexpr std::uint32_t kWord = 4;

std::uint32_t blocks_for(std::uint32_t bytes, std::uint32_t block_bytes) noexcept {
  return bytes / block_bytes + (bytes % block_bytes == 0 ? 0 : 1);
}

}  // namespace

std::string damage_at(std::uint32_t stream, std::uint64_t offset, std::string_view reason) {
  return "stream " + std::to_string(stream) + " is damaged at offset " + std::to_string(offset) + ": " +
         std::string(reason);
}

base::Bytes Stream::run_at(std::uint32_t offset) const noexcept {
  std::size_t last = offset / block_bytes_;
  const std::uint64_t begin = std::uint64_t{blocks_[last]} * block_bytes_ + offset % block_bytes_;
  std::uint32_t size = block_bytes_ - offset % block_bytes_;
  for (; size < kLongestRun && last + 1 < blocks_.size() && blocks_[last + 1] == blocks_[last] + 1; ++last)
    size += block_bytes_;
  return file_.subspan(begin, std::min(size, size_ - offset));
}

MsfFile::MsfFile(base::Bytes file) : file_(file) { read_directory(); }

// magic[32], bytes of a block, number of the free block map, blocks, bytes of the directory, 0, numbers of
// the blocks that have the numbers of the directory's blocks
//
// directory: number of streams, their sizes, the numbers of their blocks
void MsfFile::read_directory() {
  constexpr std::uint32_t kLeastBlock = 512;
  constexpr std::uint32_t kMostBlock = 32768;
  constexpr std::uint32_t kMostStreams = 65536;  // parts of a PDB have numbers of 16 bits
  constexpr std::uint32_t kNoSize = UINT32_MAX;  // of a stream that was deleted
  Cursor header(file_.first(std::min<std::size_t>(file_.size(), kMostBlock)));
  const base::Bytes magic = header.take(kMagic.size());
  const bool is_msf =
      std::ranges::equal(magic, kMagic, {}, {}, [](char one) { return static_cast<std::uint8_t>(one); });
  block_bytes_ = header.u32();
  const std::uint32_t free_map = header.u32();
  block_count_ = header.u32();
  const std::uint32_t directory_bytes = header.u32();
  header.skip(kWord);
  if (!header.good() || !is_msf || !std::has_single_bit(block_bytes_) || block_bytes_ < kLeastBlock ||
      block_bytes_ > kMostBlock || free_map < 1 || free_map > 2) {
    problem_ = "its first " + std::to_string(header.offset()) + " bytes are no header of a PDB";
    return;
  }
  if (std::uint64_t{block_count_} * block_bytes_ > file_.size()) {
    problem_ = "it is cut: of " + std::to_string(std::uint64_t{block_count_} * block_bytes_) +
               " bytes it has " + std::to_string(file_.size());
    return;
  }
  problem_ = "its directory of streams is damaged";
  const std::uint32_t map_bytes = blocks_for(directory_bytes, block_bytes_) * kWord;
  if (map_bytes == 0 || map_bytes / kWord > block_count_) return;
  const auto read_blocks = [this](Cursor numbers, std::uint32_t count) {
    std::vector<std::uint32_t> blocks(count);
    for (std::uint32_t& one : blocks) one = numbers.u32();
    const bool are_there = std::ranges::all_of(blocks, [this](std::uint32_t one) { return is_block(one); });
    return are_there ? blocks : std::vector<std::uint32_t>();
  };
  const auto map = read_blocks(std::move(header), blocks_for(map_bytes, block_bytes_));
  if (map.empty()) return;
  const Stream map_stream(0, map_bytes, file_, block_bytes_, map);
  const auto own = read_blocks(Cursor(map_stream), map_bytes / kWord);
  if (own.empty()) return;
  const Stream directory(0, directory_bytes, file_, block_bytes_, own);
  Cursor words(directory);
  const std::uint32_t count = words.u32();
  if (!words.good() || count > kMostStreams || count > words.left() / kWord) return;
  streams_.resize(count);
  for (Entry& one : streams_) one.size = words.u32();
  std::vector<bool> is_used(block_count_);
  for (Entry& one : streams_) {
    if (one.size == kNoSize) one.size = 0;
    one.first = static_cast<std::uint32_t>(blocks_.size());
    const bool is_old = &one == &streams_.front();  // stream 0 is the directory before the last change
    for (std::uint32_t left = blocks_for(one.size, block_bytes_); left > 0; --left) {
      const std::uint32_t block = words.u32();
      if (!words.good()) return;
      one.is_damaged = one.is_damaged || is_old || !is_block(block) || is_used[block];
      if (one.is_damaged) continue;
      is_used[block] = true;
      blocks_.push_back(block);
    }
  }
  problem_.clear();
}

Stream MsfFile::stream(std::uint32_t number, std::string& problem) const {
  if (number >= streams_.size()) return {};
  const Entry& one = streams_[number];
  if (one.is_damaged) {
    problem = "stream " + std::to_string(number) +
              " is damaged: its blocks are beyond the end of the file, or those of another stream";
    return {};
  }
  const std::uint32_t blocks = blocks_for(one.size, block_bytes_);
  return {number, one.size, file_, block_bytes_, std::span(blocks_).subspan(one.first, blocks)};
}

base::Bytes Cursor::peek(std::uint32_t size) {
  if (run_.empty() && stream_ != nullptr && at_ < end_) {
    run_ = stream_->run_at(at_);
    run_ = run_.first(std::min<std::size_t>(run_.size(), left()));
  }
  if (run_.size() >= size) return run_;
  copy_.clear();
  for (std::uint32_t at = at_; copy_.size() < size;) {
    base::Bytes run = stream_->run_at(at);
    run = run.first(std::min(run.size(), size - copy_.size()));
    copy_.insert(copy_.end(), run.begin(), run.end());
    at += static_cast<std::uint32_t>(run.size());
  }
  return copy_;
}

base::Bytes Cursor::take(std::uint32_t size) {
  good_ = good_ && size <= left();
  if (!good_ || size == 0) return {};
  const base::Bytes found = peek(size).first(size);
  skip(size);
  return found;
}

std::string_view Cursor::text() {
  for (const std::uint32_t most : {std::uint32_t{1}, std::min(left(), kLongestRun)}) {
    if (!good_ || left() == 0) break;
    const base::Bytes bytes = peek(most);
    const auto end = std::ranges::find(bytes, 0);
    if (end == bytes.end()) continue;
    const auto size = static_cast<std::uint32_t>(end - bytes.begin());
    skip(size + 1);
    return {reinterpret_cast<const char*>(bytes.data()), size};
  }
  good_ = false;
  return {};
}

void Cursor::skip(std::uint64_t size) {
  good_ = good_ && size <= left();
  if (!good_) return;
  at_ += static_cast<std::uint32_t>(size);
  run_ = run_.subspan(std::min<std::size_t>(run_.size(), size));
}

}  // namespace ptkit::code::pdb
