#include "formats/perf_write_trace.h"

#include <algorithm>
#include <array>
#include <map>

#include "packet/encoder.h"
#include "packet/windows.h"

namespace ptkit::formats::perf {

namespace {

constexpr std::size_t kPieceBytes = std::size_t{8} << 20U;  // a multiple of 8: only the last one is padded
constexpr std::size_t kPadding = 8;
constexpr std::size_t kStepBytes = std::size_t{1} << 20U;  // between looks for whether to go on
// Behind a loss perf's decoder goes on as if nothing were missing, unless it finds an OVF; so one is put into
// the padding, behind more zeros than are left of any packet that was cut. By an OVF tracing is off for perf,
// and the address in a PSB+ does not change that (it would pass over interrupts then): a TIP.PGE does.
constexpr std::array<std::uint8_t, 2> kOverflow{0x02, 0xf3};
constexpr std::uint64_t kWholeIp = 6;     // IPBytes
constexpr std::uint64_t kLeastLost = 32;  // of which offsets tell: fewer would be the padding
constexpr std::uint64_t kMostLost = std::uint64_t{1} << 48U;

std::vector<std::uint8_t> padding_behind(std::size_t size, bool cut, std::optional<std::uint64_t> ip) {
  std::vector<std::uint8_t> told;
  if (cut) told.assign(kOverflow.begin(), kOverflow.end());
  if (cut && ip) {
    const packet::Packet on{.payload = *ip, .payload2 = kWholeIp, .kind = packet::PacketKind::TIP_PGE};
    static_cast<void>(packet::encode(on, told));
  }
  std::vector<std::uint8_t> padding(cut ? kLossZeros : 0);
  while ((size + padding.size() + told.size()) % kPadding != 0) padding.push_back(0);
  padding.insert(padding.end(), told.begin(), told.end());
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

// perf takes no TSC packet for a time if nobody knows what it is near to, and crashes then: where nothing
// else tells a time, packets do.
std::uint64_t near_tsc(const trace::TraceBundle& bundle) {
  std::uint64_t tsc = last_known_tsc(bundle);
  Passage passage(bundle);
  for (std::size_t i = 0; tsc == 0 && i < bundle.streams.size(); ++i) {
    const std::size_t size = bundle.streams[i].data.size();
    tsc = last_tsc(passage.part(i, size - std::min(size, kSearchedForTsc), size));
  }
  return std::max<std::uint64_t>(tsc, 1);
}

// By place, those at one place as one.
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

// `hole`: between two pieces whose offsets tell it.
std::uint64_t flags_of(const trace::KnownLoss& loss, bool hole) {
  return hole && loss.cause == base::Status::RING_WRAPPED ? 0 : lost_flags(loss);
}

}  // namespace

Trace::Trace(const trace::TraceBundle& bundle, const std::vector<Queue>& queues,
             const std::vector<StreamPackets>& packets, GoOn go_on)
    : WrittenTrace(bundle, std::move(go_on)),
      queues_(queues),
      packets_(packets),
      reference_(near_tsc(bundle)) {
  unsynced_.resize(bundle.streams.size());
  // A thread's streams go on in one buffer, one behind the other.
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint64_t> offsets;
  Passage passage(bundle);
  for (std::size_t i = 0; i < bundle.streams.size(); ++i) {
    const Queue& queue = queues[i];
    cut_stream(i, passage, offsets[{queue.cpu, queue.cpu == trace::kNoId ? queue.tid : trace::kNoId}]);
  }
}

void Trace::cut_stream(std::size_t number, Passage& passage, std::uint64_t& offset) {
  const trace::Stream& stream = bundle_.streams[number];
  std::size_t begin = 0;
  for (const trace::KnownLoss& loss : joined_losses(stream)) {
    const std::size_t end = loss.offset;
    add_pieces(number, begin, end, offset);
    Piece& last = pieces_.back();
    const bool is_told = loss.lost_bytes >= kLeastLost && loss.lost_bytes <= kMostLost;
    const bool hole = is_told && end != 0 && end != stream.data.size();
    last.lost_flags |= flags_of(loss, hole);
    last.cut = true;
    auto& unsynced = unsynced_[number];
    if (unsynced.empty() || end >= unsynced.back().end) {
      const std::size_t psb = packet::find_psb(passage.data(number), end);
      const std::size_t behind = std::min(stream.data.size() - psb, kMostPsbPlus);
      unsynced.push_back({end, psb, ip_of_psb(passage.part(number, psb, psb + behind))});
    }
    if (hole) offset += loss.lost_bytes;
    begin = end;
  }
  add_pieces(number, begin, stream.data.size(), offset);
  constexpr std::uint64_t kApart = 64;
  offset = (offset + kApart) / kApart * kApart + kApart;
}

// At least one, so that a loss at the beginning has its place.
void Trace::add_pieces(std::size_t number, std::size_t begin, std::size_t end, std::uint64_t& offset) {
  do {
    Piece piece{number, begin, begin + std::min(end - begin, kPieceBytes), offset};
    offset += piece.end - piece.begin;
    begin = piece.end;
    pieces_.push_back(piece);
  } while (begin < end);
}

bool Trace::write_notes(Records& records) const {
  std::uint64_t tsc = 0;
  std::size_t stream = ~std::size_t{0};
  Passage passage(bundle_);
  for (const Piece& piece : pieces_) {
    if (!is_to_go_on()) return false;
    if (piece.stream != stream) tsc = 0;
    stream = piece.stream;
    const std::size_t begin = piece.end - std::min(piece.end - piece.begin, kSearchedForTsc);
    const std::uint64_t found = last_tsc(passage.part(stream, begin, piece.end));
    if (found != 0) tsc = found | (reference_ & (std::uint64_t{0xff} << 56U));
    const Queue& queue = queues_[stream];
    records.aux({queue.pid, queue.tid, queue.cpu, tsc}, piece.offset, piece.end - piece.begin,
                piece.lost_flags);
  }
  return true;
}

bool Trace::write(Output& out) {
  Passage passage(bundle_);
  for (const Piece& piece : pieces_) {
    if (piece.begin != piece.end && !write_piece(out, piece, passage)) return false;
  }
  return true;
}

bool Trace::write_piece(Output& out, const Piece& piece, Passage& passage) {
  const std::size_t size = piece.end - piece.begin;
  const std::vector<Unsynced>& unsynced = unsynced_[piece.stream];
  const auto behind = std::ranges::lower_bound(unsynced, piece.end, {}, &Unsynced::end);
  const auto ip = behind != unsynced.end() && behind->begin <= piece.end ? behind->ip : std::nullopt;
  const std::vector<std::uint8_t> padding = padding_behind(size, piece.cut, ip);
  begin_piece(out, piece.stream, queues_[piece.stream], piece.offset, size + padding.size(), reference_);
  for (std::size_t at = piece.begin; at < piece.end; at += kStepBytes) {
    if (!is_to_go_on()) return false;
    put_trace(out, piece.stream, at, passage.part(piece.stream, at, std::min(at + kStepBytes, piece.end)));
    if (out.failed()) break;
  }
  out.put(padding);
  return true;
}

// Behind a loss nobody can read packets before the next PSB; perf would try.
void Trace::put_trace(Output& out, std::size_t stream, std::size_t begin, base::Bytes bytes) const {
  const std::size_t end = begin + bytes.size();
  const auto& places = packets_[stream].non_root;
  const auto& unsynced = unsynced_[stream];
  if (places.empty() && unsynced.empty()) return out.put(bytes);
  std::vector<std::uint8_t> copy(bytes.begin(), bytes.end());
  for (auto place = std::ranges::lower_bound(places, begin); place != places.end() && *place < end; ++place)
    copy[*place - begin] &= 0xfe;
  auto range = std::ranges::upper_bound(unsynced, begin, {}, &Unsynced::end);
  for (; range != unsynced.end() && range->begin < end; ++range) {
    for (std::size_t at = std::max(range->begin, begin); at < std::min(range->end, end); ++at)
      copy[at - begin] = 0;
  }
  out.put(copy);
}

}  // namespace ptkit::formats::perf
