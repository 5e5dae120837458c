#include "formats/perf_event/record.h"

#include <algorithm>

namespace ptkit::formats::perf {

namespace {

constexpr std::size_t kLeastAttrBytes = 64;     // PERF_ATTR_SIZE_VER0
constexpr std::size_t kAuxtraceBodyBytes = 40;  // size, offset, reference, idx, tid, cpu, reserved

// The number of bytes after a record, by the record. An implausible number is larger than the file.
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
  if (bytes.size() < kLeastAttrBytes) return std::nullopt;
  const std::size_t size = base::load_le<4>(bytes.data() + 4);
  Fields fields(bytes.first(std::min(bytes.size(), std::max(size, kLeastAttrBytes))));
  Attr attr;
  attr.type = fields.u32();
  fields.skip(4);
  attr.config = fields.u64();
  attr.period = fields.u64();
  attr.sample_type = fields.u64();
  attr.read_format = fields.u64();
  attr.flags = fields.u64();
  fields.skip(24);  // wakeup_events, bp_type, config1, config2
  attr.branch_type = fields.u64();
  attr.user_regs = fields.u64();
  fields.skip(8);  // sample_stack_user, clockid
  attr.interrupt_regs = fields.u64();
  return attr;
}

// IDs identify attributes only if all attributes have the ID at the same position.
Trailers::Trailers(std::span<const Attr> attrs) : attrs_(attrs) {
  if (attrs.size() < 2) return;
  for (const Attr& attr : attrs) {
    for (const std::uint64_t id : attr.ids) by_id_.try_emplace(id, &attr);
  }
  by_identifier_ = std::ranges::all_of(attrs, [](const Attr& attr) { return attr.has(SAMPLE_IDENTIFIER); });
  const auto id_offset = [](const Attr& attr) -> std::optional<std::size_t> {
    if (attr.has(SAMPLE_IDENTIFIER)) return 0;
    if (!attr.has(SAMPLE_ID)) return std::nullopt;
    std::size_t at = 0;
    for (const unsigned bit : {SAMPLE_IP, SAMPLE_TID, SAMPLE_TIME, SAMPLE_ADDR})
      at += attr.has(bit) ? 8U : 0U;
    return at;
  };
  id_in_sample_ = id_offset(attrs.front());
  for (const Attr& attr : attrs) {
    if (id_offset(attr) != id_in_sample_) id_in_sample_.reset();
  }
}

const Attr* Trailers::of_id(base::Bytes body, std::size_t at) const {
  if (at <= body.size() && body.size() - at >= 8) {
    const auto found = by_id_.find(base::load_le<8>(body.data() + at));
    if (found != by_id_.end()) return found->second;
  }
  return &attrs_.front();
}

const Attr* Trailers::of_sample(base::Bytes body) const {
  if (attrs_.empty()) return nullptr;
  return id_in_sample_ ? of_id(body, *id_in_sample_) : &attrs_.front();
}

std::optional<Trailer> Trailers::read(const Record& record) const {
  if (attrs_.empty()) return Trailer{};
  const base::Bytes body = record.body;
  const Attr* attr = by_identifier_ && body.size() >= 8 ? of_id(body, body.size() - 8) : &attrs_.front();
  if (!attr->flag(kSampleIdAll)) return Trailer{};
  Trailer out;
  for (const unsigned bit :
       {SAMPLE_TID, SAMPLE_TIME, SAMPLE_ID, SAMPLE_STREAM_ID, SAMPLE_CPU, SAMPLE_IDENTIFIER}) {
    if (attr->has(bit)) out.bytes += 8;
  }
  if (out.bytes > record.body.size()) return std::nullopt;
  Fields fields(record.body, record.body.size() - out.bytes);
  if (attr->has(SAMPLE_TID)) {
    out.pid = fields.id();
    out.tid = fields.id();
  }
  if (attr->has(SAMPLE_TIME)) {
    out.time = fields.u64();
    out.time_known = true;
  }
  if (attr->has(SAMPLE_ID)) out.id = fields.u64();
  if (attr->has(SAMPLE_STREAM_ID)) fields.skip(8);
  if (attr->has(SAMPLE_CPU)) {
    out.cpu = fields.id();
    fields.skip(4);
  }
  if (attr->has(SAMPLE_IDENTIFIER)) out.id = fields.u64();
  return out;
}

Walked walk(base::Bytes bytes, std::uint64_t offset, bool is_pipe,
            const std::function<bool(const Record&)>& callback) {
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
    const std::size_t remaining = bytes.size() - result.end - size;
    // A truncated payload is used as far as it goes: the record is the last one.
    record.payload = bytes.subspan(result.end + size,
                                   static_cast<std::size_t>(std::min<std::uint64_t>(payload, remaining)));
    const bool goes_on = callback(record);
    if (payload > remaining) break;
    result.end += size + static_cast<std::size_t>(payload);
    if (!goes_on) break;
  }
  return result;
}

}  // namespace ptkit::formats::perf
