#include "time/calibrate.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "time/mtc.h"
#include "time/reader.h"

namespace ptkit::time {
namespace {

// Bytes of the stream that calibration reads: enough for many PSB intervals.
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 20;
constexpr std::size_t kMaxSamples = 4096;
constexpr unsigned kPeriods = 16;  // MTCFreq has 4 bits

// A frame with a TMA at both ends and no missing MTC: `ctc` CTC ticks (but for the ratio) took `tsc` TSC
// ticks.
struct Span {
  double tsc = 0;
  double ctc = 0;
};

class Calibration {
 public:
  Calibration(base::Bytes stream, std::span<const trace::KnownLoss> losses, const trace::Clock& clock,
              const packet::Errata& errata)
      : stream_(stream), losses_(losses), clock_(clock), errata_(errata) {}

  ClockModel run() {
    period_known_ = clock_.mtc_period_known;
    model_.mtc_period = clock_.mtc_period & (kPeriods - 1);
    const bool ratio_known = clock_.tsc_ctc_numerator != 0 && clock_.tsc_ctc_denominator != 0;
    if (ratio_known) {
      model_.ratio_numerator = clock_.tsc_ctc_numerator;
      model_.ratio_denominator = clock_.tsc_ctc_denominator;
      model_.slop = clock_.tsc_ctc_numerator % clock_.tsc_ctc_denominator == 0 ? 0 : 1;
    }
    survey();
    if (!period_known_) infer_period();
    model_.mtc_usable = period_known_ && (ratio_known || infer_ratio());
    infer_bus();
    return model_;
  }
  // The offset up to which run() has read.
  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }

 private:
  // First pass: finds the kinds of packets, and how MTC continues TMA.
  void survey() {
    FrameReader reader(stream_, losses_, errata_);
    reader.take_census();
    Frame frame;
    Tma tma;
    while (reader.position() < kMaxBytes + reader.first_psb() && reader.next(frame)) {
      if (tma.known) vote(frame, tma);
      any_cyc_ = any_cyc_ || frame.cycles.size > 0;
      tma = frame.end_tma;
    }
    end_ = reader.position();
    model_.tnt_time = reader.census().judge();
    model_.long_tnt = reader.census().long_packets > 0;
  }

  void vote(const Frame& frame, const Tma& tma) {
    for (const TscMtcPoint& point : frame.tsc_mtc_points) {
      if (!point.mtc || point.lost) continue;
      ++votes_;
      for (unsigned period = 0; period < kPeriods; ++period) {
        const std::uint64_t mask = (std::uint64_t{1} << std::min(8U, 16 - period)) - 1;
        const std::uint64_t step = (point.value - (tma.ctc >> period)) & mask;
        if (step <= 1) ++votes_for_[period];
      }
      return;
    }
  }

  void infer_period() {
    if (votes_ < 3) return;
    unsigned fit = 0;
    for (unsigned period = 0; period < kPeriods; ++period) {
      // The longest periods leave few bits to compare, so any value matches.
      if (period > 10 || votes_for_[period] * 10 < votes_ * 8) continue;
      ++fit;
      model_.mtc_period = period;
    }
    period_known_ = fit == 1;
  }

  std::vector<Span> spans() {
    FrameReader reader(stream_, losses_, errata_);
    std::vector<Span> found;
    Frame frame;
    Tma tma;
    std::uint64_t tsc = 0;
    while (found.size() < kMaxSamples && reader.position() < kMaxBytes + reader.first_psb() &&
           reader.next(frame)) {
      Span span;
      if (frame.end == FrameEnd::TSC && tma.known && frame.end_tma.known && frame.end_tsc > tsc &&
          count_ctc(frame, tma, span)) {
        span.tsc = static_cast<double>(frame.end_tsc - tsc) - frame.end_tma.fast + tma.fast;
        found.push_back(span);
      }
      tma = frame.end_tma;
      tsc = frame.end_tsc;
    }
    return found;
  }

  bool count_ctc(const Frame& frame, const Tma& tma, Span& span) const {
    const unsigned period = model_.mtc_period;
    std::uint64_t last = static_cast<std::uint64_t>(tma.ctc >> period) & 0xff;
    std::uint64_t steps = 0;
    bool any = false;
    if (frame.cycles.any_lost) return false;
    for (const TscMtcPoint& point : frame.tsc_mtc_points) {
      if (point.lost) return false;
      if (!point.mtc) continue;
      const std::uint64_t step = (point.value - last) & 0xff;
      if (step > 1 || (step == 0 && any)) return false;
      steps += step;
      last = point.value;
      any = true;
    }
    const std::uint64_t end = static_cast<std::uint64_t>(frame.end_tma.ctc >> period) & 0xff;
    if (!any || end != last) return false;
    const double mask = static_cast<double>((1U << period) - 1U);
    const auto low_bits = [mask](std::uint16_t ctc) {
      return static_cast<double>(ctc & static_cast<unsigned>(mask));
    };
    span.ctc = static_cast<double>(steps << period) + low_bits(frame.end_tma.ctc) - low_bits(tma.ctc);
    return span.ctc > 0;
  }

  bool infer_ratio() {
    if (model_.mtc_period > 8) return false;  // TMA lacks bits of MTC
    std::vector<Span> found = spans();
    if (found.size() < 3) return false;
    std::sort(found.begin(), found.end(),
              [](const Span& a, const Span& b) { return a.tsc * b.ctc < b.tsc * a.ctc; });
    const Span& middle = found[found.size() / 2];
    const double estimate = middle.tsc / middle.ctc;
    Span sum;
    std::size_t agree = 0;
    for (const Span& span : found) {
      if (std::abs(span.tsc - estimate * span.ctc) > 2 + 4 * span.ctc / middle.ctc) continue;
      sum.tsc += span.tsc;
      sum.ctc += span.ctc;
      ++agree;
    }
    if (agree < 3 || agree * 4 < found.size() * 3) return false;
    const double ratio = sum.tsc / sum.ctc;
    const double error = 2.0 * static_cast<double>(agree) / sum.ctc;
    if (error > 0.25) return false;
    if (std::abs(ratio - std::round(ratio)) <= error) {
      model_.ratio_numerator = std::round(ratio);
      model_.ratio_denominator = 1;
    } else {
      model_.ratio_numerator = sum.tsc;
      model_.ratio_denominator = sum.ctc;
      model_.slop = 2;
    }
    return model_.ratio_numerator >= 1;
  }

  // TSC ticks per bus clock: from cycles between two known times with a constant core:bus ratio. A sample in
  // which the clock stopped is too large; most of the small samples agree.
  void infer_bus() {
    model_.bus_ticks = clock_.max_nonturbo_ratio;
    if (!any_cyc_) return;
    collect();
    constexpr double kWindow = 1.02;
    std::sort(samples_.begin(), samples_.end());
    std::size_t best = 0;
    std::size_t best_begin = 0;
    for (std::size_t begin = 0, end = 0; begin < samples_.size(); ++begin) {
      while (end < samples_.size() && samples_[end] <= samples_[begin] * kWindow) ++end;
      if (end - begin <= best) continue;
      best = end - begin;
      best_begin = begin;
    }
    if (best < 4 || best * 4 < samples_.size()) return;
    const double measured = samples_[best_begin + best / 2];
    // A configured ratio is the nominal one, and an upper limit here: a smaller value makes intervals wider,
    // not wrong.
    if (model_.bus_ticks == 0 || measured < model_.bus_ticks) model_.bus_ticks = measured;
  }

  void collect() {
    FrameReader reader(stream_, losses_, errata_);
    Frame frame;
    Tma tma;
    std::uint64_t tsc = 0;
    while (samples_.size() < kMaxSamples && reader.position() < kMaxBytes + reader.first_psb() &&
           reader.next(frame)) {
      if (frame.end == FrameEnd::TSC && frame.opened && frame.end_tsc > tsc) {
        const double ticks = static_cast<double>(frame.end_tsc - tsc);
        frame.tsc_mtc_points.front().high = 0;
        frame.tsc_mtc_points.back().low = frame.tsc_mtc_points.back().high = ticks;
        const MtcBounds bounds{0, ticks, reference_of(tma, 0, model_),
                               reference_of(frame.end_tma, ticks, model_), false};
        if (!resolve_mtc(frame, bounds, model_).usable) sample_frame(frame, ticks);
        sample_segments(frame);
      }
      tma = frame.end_tma;
      tsc = frame.end_tsc;
    }
  }

  // A frame without MTC: both ends are known to within a CYC packet.
  void sample_frame(const Frame& frame, double ticks) {
    constexpr std::size_t kLeast = 64;
    const Cycles& all = frame.cycles;
    if (all.size < kLeast || all.any_lost || all.ratios_differ || all.ratio[0] == 0) return;
    double cycles = 0;
    for (std::size_t i = 1; i < all.size; ++i) cycles += all.weight[i];
    if (cycles > 0) samples_.push_back(ticks * all.ratio[0] / cycles);
  }

  // Samples from one known time to the next.
  void sample_segments(const Frame& frame) {
    std::size_t open = frame.tsc_mtc_points.size();
    for (std::size_t k = 0; k < frame.tsc_mtc_points.size(); ++k) {
      const TscMtcPoint& point = frame.tsc_mtc_points[k];
      if (!point.usable || point.high - point.low > 4) continue;
      if (open < k && frame.tsc_mtc_points[open].joined && point.joined) {
        sample_segment(frame.cycles, frame.tsc_mtc_points[open], point);
      }
      open = k;
    }
  }

  void sample_segment(const Cycles& all, const TscMtcPoint& open, const TscMtcPoint& close) {
    constexpr double kLeastCycles = 100;
    double cycles = 0;
    for (std::size_t i = open.cycles; i < close.cycles; ++i) {
      const bool lost = (all.flags[i] & Cycles::LOST) != 0;
      if (lost || all.ratio[i] == 0 || all.ratio[i] != all.ratio[open.cycles]) return;
      cycles += all.weight[i];
    }
    if (cycles >= kLeastCycles) samples_.push_back((close.low - open.low) * all.ratio[open.cycles] / cycles);
  }

  base::Bytes stream_;
  std::span<const trace::KnownLoss> losses_;
  const trace::Clock& clock_;
  const packet::Errata& errata_;
  ClockModel model_;
  std::uint64_t end_ = 0;
  bool period_known_ = false;
  bool any_cyc_ = false;
  std::size_t votes_ = 0;
  std::array<std::size_t, kPeriods> votes_for_{};
  std::vector<double> samples_;
};

}  // namespace

ClockModel calibrate(base::Bytes stream, std::span<const trace::KnownLoss> losses, const trace::Clock& clock,
                     const packet::Errata& errata) {
  return Calibration(stream, losses, clock, errata).run();
}

ClockModel calibrate(const trace::TraceBuffer& stream, std::span<const trace::KnownLoss> losses,
                     const trace::Clock& clock, const packet::Errata& errata) {
  constexpr std::uint64_t kAhead = std::uint64_t{1} << 16U;  // that a reader may look ahead
  for (std::uint64_t size = 2 * kMaxBytes;; size *= 2) {
    const base::Bytes start =
        stream.part(0, static_cast<std::size_t>(std::min<std::uint64_t>(size, stream.size())));
    Calibration calibration(start, losses, clock, errata);
    ClockModel model = calibration.run();
    if (start.size() == stream.size() || calibration.end() + kAhead < start.size()) return model;
  }
}

}  // namespace ptkit::time
