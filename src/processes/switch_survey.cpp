#include "processes/switch_survey.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/addresses.h"
#include "packet/decoder.h"
#include "packet/windows.h"
#include "time/track.h"

namespace ptkit::processes {

namespace {

using base::Status;
using packet::Packet;
using packet::PacketKind;

constexpr std::uint32_t kNoBound = std::numeric_limits<std::uint32_t>::max();

bool is_timing(PacketKind kind) noexcept {
  return kind == PacketKind::TSC || kind == PacketKind::MTC || kind == PacketKind::TMA ||
         kind == PacketKind::CYC;
}

class Surveyor {
 public:
  Surveyor(const trace::Stream& stream, const trace::Clock& clock, const packet::Errata& errata,
           const std::vector<bool>& has_user_code, const SurveyLimits& limits)
      : stream_(stream), clock_(clock), errata_(errata), has_user_code_(has_user_code), limits_(limits) {
    out_.offsets.assign(stream.switches.size(), kNotInStream);
  }

  std::optional<SwitchSurvey> run() {
    packet::PsbWindows windows(stream_.data);
    for (base::Bytes bytes = windows.next(); !bytes.empty(); bytes = windows.next()) {
      if (!limits_.go_on()) return std::nullopt;
      survey(windows.begin(), bytes);
      if (out_.changes.size() > limits_.changes) return std::nullopt;
    }
    bound_times();
    estimate_times();
    return std::move(out_);
  }

 private:
  // Windows begin with a PSB, so they are independent. Packets do not continue across a loss.
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
    all_before_until_ = 0;
    std::uint64_t from = 0;
    for (const trace::KnownLoss& loss : losses) {
      walk(from, loss.offset);
      lose_cr3();
      from = loss.offset;
    }
    walk(from, bytes.size());
    if (is_last_) lose_cr3();
  }

  void walk(std::uint64_t begin, std::uint64_t end) {
    packet::PacketDecoder packets(bytes_.first(static_cast<std::size_t>(end)), {}, errata_);
    Status status = packets.sync_forward(begin);
    Packet packet;
    last_offset_ = begin;
    while (status == Status::OK && out_.changes.size() <= limits_.changes) {
      status = packets.next(packet);
      if (status == Status::END_OF_STREAM) break;
      if (status == Status::OK) {
        last_offset_ = packet.offset;
        on_packet(packet);
        continue;
      }
      lose_cr3();
      status = packets.sync_forward();
    }
  }

  void on_packet(const Packet& packet) {
    if (packet.kind == PacketKind::PAD) return;
    if (is_timing(packet.kind)) {
      time_seen_ = true;
      return;
    }
    // TNT and TIP packets right after a timing packet are older than the timing packet.
    if (std::exchange(time_seen_, false) && packet.offset >= all_before_until_) date_switches(packet.offset);
    if (packet::has_ip_payload(packet.kind)) set_level(packet);
    switch (packet.kind) {
      case PacketKind::TIP_PGE:
        return on_tracing_enabled(packet.offset);
      case PacketKind::TIP_PGD:  // writes to CR3 while tracing is off have no PIP
        enabled_by_.reset();
        return add_change(packet.offset, 0);
      case PacketKind::OVF:  // PIP packets may be lost
        leave_user_code(packet.offset);
        [[fallthrough]];
      case PacketKind::PSB:  // a PIP in PSB+ is no write to CR3
        enabled_by_.reset();
        return;
      case PacketKind::PIP:
        return on_pip(packet);
      default:
        return;
    }
  }

  // The IP of a FUP, and the target of a TIP or TIP.PGE, show the privilege level.
  void set_level(const Packet& packet) {
    const bool is_user = packet.kind != PacketKind::TIP_PGD && (packet.flags & Packet::IP_KNOWN) != 0 &&
                         packet.ip < base::kKernelHalf;
    if (!is_user) return leave_user_code(packet.offset);
    if (in_user_code_) return;
    in_user_code_ = true;
    contradicts_ = next_switch_ != 0 && !has_user_code_[next_switch_ - 1];
    user_code_ = {.begin = window_ + packet.offset, .tsc = track_->at(packet.offset, packet.offset).tsc};
  }

  void leave_user_code(std::uint64_t offset) {
    if (!std::exchange(in_user_code_, false) || !contradicts_ || out_.user_code.size() >= limits_.changes)
      return;
    const time::TimeRange now = track_->at(offset, offset);
    user_code_.end = window_ + offset;
    user_code_.until = now.known && now.error != kNoBound ? now.tsc + now.error : trace::kTscMax;
    out_.user_code.push_back(user_code_);
  }

  [[nodiscard]] bool cr3_unknown() const { return !out_.changes.empty() && out_.changes.back().cr3 == 0; }

  void on_tracing_enabled(std::uint64_t offset) {
    enabled_by_.reset();
    if (!cr3_unknown()) return;
    const time::TimeRange now = track_->at(offset, offset);
    if (now.known && now.error != kNoBound) enabled_by_ = now.tsc + now.error;
  }

  void on_pip(const Packet& packet) {
    const std::size_t number = out_.changes.size();
    const bool in_guest = (packet.flags & Packet::NR) != 0;
    const bool in_psb = (packet.flags & Packet::IN_PSB) != 0;
    add_change(packet.offset, in_guest ? 0 : packet.payload & trace::kCr3Address, in_psb);
    if (enabled_by_ && number != out_.changes.size()) out_.resumes.push_back({number, *enabled_by_});
    enabled_by_.reset();
  }

  void date_switches(std::uint64_t offset) {
    if (next_switch_ == stream_.switches.size()) return;
    time::TimeRange now = track_->at(offset, offset);
    if (!now.known) return;
    // The packet that bounds the time is in the next window.
    if (now.error == kNoBound && !is_last_) now.error = 0;
    const std::size_t first = next_switch_;
    while (next_switch_ < stream_.switches.size() && has_happened(next_switch_, now))
      out_.offsets[next_switch_++] = window_ + offset + 1;
    if (next_switch_ != first) contradicts_ = true;
    if (next_switch_ < stream_.switches.size())
      all_before_until_ = track_->all_before_until(offset, stream_.switches[next_switch_].tsc);
  }

  // A SWITCH IN is in the middle of the interval, the best estimate. A SWITCH OUT is as late as possible.
  [[nodiscard]] bool has_happened(std::size_t number, const time::TimeRange& now) const {
    const trace::Switch& one = stream_.switches[number];
    const std::uint64_t estimate = now.source == time::TimeSource::TSC ? now.tsc : now.tsc + now.error / 2;
    if (one.tid != trace::kNoId) return one.tsc <= estimate;
    return one.tsc <= now.tsc ||
           (number + 1 < stream_.switches.size() && stream_.switches[number + 1].tsc <= estimate);
  }

  void add_change(std::uint64_t offset, std::uint64_t cr3, bool in_psb = false) {
    if (!out_.changes.empty() && out_.changes.back().cr3 == cr3) return;
    const time::TimeRange now = track_->at(offset, offset);
    if (now.known) out_.changes.push_back({window_ + offset, cr3, now.tsc, now.error, now.tsc, in_psb});
  }

  // A change is not later than the next change. At the end of times, the last switch is the bound.
  void bound_times() {
    std::uint64_t latest = stream_.switches.empty() ? trace::kTscMax : stream_.switches.back().tsc;
    if (!out_.changes.empty()) latest = std::max(latest, out_.changes.back().tsc);
    for (std::size_t i = out_.changes.size(); i-- > 0;) {
      Cr3Change& one = out_.changes[i];
      one.error = std::min(one.error, latest - std::min(latest, one.tsc));
      latest = one.tsc + one.error;
    }
  }

  // Changes with equal times are spread over the interval in proportion to their offsets.
  void estimate_times() {
    std::vector<Cr3Change>& all = out_.changes;
    for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
      const Cr3Change& first = all[begin];
      const auto has_same_time = [&first](const Cr3Change& one) {
        return one.tsc == first.tsc && one.error == first.error;
      };
      while (end < all.size() && has_same_time(all[end])) ++end;
      const std::uint64_t from = begin == 0 ? first.offset : all[begin - 1].offset;
      const std::uint64_t to = end == all.size() ? all[end - 1].offset + 1 : all[end].offset;
      for (std::size_t i = begin; i < end; ++i) {
        const double share = static_cast<double>(all[i].offset - from) / static_cast<double>(to - from);
        const double ticks = end - begin == 1 ? 0.5 : share;
        all[i].estimate = first.tsc + static_cast<std::uint64_t>(ticks * static_cast<double>(first.error));
      }
    }
    for (std::size_t i = 1; i < all.size(); ++i)
      all[i].estimate = std::max(all[i].estimate, all[i - 1].estimate);
  }

  // CR3 is not known from here on.
  void lose_cr3() {
    leave_user_code(last_offset_);
    add_change(last_offset_, 0);
    enabled_by_.reset();
    time_seen_ = false;
  }

  const trace::Stream& stream_;
  const trace::Clock& clock_;
  const packet::Errata& errata_;
  const std::vector<bool>& has_user_code_;
  const SurveyLimits& limits_;
  SwitchSurvey out_;
  // Stream offset of the window. Other offsets are relative to it, except in `out_`.
  std::uint64_t window_ = 0;
  std::size_t next_loss_ = 0;
  base::Bytes bytes_;
  bool is_last_ = false;
  std::optional<time::TimeTrack> track_;
  std::uint64_t last_offset_ = 0;  // of the last packet
  // TSC at which tracing was on (TIP.PGE) at the latest. Empty if a PIP came since then.
  std::optional<std::uint64_t> enabled_by_;
  std::size_t next_switch_ = 0;  // index of the next switch
  std::uint64_t all_before_until_ = 0;
  bool time_seen_ = false;
  bool in_user_code_ = false;
  bool contradicts_ = false;  // see SwitchSurvey::user_code
  UserCode user_code_;        // if in_user_code_
};

}  // namespace

std::optional<SwitchSurvey> survey_switches(const trace::Stream& stream,
                                            const trace::Configuration& configuration,
                                            const std::vector<bool>& has_user_code,
                                            const SurveyLimits& limits) {
  const packet::Errata errata = packet::errata_for(configuration.cpu);
  return Surveyor(stream, configuration.clock, errata, has_user_code, limits).run();
}

}  // namespace ptkit::processes
