#include "formats/perf_record.h"

#include <algorithm>

namespace ptkit::formats::perf {

namespace {

constexpr std::size_t kAttrBytes = 64;          // PERF_ATTR_SIZE_VER0
constexpr std::size_t kAuxtraceBodyBytes = 40;  // size, offset, reference, idx, tid, cpu, reserved

// Bytes that stand behind a record, by what the record says; more than there are if it cannot be.
std::uint64_t payload_bytes(std::uint32_t type, base::Bytes body, bool is_pipe) {
  if (type == AUXTRACE)
    return body.size() < kAuxtraceBodyBytes ? ~std::uint64_t{0} : base::load_le<8>(body.data());
  if (type != HEADER_TRACING_DATA || !is_pipe) return 0;
  return body.size() < 4 ? ~std::uint64_t{0} : (base::load_le<4>(body.data()) + 7) & ~std::uint64_t{7};
}

}  // namespace

base::Bytes Fields::take_bytes(std::size_t count) noexcept {
  if (!has(count)) return {};
  const base::Bytes bytes = bytes_.subspan(at_, count);
  at_ += count;
  return bytes;
}

std::string Fields::text() noexcept {
  const base::Bytes rest = bytes_.subspan(at_);
  const auto end = std::find(rest.begin(), rest.end(), std::uint8_t{0});
  return {rest.begin(), end};
}

std::optional<Attr> parse_attr(base::Bytes bytes) {
  Fields fields(bytes);
  Attr attr;
  attr.type = fields.u32();
  fields.skip(4);  // its size
  attr.config = fields.u64();
  fields.skip(8);  // sample_period
  attr.sample_type = fields.u64();
  fields.skip(8);  // read_format
  attr.flags = fields.u64();
  if (bytes.size() < kAttrBytes || !fields.ok()) return std::nullopt;
  return attr;
}

Trailers::Trailers(std::span<const Attr> attrs)
    : attrs_(attrs), by_identifier_(!attrs.empty() && std::ranges::all_of(attrs, [](const Attr& attr) {
        return attr.has(kSampleIdentifier);
      })) {}

const Attr* Trailers::attr_of(base::Bytes body) const {
  if (attrs_.empty()) return nullptr;
  if (!by_identifier_ || attrs_.size() == 1 || body.size() < 8) return &attrs_.front();
  const std::uint64_t id = base::load_le<8>(body.data() + body.size() - 8);
  for (const Attr& attr : attrs_) {
    if (std::ranges::find(attr.ids, id) != attr.ids.end()) return &attr;
  }
  return &attrs_.front();
}

std::optional<Trailer> Trailers::read(const Record& record) const {
  const Attr* attr = attr_of(record.body);
  if (attr == nullptr || !attr->flag(kSampleIdAll)) return Trailer{};
  Trailer out;
  for (const unsigned bit :
       {kSampleTid, kSampleTime, kSampleId, kSampleStreamId, kSampleCpu, kSampleIdentifier}) {
    if (attr->has(bit)) out.bytes += 8;
  }
  if (out.bytes > record.body.size()) return std::nullopt;
  Fields fields(record.body, record.body.size() - out.bytes);
  if (attr->has(kSampleTid)) {
    out.pid = fields.id();
    out.tid = fields.id();
  }
  if (attr->has(kSampleTime)) {
    out.time = fields.u64();
    out.time_known = true;
  }
  if (attr->has(kSampleId)) fields.skip(8);
  if (attr->has(kSampleStreamId)) fields.skip(8);
  if (attr->has(kSampleCpu)) out.cpu = fields.id();
  return out;
}

Walked walk(base::Bytes bytes, std::uint64_t offset, bool is_pipe,
            const std::function<bool(const Record&)>& each) {
  Walked result;
  while (bytes.size() - result.end >= kRecordHeaderBytes) {
    const std::uint8_t* at = bytes.data() + result.end;
    Record record;
    record.offset = offset + result.end;
    record.type = static_cast<std::uint32_t>(base::load_le<4>(at));
    record.misc = static_cast<std::uint16_t>(base::load_le<2>(at + 4));
    const std::size_t size = base::load_le<2>(at + 6);
    result.damaged = size < kRecordHeaderBytes;
    if (result.damaged || size > bytes.size() - result.end) break;
    record.body = bytes.subspan(result.end + kRecordHeaderBytes, size - kRecordHeaderBytes);
    const std::uint64_t payload = payload_bytes(record.type, record.body, is_pipe);
    const std::size_t left = bytes.size() - result.end - size;
    // What was cut is taken as far as it goes: it is the last one then.
    record.payload =
        bytes.subspan(result.end + size, static_cast<std::size_t>(std::min<std::uint64_t>(payload, left)));
    const bool goes_on = each(record);
    if (payload > left) break;
    result.end += size + static_cast<std::size_t>(payload);
    if (!goes_on) break;
  }
  return result;
}

}  // namespace ptkit::formats::perf
