#include "formats/perf_export/aux_chunks.h"

#include "base/fields.h"

namespace ptkit::formats::perf {

namespace {

constexpr std::uint64_t kRecordBytes = 48;

}  // namespace

std::uint64_t lost_flags(const trace::KnownLoss& loss) noexcept {
  return kAuxTruncated | (loss.cause == base::Status::RING_WRAPPED ? kAuxOverwrite : 0);
}

const trace::TraceBuffer& ForwardReader::data(std::size_t stream) {
  if (stream != stream_) data_ = bundle_.streams[stream].data.again();
  stream_ = stream;
  return data_;
}

AuxWriter::AuxWriter(const trace::TraceBundle& bundle, GoOn go_on)
    : bundle_(bundle), go_on_(std::move(go_on)) {}

void AuxWriter::begin_chunk(Output& out, std::size_t number, const Queue& queue, std::uint64_t offset,
                            std::uint64_t size, std::uint64_t reference) {
  record_offsets_.push_back(out.size());
  RecordBytes record(AUXTRACE, 0);
  record.add(size, offset, reference, static_cast<std::uint32_t>(number));
  record.id(queue.cpu == trace::kNoId ? queue.tid : trace::kNoId).id(queue.cpu).add(std::uint32_t{0});
  out.put(record.bytes());
}

std::vector<std::uint8_t> AuxWriter::index() const {
  std::vector<std::uint8_t> bytes;
  base::append_le(bytes, std::uint64_t{record_offsets_.size()});
  for (const std::uint64_t offset : record_offsets_) {
    base::append_le(bytes, offset);
    base::append_le(bytes, kRecordBytes);
  }
  return bytes;
}

}  // namespace ptkit::formats::perf
