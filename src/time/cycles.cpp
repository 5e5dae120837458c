#include "time/cycles.h"

#include <algorithm>
#include <cmath>

namespace ptkit::time {
namespace {

// How far a core clock may be from its nominal ratio to the bus clock (spread spectrum, bus clock tolerance).
constexpr double kDrift = 1.0 / 256;

// Of a chain of cycles at a known time, before it is taken for wrong.
constexpr double kChainSlack = 64;

bool is_anchor(const Point& point) noexcept {
  return point.kind != PointKind::CYC && point.usable && point.high < kNoLimit;
}
bool is_exact(const Point& point) noexcept { return is_anchor(point) && point.high - point.low <= 4; }

// The CYC packets between two times that are known.
struct Segment {
  std::size_t begin;  // index of the first point behind the anchor
  std::size_t end;    // index of the closing anchor
  bool open_joined;   // the cycles of the first CYC count from the anchor
  bool close_joined;  // the last CYC was made at the closing anchor
  double ticks;       // between the anchors
};

struct Sum {
  double ticks = 0;        // least time of all cycles
  double cycle = 0;        // of the slowest cycle
  double count = 0;        // CYC packets
  std::uint8_t ratio = 0;  // largest
  bool whole = true;       // no cycles are missing
};

Sum sum_of(const std::vector<Point>& points, const Segment& segment, const ClockModel& model) {
  Sum sum;
  bool inside = segment.open_joined;
  sum.whole = segment.open_joined && segment.close_joined;
  for (std::size_t i = segment.begin; i < segment.end; ++i) {
    const Point& point = points[i];
    if (point.kind != PointKind::CYC) continue;
    sum.cycle = std::max(sum.cycle, model.cycle_ticks(point.ratio));
    sum.ratio = std::max(sum.ratio, point.ratio);
    sum.whole = sum.whole && !point.lost;
    if (inside) sum.ticks += point.weight;
    inside = true;
    ++sum.count;
  }
  return sum;
}

void scale(std::vector<Point>& points, const Segment& segment, double factor, double margin) {
  for (std::size_t i = segment.begin; i < segment.end; ++i) {
    points[i].weight *= factor;
    points[i].margin = margin;
  }
}

// The largest ratio that may have been in force: a CBR packet comes after the change that it tells.
std::uint8_t ratio_ahead(const std::vector<Point>& points, std::size_t from, std::uint8_t next_ratio) {
  std::uint8_t ratio = 0;
  std::size_t anchors = 0;
  for (std::size_t i = from; i < points.size(); ++i) {
    ratio = std::max(ratio, points[i].ratio);
    if (is_anchor(points[i]) && ++anchors > 2) return ratio;
  }
  return std::max(ratio, next_ratio);
}

// Makes the cycles of a segment agree with its length.
void fit(std::vector<Point>& points, const Segment& segment, const ClockModel& model,
         std::uint8_t next_ratio) {
  Sum sum = sum_of(points, segment, model);
  double margin = sum.cycle + model.slop + 1;
  const double tolerance = 2 * sum.cycle + 2 * model.slop + segment.ticks * kDrift;
  if (sum.ticks > segment.ticks + tolerance) {
    // Faster than any ratio that was told until now: perhaps it is told only behind this segment.
    const std::uint8_t ratio = std::max(sum.ratio, ratio_ahead(points, segment.end, next_ratio));
    for (std::size_t i = segment.begin; i < segment.end; ++i) {
      if (ratio > 0) points[i].weight *= static_cast<double>(points[i].ratio) / ratio;
    }
    sum = sum_of(points, segment, model);
  }
  const double slack = segment.ticks - sum.ticks;
  const double rounding = (sum.count + 2) * sum.cycle;  // each CYC may leave out a part of a cycle
  if (sum.ticks <= 0) {
    scale(points, segment, 1, margin);
  } else if (slack < -tolerance) {
    scale(points, segment, 0, 0);  // these are not our cycles
  } else if (slack < 0 || (sum.whole && slack > 4 * sum.cycle && slack <= rounding + tolerance)) {
    scale(points, segment, segment.ticks / sum.ticks, margin + std::abs(slack));
  } else {
    scale(points, segment, 1, margin);
  }
}

void fit_segments(std::vector<Point>& points, const ClockModel& model, std::uint8_t next_ratio) {
  std::size_t open = points.size();
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!is_exact(points[i])) continue;
    if (open < i) {
      const Segment segment{open + 1, i, points[open].joined, points[i].joined,
                            points[i].low - points[open].low};
      fit(points, segment, model, next_ratio);
    }
    open = i;
  }
  if (open < points.size()) {
    for (std::size_t i = open + 1; i < points.size(); ++i) {
      points[i].margin = model.cycle_ticks(points[i].ratio) + model.slop + 1;
    }
  }
}

// Lower limits: from each known time forward. The chain of cycles starts at `base`.
void limit_low(std::vector<Point>& points, double base) {
  double chain = 0;   // least time since
  double margin = 0;  // of all that is in the chain
  double floor = 0;
  TimeSource source = TimeSource::NONE;
  for (std::size_t i = 0; i < points.size(); ++i) {
    Point& point = points[i];
    if (is_anchor(point) || (point.kind != PointKind::CYC && point.usable)) {
      // What is known exactly is believed more than cycles.
      if (is_exact(point) || point.low > floor || i == 0) floor = point.low;
      if (is_exact(point) && base + chain > floor + point.margin + kChainSlack) {
        base = floor;
        chain = margin = 0;
      }
      source = point.kind == PointKind::TSC ? TimeSource::TSC : TimeSource::MTC;
      point.low = floor;
      point.source = source;
      if (!is_exact(point) || !point.joined) continue;
      base = floor;
      chain = margin = 0;
      if (i > 0) points[i - 1].low = std::max(points[i - 1].low, floor);
    } else if (point.kind == PointKind::CYC) {
      chain += point.weight;
      margin = std::max(margin, point.margin);
      if (base + chain < floor) {
        base = floor;
        chain = margin = 0;
      }
      const double limit = base + chain - margin;
      point.source = point.weight > 0 ? TimeSource::CYC : source;
      if (limit > floor) floor = limit;
      point.low = floor;
    }
  }
}

// Upper limits: from each known time backward.
void limit_high(std::vector<Point>& points) {
  double base = kNoLimit;
  double chain = 0;
  double margin = 0;
  double ceiling = kNoLimit;
  for (std::size_t i = points.size(); i-- > 0;) {
    Point& point = points[i];
    if (point.kind != PointKind::CYC && point.usable) {
      ceiling = std::min(ceiling, point.high);
      point.high = ceiling;
      if (!is_exact(point) || !point.joined) continue;
      base = ceiling;
      chain = margin = 0;
    } else if (point.kind == PointKind::CYC) {
      if (base - chain > ceiling || base == kNoLimit) {
        base = ceiling;
        chain = margin = 0;
      }
      ceiling = std::min(ceiling, base - chain + margin);
      point.high = ceiling;
      chain += point.weight;
      margin = std::max(margin, point.margin);
    }
  }
}

}  // namespace

void resolve_cycles(std::vector<Point>& points, const ClockModel& model, std::uint8_t next_ratio,
                    double last_cyc_low) {
  bool any = false;
  for (Point& point : points) {
    if (point.kind != PointKind::CYC) continue;
    any = true;
    point.weight = point.lost ? 0 : static_cast<double>(point.value) * model.cycle_ticks(point.ratio);
  }
  if (any && model.bus_ticks > 0) fit_segments(points, model, next_ratio);
  limit_low(points, last_cyc_low);
  limit_high(points);
  for (Point& point : points) {
    if (point.low > point.high) std::swap(point.low, point.high);
    // Behind the last known time cycles alone tell the time, by the core:bus ratio.
    if (point.source == TimeSource::CYC && point.high == kNoLimit) point.source = TimeSource::CBR;
  }
}

double tail_limit(const std::vector<Point>& points, const ClockModel& model, bool lost) noexcept {
  if (!model.mtc_usable || lost || points.empty()) return kNoLimit;
  double limit = kNoLimit;
  for (std::size_t i = points.size(); i-- > 0;) {
    if (points[i].kind == PointKind::CYC || !points[i].usable) {
      if (points[i].lost) return kNoLimit;
      continue;
    }
    // The next MTC is missing; one more may have been dropped.
    limit = points[i].high + 2 * model.edge_ticks();
    break;
  }
  return std::max(limit, points.back().low + model.edge_ticks());
}

}  // namespace ptkit::time
