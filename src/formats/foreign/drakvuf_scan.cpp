#include "formats/foreign/drakvuf_scan.h"

#include <algorithm>
#include <array>

#include "packet/scan.h"

namespace ptkit::formats::drakvuf {

namespace {

constexpr std::array<std::uint8_t, 2> kPtwBytes{0x02, 0x32};  // 8 bytes of payload, no FUP
constexpr std::size_t kRows = 4096;

class Scan {
 public:
  explicit Scan(base::Bytes stream) : stream_(stream) {}

  ScanResult run() {
    packet::PacketDecoder decoder(stream_);
    bool more = sync(decoder);
    while (more) {
      packet::DecoderState state = decoder.state();
      const auto filled = packet::fill_packets(stream_, state, {}, columns(), kRows);
      decoder.set_state(state);
      for (std::size_t row = 0; row < filled.rows; ++row) add_row(row);
      if (filled.status == base::Status::END_OF_STREAM) break;
      if (filled.status != base::Status::OK) more = sync(decoder);
    }
    return std::move(found_);
  }

  // Searches bytes for annotations without decoding.
  void search(std::uint64_t from, std::uint64_t to) {
    auto at = stream_.begin() + static_cast<std::ptrdiff_t>(std::min(from, to));
    const auto end = stream_.begin() + static_cast<std::ptrdiff_t>(to);
    while ((at = std::search(at, end, kPtwBytes.begin(), kPtwBytes.end())) != end) {
      const auto offset = static_cast<std::uint64_t>(at - stream_.begin());
      if (to - offset < kPtwSize) return;
      const auto payload = base::load_le<8>(stream_.data() + offset + kPtwBytes.size());
      add(offset, payload);
      at += trace::is_drakvuf_mark(payload) ? static_cast<std::ptrdiff_t>(kPtwSize) : 1;
    }
  }

  [[nodiscard]] const ScanResult& found() const noexcept { return found_; }

 private:
  packet::PacketColumns columns() noexcept {
    packet::PacketColumns out;
    out.offset = offsets_.data();
    out.kind = kinds_.data();
    out.flags = flags_.data();
    out.payload = payloads_.data();
    return out;
  }

  void add_row(std::size_t row) {
    const auto kind = static_cast<packet::PacketKind>(kinds_[row]);
    if (kind == packet::PacketKind::PIP) found_.pips.push_back({offsets_[row], payloads_[row]});
    if (kind == packet::PacketKind::PTW && (flags_[row] & packet::Packet::IP_BIT) == 0)
      add(offsets_[row], payloads_[row]);
  }

  void add(std::uint64_t offset, std::uint64_t payload) {
    if (!trace::is_drakvuf_mark(payload)) return;
    if (trace::drakvuf_mark(payload) == trace::DrakvufMark::NO_DATA) ++found_.no_data;
    found_.annotations.push_back({offset, trace::drakvuf_mark(payload), static_cast<std::uint32_t>(payload)});
  }

  // Goes to the next PSB, at the beginning or after an error. False: no PSB follows.
  bool sync(packet::PacketDecoder& decoder) {
    const std::uint64_t from = decoder.position();
    const bool found = decoder.sync_forward() == base::Status::OK;
    search(from, decoder.position());
    return found;
  }

  base::Bytes stream_;
  ScanResult found_;
  std::array<std::uint64_t, kRows + packet::kPacketRowSlack> offsets_{};
  std::array<std::uint64_t, kRows + packet::kPacketRowSlack> payloads_{};
  std::array<std::uint8_t, kRows + packet::kPacketRowSlack> kinds_{};
  std::array<std::uint8_t, kRows + packet::kPacketRowSlack> flags_{};
};

}  // namespace

ScanResult scan(base::Bytes stream) { return Scan(stream).run(); }

bool has_annotation(base::Bytes bytes) {
  Scan scan(bytes);
  scan.search(0, bytes.size());
  return !scan.found().annotations.empty();
}

}  // namespace ptkit::formats::drakvuf
