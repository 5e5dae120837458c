#include "time/span.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "packet/decoder.h"
#include "time/track.h"
#include "trace/branch_record.h"

namespace ptkit::time {
namespace {

constexpr std::uint64_t kFirstLook = std::uint64_t{64} << 10U;  // bytes; it grows by this factor:
constexpr std::uint64_t kGrowth = 4;

// The first TSC packet of `bytes`, from the first PSB on.
std::optional<std::uint64_t> first_tsc(base::Bytes bytes, const packet::Errata& errata) noexcept {
  packet::PacketDecoder decoder(bytes, {}, errata);
  packet::Packet packet;
  auto status = decoder.sync_forward(0);
  while (status == base::Status::OK) {
    status = decoder.next(packet);
    if (status == base::Status::OK && packet.kind == packet::PacketKind::TSC) return packet.payload;
    if (status == base::Status::END_OF_STREAM) break;
    if (status != base::Status::OK) status = decoder.sync_forward();
  }
  return std::nullopt;
}

// Where the last PSB+ begins that has a TSC packet before the next PSB.
std::optional<std::uint64_t> last_timed_psb(base::Bytes bytes, const packet::Errata& errata) {
  std::vector<std::uint64_t> places;
  for (std::uint64_t at = packet::find_psb(bytes, 0); at < bytes.size();
       at = packet::find_psb(bytes, at + 1)) {
    places.push_back(at);
  }
  std::uint64_t end = bytes.size();
  for (auto place = places.rbegin(); place != places.rend(); end = *place++) {
    if (first_tsc(bytes.subspan(*place, end - *place), errata)) return *place;
  }
  return std::nullopt;
}

std::uint64_t last_time(base::Bytes tail, std::uint64_t begin, const trace::Stream& stream,
                        const trace::Clock& clock, const packet::Errata& errata) {
  std::vector<trace::KnownLoss> losses;
  for (trace::KnownLoss loss : stream.losses) {
    if (loss.offset < begin) continue;
    loss.offset -= begin;
    losses.push_back(loss);
  }
  TimeTrack track(tail, clock, errata, losses);
  const std::uint64_t end = tail.size() - 1;
  return track.at(end, end).tsc;
}

std::optional<TimeSpan> span_of_packets(const trace::Stream& stream, const trace::Clock& clock,
                                        const packet::Errata& errata) {
  const std::uint64_t size = stream.data.size();
  const std::uint64_t most = std::min(size, kSpanSearchBytes);
  std::optional<std::uint64_t> first;
  for (std::uint64_t look = std::min(most, kFirstLook);; look = std::min(most, look * kGrowth)) {
    first = first_tsc(stream.data.part(0, look), errata);
    if (first || look == most) break;
  }
  if (!first) return std::nullopt;
  for (std::uint64_t look = std::min(most, kFirstLook);; look = std::min(most, look * kGrowth)) {
    const base::Bytes tail = stream.data.part(size - look, size);
    if (const auto psb = last_timed_psb(tail, errata)) {
      const std::uint64_t last = last_time(tail.subspan(*psb), size - look + *psb, stream, clock, errata);
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

}  // namespace ptkit::time
