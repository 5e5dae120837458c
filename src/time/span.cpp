#include "time/span.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "packet/decoder.h"
#include "packet/scan.h"
#include "time/track.h"
#include "trace/branch_record.h"

namespace ptkit::time {
namespace {

// First size of the search range in bytes, which grows by kGrowth.
constexpr std::uint64_t kFirstSize = std::uint64_t{64} << 10U;
constexpr std::uint64_t kGrowth = 4;
constexpr std::uint64_t kPlainBytes = 1024;
constexpr std::uint64_t kCountedBytes = std::uint64_t{32} << 10U;

using packet::PacketKind;

// The first TSC packet from the decoder's position on that begins before `limit`.
std::optional<std::uint64_t> next_tsc(packet::PacketDecoder& decoder, std::uint64_t limit) noexcept {
  packet::Packet packet;
  while (decoder.position() < limit) {
    const auto status = decoder.next(packet);
    if (status == base::Status::END_OF_STREAM) break;
    if (status != base::Status::OK && decoder.sync_forward() != base::Status::OK) break;
    if (status == base::Status::OK && packet.kind == PacketKind::TSC) return packet.payload;
  }
  return std::nullopt;
}

// The first TSC packet of `bytes`, from the first PSB on. Usually the first PSB+ has it. Otherwise packets
// are counted, which is much faster, until a TSC is among them.
std::optional<std::uint64_t> first_tsc(base::Bytes bytes, const packet::Errata& errata) noexcept {
  packet::PacketDecoder decoder(bytes, {}, errata);
  if (decoder.sync_forward(0) != base::Status::OK) return std::nullopt;
  if (const auto tsc = next_tsc(decoder, decoder.position() + kPlainBytes)) return tsc;
  packet::PacketCounter counter(bytes, true, errata);
  for (bool more = true; more;) {
    const packet::PacketCounter before = counter;
    more = counter.run(kCountedBytes);
    if (counter.counts().packets[static_cast<std::size_t>(PacketKind::TSC)] == 0) continue;
    decoder.set_state(before.state());
    return next_tsc(decoder, counter.position());
  }
  return std::nullopt;
}

// A row may be of the packet: it is outside of PSB+, and not about time alone.
bool has_row(const packet::Packet& packet) noexcept {
  if ((packet.flags & packet::Packet::IN_PSB) != 0) return false;
  switch (packet.kind) {
    case PacketKind::PAD:
    case PacketKind::PSB:
    case PacketKind::PSBEND:
    case PacketKind::TSC:
    case PacketKind::TMA:
    case PacketKind::MTC:
    case PacketKind::CYC:
    case PacketKind::CBR:
    case PacketKind::INVALID:
      return false;
    default:
      return true;
  }
}

// Offset of the last packet that has_row().
std::optional<std::uint64_t> last_row(base::Bytes bytes, const packet::Errata& errata) noexcept {
  packet::PacketDecoder decoder(bytes, {}, errata);
  packet::Packet packet;
  std::optional<std::uint64_t> found;
  for (;;) {
    const auto status = decoder.next(packet);
    if (status == base::Status::END_OF_STREAM) return found;
    if (status != base::Status::OK && decoder.sync_forward() != base::Status::OK) return found;
    if (status == base::Status::OK && has_row(packet)) found = packet.offset;
  }
}

// Offsets by which the last time is found.
struct Tail {
  std::uint64_t psb = 0;  // PSB+ with a TSC packet before the next PSB
  std::uint64_t row = 0;  // last packet that has_row() from there on; else the last byte
};

// Nullopt: no PSB+ has a time, or packets with rows are only before the first one that has.
std::optional<Tail> last_rows(base::Bytes bytes, const packet::Errata& errata, bool is_whole) {
  std::vector<std::uint64_t> psbs;
  for (std::uint64_t at = packet::find_psb(bytes, 0); at < bytes.size();
       at = packet::find_psb(bytes, at + 1)) {
    psbs.push_back(at);
  }
  std::optional<std::uint64_t> row;
  std::optional<std::uint64_t> timed;
  std::uint64_t end = bytes.size();
  for (auto psb = psbs.rbegin(); psb != psbs.rend(); end = *psb++) {
    const base::Bytes part = bytes.subspan(*psb, end - *psb);
    if (!row) {
      if (const auto found = last_row(part, errata)) row = *psb + *found;
    }
    if (!first_tsc(part, errata)) continue;
    if (row) return Tail{*psb, *row};
    if (!timed) timed = *psb;
  }
  if (timed && is_whole) return Tail{*timed, bytes.size() - 1};
  return std::nullopt;
}

// Of the packet at an offset of `tail`, which begins at `begin`; if that is not known, of the last packet.
std::uint64_t last_time(base::Bytes tail, std::uint64_t begin, std::uint64_t row, const trace::Stream& stream,
                        const trace::Clock& clock, const packet::Errata& errata) {
  std::vector<trace::KnownLoss> losses;
  for (trace::KnownLoss loss : stream.losses) {
    if (loss.offset < begin) continue;
    loss.offset -= begin;
    losses.push_back(loss);
  }
  TimeTrack track(tail, clock, errata, losses);
  if (const auto time = track.at(row, row); time.known) return time.tsc;
  const std::uint64_t end = tail.size() - 1;
  return track.at(end, end).tsc;
}

std::optional<TimeSpan> span_of_packets(const trace::Stream& stream, const trace::Clock& clock,
                                        const packet::Errata& errata) {
  const std::uint64_t size = stream.data.size();
  const std::uint64_t most = std::min(size, kSpanSearchBytes);
  std::optional<std::uint64_t> first;
  for (std::uint64_t look = std::min(most, kFirstSize);; look = std::min(most, look * kGrowth)) {
    first = first_tsc(stream.data.part(0, look), errata);
    if (first || look == most) break;
  }
  if (!first) return std::nullopt;
  for (std::uint64_t look = std::min(most, kFirstSize);; look = std::min(most, look * kGrowth)) {
    const base::Bytes tail = stream.data.part(size - look, size);
    if (const auto found = last_rows(tail, errata, look == most)) {
      const auto [psb, row] = *found;
      const std::uint64_t last =
          last_time(tail.subspan(psb), size - look + psb, row - psb, stream, clock, errata);
      return TimeSpan{*first, std::max(*first, last)};
    }
    if (look == most) return std::nullopt;
  }
}

std::optional<TimeSpan> span_of_records(const trace::Stream& stream) {
  constexpr std::size_t kSize = sizeof(trace::BranchRecord);
  const std::uint64_t count = stream.data.size() / kSize;
  const std::uint64_t most = std::min(count, kSpanSearchBytes / kSize);
  const auto time_of = [&](std::uint64_t index) {
    trace::BranchRecord record;
    std::memcpy(&record, stream.data.part(index * kSize, (index + 1) * kSize).data(), kSize);
    return record.tsc;
  };
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i < most && first == 0; ++i) first = time_of(i);
  for (std::uint64_t i = 0; i < most && last == 0; ++i) last = time_of(count - 1 - i);
  if (first == 0 || last == 0) return std::nullopt;
  return TimeSpan{first, std::max(first, last)};
}

}  // namespace

std::optional<TimeSpan> span_of(const trace::Stream& stream, const trace::Clock& clock,
                                const packet::Errata& errata) {
  if (stream.kind == trace::StreamKind::BRANCH_RECORDS) return span_of_records(stream);
  return span_of_packets(stream, clock, errata);
}

bool has_tsc(base::Bytes stream, const packet::Errata& errata) noexcept {
  return first_tsc(stream, errata).has_value();
}

}  // namespace ptkit::time
