#include "flow/index/index.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check_sum.h"
#include "base/fields.h"
#include "flow/decoder/state_bytes.h"

namespace ptkit::flow::index {
namespace {

constexpr std::uint64_t kMagic = 0x0058'4449'4B54'5054;  // "TPTKIDX"
constexpr std::uint32_t kFormat = 3;
constexpr std::uint32_t kMostStreams = 1U << 20U;

struct Header {
  std::uint64_t magic = kMagic;
  std::uint32_t format = kFormat;
  std::uint32_t decoder = flow::kStateVersion;
  std::uint64_t size = 0;  // of the file
  std::uint64_t identity = 0;
  Stamp stamp;
  std::uint32_t streams = 0;
  std::uint64_t table_size = 0;  // after the header: streams and their segments
  std::uint64_t table_sum = 0;
  std::uint64_t sums_size = 0;  // at the end of the file
  std::uint64_t sums_sum = 0;

  template <typename Fields>
  void describe(Fields& fields) {
    fields(magic);
    fields(format);
    fields(decoder);
    fields(size);
    fields(identity);
    fields(stamp.size);
    fields(stamp.time);
    fields(streams);
    fields(table_size);
    fields(table_sum);
    fields(sums_size);
    fields(sums_sum);
  }
};

template <typename Fields>
void describe(Fields& fields, Segment& segment) {
  fields(segment.psb);
  fields(segment.begin);
  fields(segment.ip);
  fields(segment.flags);
  fields(segment.space);
  fields(segment.pid);
  fields(segment.tid);
  fields(segment.instructions);
  fields(segment.blocks);
  fields(segment.order);
  fields(segment.troubles);
  fields(segment.tsc_least);
  fields(segment.tsc_most);
  fields(segment.bytes_sum);
  fields(segment.blob.offset);
  fields(segment.blob.checkpoint);
  fields(segment.blob.time);
  fields(segment.blob.lines);
  fields(segment.blob.sum);
}

template <typename Fields>
void describe(Fields& fields, StreamIndex& stream, std::uint64_t& count) {
  fields(stream.size);
  fields(stream.sample);
  fields(stream.timeless);
  fields(stream.rows.instructions);
  fields(stream.rows.blocks);
  fields(stream.rows.branches);
  fields(stream.rows.events);
  fields(stream.rows.errors);
  fields(stream.rows.gaps);
  fields(count);
}

std::vector<std::uint8_t> bytes_of(Header header) {
  base::FieldWriter fields;
  header.describe(fields);
  fields(base::check_sum(fields.bytes()));
  return std::move(fields.bytes());
}

std::uint64_t blob_size(const Segment::Blob& blob) noexcept {
  return std::uint64_t{blob.checkpoint} + blob.time + blob.lines;
}

void append(std::vector<std::uint8_t>& to, base::Bytes bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

// True if the rows before `next` are at least those before `segment`.
bool rows_ascend(const Segment& segment, const Segment& next) noexcept {
  return segment.instructions <= next.instructions && segment.blocks <= next.blocks &&
         segment.order <= next.order;
}

// True if offsets and rows ascend, and every segment but the first has a checkpoint, which decoding relies
// on.
bool in_order(const StreamIndex& stream) noexcept {
  if (stream.segments.empty() || stream.segments.front().begin != 0) return false;
  for (std::size_t i = 1; i < stream.segments.size(); ++i) {
    const Segment& segment = stream.segments[i];
    if (segment.begin <= stream.segments[i - 1].begin || segment.begin > stream.size) return false;
    if (segment.psb >= segment.begin || segment.psb == 0 || segment.blob.checkpoint == 0) return false;
    if (!rows_ascend(stream.segments[i - 1], segment)) return false;
  }
  return true;
}

}  // namespace

Index::Parts Index::parts(const Segment& segment) const noexcept {
  const base::Bytes file = file_.bytes();
  const Segment::Blob& blob = segment.blob;
  const std::uint64_t size = blob_size(blob);
  if (blob.offset > file.size() || size > file.size() - blob.offset) return {};
  const base::Bytes whole =
      file.subspan(static_cast<std::size_t>(blob.offset), static_cast<std::size_t>(size));
  if (base::check_sum(whole) != blob.sum) return {};
  return {true, whole.first(blob.checkpoint), whole.subspan(blob.checkpoint, blob.time),
          whole.last(blob.lines)};
}

base::Bytes Index::sums() const noexcept {
  const base::Bytes sums = file_.bytes().last(static_cast<std::size_t>(sums_size_));
  return base::check_sum(sums) == sums_sum_ ? sums : base::Bytes{};
}

bool Index::is_as_indexed(const trace::TraceBuffer& stream, const StreamIndex& index, std::size_t segment) {
  const std::uint64_t begin = index.segments[segment].begin;
  const std::uint64_t end = index.end(segment);
  if (end > stream.size()) return false;
  const base::Bytes part = stream.part(static_cast<std::size_t>(begin), static_cast<std::size_t>(end));
  return base::check_sum(part) == index.segments[segment].bytes_sum;
}

// The defect of the table, or empty.
std::string Index::read_streams(base::Bytes table, std::uint32_t count) {
  base::FieldReader fields(table);
  for (std::uint32_t i = 0; i < count; ++i) {
    StreamIndex stream;
    std::uint64_t segments = 0;
    describe(fields, stream, segments);
    for (; segments > 0 && fields.good(); --segments) describe(fields, stream.segments.emplace_back());
    if (!fields.good() || !in_order(stream)) return "is damaged";
    streams_.push_back(std::move(stream));
  }
  return fields.rest().empty() ? "" : "is damaged";
}

// Compares the streams with the indexed ones. `whole`: compares every byte.
std::string Index::compare(const trace::TraceBundle& bundle, bool whole) const {
  if (bundle.streams.size() != streams_.size()) return "is of another trace";
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    const trace::TraceBuffer& data = bundle.streams[i].data;
    if (streams_[i].size != data.size()) return "is of another trace";
    // Data that has to be unpacked has check sums of its own.
    if (!whole && data.has_source()) continue;
    if (streams_[i].sample != sample_of(data.bytes())) return "is of another trace";
    for (std::size_t segment = 0; whole && segment < streams_[i].segments.size(); ++segment) {
      if (!is_as_indexed(data, streams_[i], segment)) return "is of another trace";
    }
  }
  return "";
}

base::Result<std::shared_ptr<const Index>> Index::read(const trace::TraceBuffer& file,
                                                       const trace::TraceBundle& bundle, flow::Resync resync,
                                                       const Stamp& stamp) {
  const auto failed = [](std::string what) {
    return base::Failure{base::Status::BAD_FILE, 0, std::move(what)};
  };
  const std::size_t header_size = bytes_of({}).size();
  if (file.size() < header_size) return failed("is damaged");
  const base::Bytes bytes = file.bytes();
  base::FieldReader fields(bytes.first(header_size));
  Header header;
  header.describe(fields);
  if (header.magic != kMagic) return failed("is no index");
  if (header.format != kFormat || header.decoder != flow::kStateVersion)
    return failed("was made by another version of ptkit");
  std::uint64_t sum = 0;
  fields(sum);
  if (sum != base::check_sum(bytes.first(header_size - sizeof(sum))) || header.size != bytes.size() ||
      header.table_size > bytes.size() - header_size ||
      header.sums_size > bytes.size() - header_size - header.table_size || header.streams > kMostStreams) {
    return failed("is damaged");
  }
  const base::Bytes table = bytes.subspan(header_size, static_cast<std::size_t>(header.table_size));
  if (base::check_sum(table) != header.table_sum) return failed("is damaged");
  if (header.identity != identity_of(bundle, resync))
    return failed("was made with other images or settings, or is of another trace");
  std::shared_ptr<Index> index(new Index);
  index->file_ = file;
  index->sums_size_ = header.sums_size;
  index->sums_sum_ = header.sums_sum;
  std::string wrong = index->read_streams(table, header.streams);
  if (wrong.empty()) wrong = index->compare(bundle, !stamp.known() || !(stamp == header.stamp));
  if (!wrong.empty()) return failed(std::move(wrong));
  return std::shared_ptr<const Index>(std::move(index));
}

std::vector<std::uint8_t> to_bytes(std::vector<BuiltStream> streams, std::uint64_t identity,
                                   const Stamp& stamp) {
  base::FieldWriter table;
  std::vector<std::uint8_t> blobs;
  // Offsets in the file depend on the size of the table, which does not depend on them: two passes.
  for (int pass = 0; pass < 2; ++pass) {
    const std::uint64_t begin = bytes_of({}).size() + table.bytes().size();
    table = {};
    blobs.clear();
    for (BuiltStream& stream : streams) {
      std::uint64_t count = stream.index.segments.size();
      describe(table, stream.index, count);
      for (std::size_t i = 0; i < stream.index.segments.size(); ++i) {
        Segment& segment = stream.index.segments[i];
        const Content& content = stream.contents[i];
        const std::size_t at = blobs.size();
        append(blobs, content.checkpoint);
        append(blobs, content.time);
        append(blobs, content.lines);
        segment.blob = {begin + at, static_cast<std::uint32_t>(content.checkpoint.size()),
                        static_cast<std::uint32_t>(content.time.size()),
                        static_cast<std::uint32_t>(content.lines.size()),
                        base::check_sum(base::Bytes(blobs).subspan(at))};
        describe(table, segment);
      }
    }
  }
  Header header;
  header.identity = identity;
  header.stamp = stamp;
  header.streams = static_cast<std::uint32_t>(streams.size());
  header.table_size = table.bytes().size();
  header.table_sum = base::check_sum(table.bytes());
  header.size = bytes_of({}).size() + table.bytes().size() + blobs.size();
  std::vector<std::uint8_t> out = bytes_of(header);
  append(out, table.bytes());
  append(out, blobs);
  return out;
}

std::vector<std::uint8_t> with_sums(base::Bytes index, base::Bytes sums) {
  Header header;
  const std::size_t header_size = bytes_of(header).size();
  base::FieldReader fields(index.first(header_size));
  header.describe(fields);
  header.size += sums.size();
  header.sums_size = sums.size();
  header.sums_sum = base::check_sum(sums);
  std::vector<std::uint8_t> out = bytes_of(header);
  append(out, index.subspan(header_size));
  append(out, sums);
  return out;
}

}  // namespace ptkit::flow::index
