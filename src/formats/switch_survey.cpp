#include "formats/switch_survey.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "packet/decoder.h"
#include "packet/windows.h"
#include "time/track.h"

namespace ptkit::formats {

namespace {

using base::Status;
using packet::Packet;
using packet::PacketKind;

constexpr std::uint32_t kNoBound = std::numeric_limits<std::uint32_t>::max();

bool tells_time(PacketKind kind) noexcept {
  return kind == PacketKind::TSC || kind == PacketKind::MTC || kind == PacketKind::TMA ||
         kind == PacketKind::CYC;
}

class Surveyor {
 public:
  Surveyor(const trace::Stream& stream, const trace::Clock& clock, const packet::Errata& errata,
           const SurveyLimits& limits)
      : stream_(stream), clock_(clock), errata_(errata), limits_(limits) {
    out_.places.assign(stream.switches.size(), kNeverPlaced);
  }

  std::optional<SwitchSurvey> run() {
    packet::PsbWindows windows(stream_.data);
    for (base::Bytes bytes = windows.next(); !bytes.empty(); bytes = windows.next()) {
      if (!limits_.go_on()) return std::nullopt;
      survey(windows.begin(), bytes);
      if (out_.changes.size() > limits_.changes) return std::nullopt;
    }
    bound_times();
    guess_times();
    return std::move(out_);
  }

 private:
  // The PSB that begins the next window needs nothing of this one, and packets do not reach across a loss.
  void survey(std::uint64_t begin, base::Bytes bytes) {
    window_ = begin;
    bytes_ = bytes;
    std::vector<trace::KnownLoss> losses;
    const std::uint64_t end = begin + bytes.size();
    is_last_ = end == stream_.data.size();
    for (; next_loss_ < stream_.losses.size() && stream_.losses[next_loss_].offset <= end; ++next_loss_) {
      losses.push_back(stream_.losses[next_loss_]);
      losses.back().offset -= begin;
    }
    track_.emplace(bytes, clock_, errata_, losses);
    quiet_until_ = 0;
    std::uint64_t from = 0;
    for (const trace::KnownLoss& loss : losses) {
      walk(from, loss.offset);
      forget();
      from = loss.offset;
    }
    walk(from, bytes.size());
    if (is_last_) forget();
  }

  void walk(std::uint64_t begin, std::uint64_t end) {
    packet::PacketDecoder packets(bytes_.first(static_cast<std::size_t>(end)), {}, errata_);
    Status status = packets.sync_forward(begin);
    Packet packet;
    last_ = begin;
    while (status == Status::OK && out_.changes.size() <= limits_.changes) {
      status = packets.next(packet);
      if (status == Status::END_OF_STREAM) break;
      if (status == Status::OK) {
        last_ = packet.offset;
        take(packet);
        continue;
      }
      forget();
      status = packets.sync_forward();
    }
  }

  void take(const Packet& packet) {
    if (packet.kind == PacketKind::PAD) return;
    if (tells_time(packet.kind)) {
      time_seen_ = true;
      return;
    }
    // Bits and targets that come right behind a timing packet are older than it.
    if (std::exchange(time_seen_, false) && packet.offset >= quiet_until_) follow(packet.offset);
    switch (packet.kind) {
      case PacketKind::TIP_PGE:
        return come_on(packet.offset);
      case PacketKind::TIP_PGD:  // page tables that change while tracing is off have no PIP
        on_.reset();
        return change(packet.offset, 0);
      case PacketKind::PSB:  // a PIP that follows tells which there are,
      case PacketKind::OVF:  // or comes behind others that are lost
        on_.reset();
        return;
      case PacketKind::PIP:
        return take_tables(packet);
      default:
        return;
    }
  }

  [[nodiscard]] bool tables_unknown() const { return !out_.changes.empty() && out_.changes.back().cr3 == 0; }

  void come_on(std::uint64_t offset) {
    on_.reset();
    if (!tables_unknown()) return;
    const time::TimeRange now = track_->at(offset, offset);
    if (now.known && now.error != kNoBound) on_ = now.tsc + now.error;
  }

  void take_tables(const Packet& packet) {
    const std::size_t number = out_.changes.size();
    const bool of_guest = (packet.flags & Packet::NR) != 0;
    change(packet.offset, of_guest ? 0 : packet.payload & trace::kCr3Address);
    if (on_ && number != out_.changes.size()) out_.again.push_back({number, *on_});
    on_.reset();
  }

  void follow(std::uint64_t offset) {
    if (next_ == stream_.switches.size()) return;
    time::TimeRange now = track_->at(offset, offset);
    if (!now.known) return;
    // What bounds the time is in the next window.
    if (now.error == kNoBound && !is_last_) now.error = 0;
    while (next_ < stream_.switches.size() && has_come(next_, now))
      out_.places[next_++] = window_ + offset + 1;
    if (next_ < stream_.switches.size())
      quiet_until_ = track_->quiet_until(offset, stream_.switches[next_].tsc);
  }

  // The middle of the interval is the best guess for who comes in; who goes out runs as long as that may be.
  [[nodiscard]] bool has_come(std::size_t number, const time::TimeRange& now) const {
    const trace::Switch& one = stream_.switches[number];
    const std::uint64_t guess = now.source == time::TimeSource::TSC ? now.tsc : now.tsc + now.error / 2;
    if (one.tid != trace::kNoId) return one.tsc <= guess;
    return one.tsc <= now.tsc ||
           (number + 1 < stream_.switches.size() && stream_.switches[number + 1].tsc <= guess);
  }

  void change(std::uint64_t offset, std::uint64_t cr3) {
    if (!out_.changes.empty() && out_.changes.back().cr3 == cr3) return;
    const time::TimeRange now = track_->at(offset, offset);
    if (now.known) out_.changes.push_back({window_ + offset, cr3, now.tsc, now.error, now.tsc});
  }

  // Nothing happened behind what came later. Where times end, the last switch is the last thing that is
  // known.
  void bound_times() {
    std::uint64_t latest = stream_.switches.empty() ? trace::kTscMax : stream_.switches.back().tsc;
    if (!out_.changes.empty()) latest = std::max(latest, out_.changes.back().tsc);
    for (std::size_t i = out_.changes.size(); i-- > 0;) {
      TableChange& one = out_.changes[i];
      one.error = std::min(one.error, latest - std::min(latest, one.tsc));
      latest = one.tsc + one.error;
    }
  }

  // Changes that no time tells apart are taken to be spread over the interval as over the stream.
  void guess_times() {
    std::vector<TableChange>& all = out_.changes;
    for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
      const TableChange& first = all[begin];
      const auto same = [&first](const TableChange& one) {
        return one.tsc == first.tsc && one.error == first.error;
      };
      while (end < all.size() && same(all[end])) ++end;
      const std::uint64_t from = begin == 0 ? first.offset : all[begin - 1].offset;
      const std::uint64_t to = end == all.size() ? all[end - 1].offset + 1 : all[end].offset;
      for (std::size_t i = begin; i < end; ++i) {
        const double part = static_cast<double>(all[i].offset - from) / static_cast<double>(to - from);
        const double ticks = end - begin == 1 ? 0.5 : part;
        all[i].guess = first.tsc + static_cast<std::uint64_t>(ticks * static_cast<double>(first.error));
      }
    }
    for (std::size_t i = 1; i < all.size(); ++i) all[i].guess = std::max(all[i].guess, all[i - 1].guess);
  }

  // From here on nobody knows which page tables there are.
  void forget() {
    change(last_, 0);
    on_.reset();
    time_seen_ = false;
  }

  const trace::Stream& stream_;
  const trace::Clock& clock_;
  const packet::Errata& errata_;
  const SurveyLimits& limits_;
  SwitchSurvey out_;
  // Of the window: where it begins in the stream. Offsets are within it, but for those that go out.
  std::uint64_t window_ = 0;
  std::size_t next_loss_ = 0;
  base::Bytes bytes_;
  bool is_last_ = false;
  std::optional<time::TimeTrack> track_;
  std::uint64_t last_ = 0;           // packet
  std::optional<std::uint64_t> on_;  // when tracing came on, if no CR3 was written or told since then
  std::size_t next_ = 0;             // switch
  std::uint64_t quiet_until_ = 0;
  bool time_seen_ = false;
};

}  // namespace

std::optional<SwitchSurvey> survey_switches(const trace::Stream& stream,
                                            const trace::Configuration& configuration,
                                            const SurveyLimits& limits) {
  const packet::Errata errata = packet::errata_for(configuration.cpu);
  return Surveyor(stream, configuration.clock, errata, limits).run();
}

}  // namespace ptkit::formats
