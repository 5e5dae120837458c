#include "formats/perf_export/aux_trace.h"

#include <algorithm>
#include <array>
#include <map>

#include "packet/encoder.h"
#include "packet/windows.h"

namespace ptkit::formats::perf {

namespace {

constexpr std::size_t kChunkBytes = std::size_t{8} << 20U;  // the least, if trace follows
constexpr std::size_t kAuxPadding = 8;
constexpr std::size_t kStepBytes = std::size_t{1} << 20U;  // bytes between two calls of go_on
// After a loss perf's decoder continues as if nothing were missing, unless it finds an OVF. The padding
// therefore holds an OVF, after more zeros than the rest of any cut packet. After an OVF perf takes tracing
// as disabled. The IP of a PSB+ does not enable it (perf would miss interrupts then), so that a TIP.PGE
// follows the OVF.
constexpr std::array<std::uint8_t, 2> kOverflow{0x02, 0xf3};
constexpr std::uint64_t kWholeIp = 6;     // IPBytes
constexpr std::uint64_t kLeastLost = 32;  // least hole in AUX offsets: a smaller one would look like padding
constexpr std::uint64_t kMostLost = std::uint64_t{1} << 48U;

std::vector<std::uint8_t> padding_after(std::size_t size, bool cut, std::optional<std::uint64_t> ip) {
  std::vector<std::uint8_t> packets;
  if (cut) packets.assign(kOverflow.begin(), kOverflow.end());
  if (cut && ip) {
    const packet::Packet on{.payload = *ip, .payload2 = kWholeIp, .kind = packet::PacketKind::TIP_PGE};
    static_cast<void>(packet::encode(on, packets));
  }
  std::vector<std::uint8_t> padding(cut ? kLossZeros : 0);
  while ((size + padding.size() + packets.size()) % kAuxPadding != 0) padding.push_back(0);
  padding.insert(padding.end(), packets.begin(), packets.end());
  return padding;
}

std::uint64_t last_known_tsc(const trace::TraceBundle& bundle) {
  std::uint64_t tsc = 0;
  for (const trace::Sideband& record : bundle.sideband) tsc = std::max(tsc, record.tsc);
  for (const trace::Stream& stream : bundle.streams) {
    if (!stream.switches.empty()) tsc = std::max(tsc, stream.switches.back().tsc);
  }
  return tsc;
}

// perf needs a reference time near the trace. Without one it ignores the times of TSC packets, and crashes.
// If no record of the bundle has a time, the last TSC packet gives it.
std::uint64_t near_tsc(const trace::TraceBundle& bundle) {
  std::uint64_t tsc = last_known_tsc(bundle);
  ForwardReader reader(bundle);
  for (std::size_t i = 0; tsc == 0 && i < bundle.streams.size(); ++i) {
    const std::size_t size = bundle.streams[i].data.size();
    tsc = last_tsc(reader.part(i, size - std::min(size, kSearchedForTsc), size));
  }
  return std::max<std::uint64_t>(tsc, 1);
}

// Returns losses by offset. Losses at one offset are joined.
std::vector<trace::KnownLoss> joined_losses(const trace::Stream& stream) {
  std::vector<trace::KnownLoss> joined;
  std::uint64_t begin = 0;
  for (trace::KnownLoss loss : stream.losses) {
    loss.offset = begin = std::clamp<std::uint64_t>(loss.offset, begin, stream.data.size());
    if (joined.empty() || joined.back().offset != begin) {
      joined.push_back(loss);
    } else {
      joined.back().lost_bytes =
          std::min(joined.back().lost_bytes, kMostLost) + std::min(loss.lost_bytes, kMostLost);
    }
  }
  return joined;
}

// `hole`: the offsets of the AUXTRACE records before and after the loss show it.
std::uint64_t flags_of(const trace::KnownLoss& loss, bool hole) {
  return hole && loss.cause == base::Status::RING_WRAPPED ? 0 : lost_flags(loss);
}

}  // namespace

PtWriter::PtWriter(const trace::TraceBundle& bundle, const std::vector<Queue>& queues,
                   const std::vector<StreamPackets>& packets, GoOn go_on)
    : AuxWriter(bundle, std::move(go_on)), queues_(queues), packets_(packets), reference_(near_tsc(bundle)) {
  unsynced_.resize(bundle.streams.size());
  // A thread's streams are consecutive in one AUX buffer.
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint64_t> offsets;
  ForwardReader reader(bundle);
  for (std::size_t i = 0; i < bundle.streams.size(); ++i) {
    const Queue& queue = queues[i];
    split_stream(i, reader, offsets[{queue.cpu, queue.cpu == trace::kNoId ? queue.tid : trace::kNoId}]);
  }
}

void PtWriter::split_stream(std::size_t number, ForwardReader& reader, std::uint64_t& offset) {
  const trace::Stream& stream = bundle_.streams[number];
  std::size_t begin = 0;
  for (const trace::KnownLoss& loss : joined_losses(stream)) {
    const std::size_t end = loss.offset;
    add_chunks(number, begin, end, reader, offset);
    AuxChunk& last = chunks_.back();
    const bool size_known = loss.lost_bytes >= kLeastLost && loss.lost_bytes <= kMostLost;
    const bool hole = size_known && end != 0 && end != stream.data.size();
    last.lost_flags |= flags_of(loss, hole);
    last.cut = true;
    auto& unsynced = unsynced_[number];
    if (unsynced.empty() || end >= unsynced.back().end) {
      const std::size_t psb = packet::find_psb(reader.data(number), end);
      const std::size_t psb_plus = std::min(stream.data.size() - psb, kMostPsbPlus);
      unsynced.push_back({end, psb, ip_of_psb(reader.part(number, psb, psb + psb_plus))});
    }
    if (hole) offset += loss.lost_bytes;
    begin = end;
  }
  add_chunks(number, begin, stream.data.size(), reader, offset);
  constexpr std::uint64_t kApart = 64;
  offset = (offset + kApart) / kApart * kApart + kApart;
}

// Adds at least one chunk, which may be empty, so that a loss at the beginning has an AUX record. A chunk
// ends before a PSB: perf 6.1 takes a packet that continues in the next AUXTRACE record for a bad one.
void PtWriter::add_chunks(std::size_t number, std::size_t begin, std::size_t end, ForwardReader& reader,
                          std::uint64_t& offset) {
  do {
    const bool last = end - begin <= kChunkBytes;
    const std::size_t psb = last ? end : packet::find_psb(reader.data(number), begin + kChunkBytes, end);
    AuxChunk chunk{number, begin, psb, offset};
    offset += chunk.end - chunk.begin;
    begin = chunk.end;
    chunks_.push_back(chunk);
  } while (begin < end);
}

bool PtWriter::write_aux_records(Records& records) const {
  std::uint64_t tsc = 0;
  std::size_t stream = ~std::size_t{0};
  ForwardReader reader(bundle_);
  for (const AuxChunk& chunk : chunks_) {
    if (!is_to_go_on()) return false;
    if (chunk.stream != stream) tsc = 0;
    stream = chunk.stream;
    const std::size_t begin = chunk.end - std::min(chunk.end - chunk.begin, kSearchedForTsc);
    const std::uint64_t found = last_tsc(reader.part(stream, begin, chunk.end));
    if (found != 0) tsc = found | (reference_ & (std::uint64_t{0xff} << 56U));
    const Queue& queue = queues_[stream];
    records.aux({queue.pid, queue.tid, queue.cpu, tsc}, chunk.offset, chunk.end - chunk.begin,
                chunk.lost_flags);
  }
  return true;
}

bool PtWriter::write(Output& out) {
  ForwardReader reader(bundle_);
  for (const AuxChunk& chunk : chunks_) {
    if (chunk.begin != chunk.end && !write_chunk(out, chunk, reader)) return false;
  }
  return true;
}

bool PtWriter::write_chunk(Output& out, const AuxChunk& chunk, ForwardReader& reader) {
  const std::size_t size = chunk.end - chunk.begin;
  const std::vector<Unsynced>& unsynced = unsynced_[chunk.stream];
  const auto next = std::ranges::lower_bound(unsynced, chunk.end, {}, &Unsynced::end);
  const auto ip = next != unsynced.end() && next->begin <= chunk.end ? next->ip : std::nullopt;
  const std::vector<std::uint8_t> padding = padding_after(size, chunk.cut, ip);
  begin_chunk(out, chunk.stream, queues_[chunk.stream], chunk.offset, size + padding.size(), reference_);
  for (std::size_t at = chunk.begin; at < chunk.end; at += kStepBytes) {
    if (!is_to_go_on()) return false;
    put_trace(out, chunk.stream, at, reader.part(chunk.stream, at, std::min(at + kStepBytes, chunk.end)));
    if (out.failed()) break;
  }
  out.put(padding);
  return true;
}

// After a loss packets cannot be decoded before the next PSB. perf would try, so these bytes become zeros.
void PtWriter::put_trace(Output& out, std::size_t stream, std::size_t begin, base::Bytes bytes) const {
  const std::size_t end = begin + bytes.size();
  const auto& offsets = packets_[stream].non_root;
  const auto& unsynced = unsynced_[stream];
  if (offsets.empty() && unsynced.empty()) return out.put(bytes);
  std::vector<std::uint8_t> copy(bytes.begin(), bytes.end());
  for (auto offset = std::ranges::lower_bound(offsets, begin); offset != offsets.end() && *offset < end;
       ++offset)
    copy[*offset - begin] &= 0xfe;
  auto range = std::ranges::upper_bound(unsynced, begin, {}, &Unsynced::end);
  for (; range != unsynced.end() && range->begin < end; ++range) {
    for (std::size_t at = std::max(range->begin, begin); at < std::min(range->end, end); ++at)
      copy[at - begin] = 0;
  }
  out.put(copy);
}

}  // namespace ptkit::formats::perf
