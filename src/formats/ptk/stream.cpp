#include "formats/ptk/stream.h"

#include <algorithm>

namespace ptkit::formats::ptk {

bool StreamAssembler::add(const IndexEntry& entry) {
  const std::uint64_t place = entry.header.place;
  const std::uint64_t size = entry.header.plain_size;
  if (place < position_ || size > trace::kTscMax - place) return false;
  if (place != position_ || parts_.empty()) parts_.push_back({place, size_});
  if (size != 0) chunks_.push_back({size_, entry.offset + kChunkHeaderBytes, entry.header});
  size_ += static_cast<std::size_t>(size);
  position_ = place + size;
  return true;
}

void StreamAssembler::add_lost(std::uint64_t place, std::uint64_t size) {
  if (size <= trace::kTscMax - place) end_ = std::max(end_, place + size);
}

std::uint64_t StreamAssembler::data_offset(std::uint64_t place) const {
  const auto after =
      std::upper_bound(parts_.begin(), parts_.end(), place,
                       [](std::uint64_t value, const Part& part) { return value < part.place; });
  const std::uint64_t limit = after == parts_.end() ? size_ : after->offset;
  if (after == parts_.begin()) return limit;
  const Part& part = *(after - 1);
  return std::min(part.offset + (place - part.place), limit);
}

std::vector<StreamAssembler::Hole> StreamAssembler::holes() const {
  std::vector<Hole> found;
  std::uint64_t end = 0;  // end of the part before
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].place != end) found.push_back({end, parts_[i].place, parts_[i].place - end});
    const std::uint64_t next = i + 1 < parts_.size() ? parts_[i + 1].offset : size_;
    end = parts_[i].place + (next - parts_[i].offset);
  }
  if (end_ > end) found.push_back({end, end_, end_ - end});
  return found;
}

base::Result<std::vector<StreamAssembler::Hole>> StreamAssembler::assemble(
    trace::Stream& stream, const std::shared_ptr<const OpenFile>& file,
    const std::shared_ptr<base::UnpackedFile>& unpacked) {
  auto data = make_stream_data(file, std::move(chunks_), size_, unpacked);
  if (!data.ok()) return data.failure();
  stream.data = std::move(data.value());
  const auto by_offset = [](const trace::KnownLoss& a, const trace::KnownLoss& b) {
    return a.offset < b.offset;
  };
  std::stable_sort(stream.losses.begin(), stream.losses.end(), by_offset);
  std::vector<Hole> unexplained;
  std::vector<trace::KnownLoss> added;
  auto loss = stream.losses.begin();
  for (Hole& hole : holes()) {
    for (; loss != stream.losses.end() && loss->offset <= hole.end; ++loss) {
      if (loss->offset > hole.begin) hole.unexplained -= std::min(hole.unexplained, loss->lost_bytes);
    }
    if (hole.unexplained == 0) continue;
    added.push_back({data_offset(hole.end), base::Status::BAD_FILE, hole.unexplained});
    unexplained.push_back(hole);
  }
  for (trace::KnownLoss& one : stream.losses) one.offset = data_offset(one.offset);
  stream.losses.insert(stream.losses.end(), added.begin(), added.end());
  std::stable_sort(stream.losses.begin(), stream.losses.end(), by_offset);
  return unexplained;
}

}  // namespace ptkit::formats::ptk
