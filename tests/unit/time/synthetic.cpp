#include "unit/time/synthetic.h"

#include <algorithm>
#include <cmath>

namespace ptkit::time::test {
namespace {

constexpr std::uint64_t kCtcAtStart = 1'234'567;

class Generator {
 public:
  explicit Generator(const SyntheticConfig& config)
      : config_(config),
        random_(config.seed),

        ratio_(config.only_ratio != 0 ? config.only_ratio : std::uint8_t{20}) {}

  SyntheticTrace run() {
    next_edge_ = ctc(now_) / edge() + 1;
    psb();
    std::exponential_distribution<double> gap(1 / config_.cycles_per_branch);
    for (std::uint64_t i = 0; i < config_.branches; ++i) {
      happen();
      work(1 + gap(random_));
      branch();
    }
    flush(now_);
    trace_.clock.tsc_ctc_numerator = config_.numerator;
    trace_.clock.tsc_ctc_denominator = config_.denominator;
    trace_.clock.mtc_period_known = true;
    trace_.clock.mtc_period = static_cast<std::uint8_t>(config_.mtc_period);
    trace_.clock.max_nonturbo_ratio = config_.max_nonturbo_ratio;
    return std::move(trace_);
  }

 private:
  bool chance(double probability) {
    return probability > 0 && std::uniform_real_distribution<double>(0, 1)(random_) < probability;
  }
  std::uint64_t edge() const { return std::uint64_t{1} << config_.mtc_period; }
  // Time runs from 0 in here; CTC and TSC do not start together, as in life.
  std::uint64_t tsc() const { return config_.start_tsc + static_cast<std::uint64_t>(now_); }
  std::uint64_t ctc(double at) const {
    return kCtcAtStart + static_cast<std::uint64_t>(at * config_.denominator / config_.numerator);
  }
  double ctc_time(std::uint64_t count) const {
    return static_cast<double>(count - kCtcAtStart) * config_.numerator / config_.denominator;
  }
  double edge_time(std::uint64_t index) const { return ctc_time(index * edge()); }
  double cycle_ticks() const { return static_cast<double>(config_.max_nonturbo_ratio) / ratio_; }

  // ---- Execution.

  void happen() {
    if (config_.only_ratio == 0 && chance(config_.ratio_changes)) change_ratio();
    if (chance(config_.halts)) {
      pass(std::exponential_distribution<double>(1 / config_.sleep_ticks)(random_), false, true);
    }
    if (chance(config_.sleeps)) {
      pass(1000 + std::exponential_distribution<double>(1 / config_.sleep_ticks)(random_), false, false);
      if (config_.wake_tsc) {
        flush(now_);
        cyc(cycles_);
        tsc_tma();
      }
    }
    if (chance(config_.overflows)) overflow();
    if (trace_.bytes.size() - last_psb_ >= config_.psb_bytes) psb();
  }

  void change_ratio() {
    const auto next = static_cast<std::uint8_t>(std::uniform_int_distribution<int>(8, 35)(random_));
    ratio_ = next;
    if (config_.ratio_lag > 0) {
      work(config_.ratio_lag / cycle_ticks());
    }
    cbr();
  }

  void work(double cycles) { pass(cycles * cycle_ticks(), true, true); }

  // Time passes, and MTC packets are emitted.
  void pass(double ticks, bool clocked, bool awake) {
    const double end = now_ + ticks;
    while (config_.mtc && edge_time(next_edge_) <= end) {
      const double time = edge_time(next_edge_);
      if (clocked) cycles_ += (time - now_) / cycle_ticks();
      now_ = time;
      if (awake && !chance(config_.mtc_loss)) mtc();
      ++next_edge_;
    }
    if (clocked) cycles_ += (end - now_) / cycle_ticks();
    now_ = end;
  }

  void branch() {
    if (tnt_.empty()) {
      tnt_time_ = now_;
      tnt_cycles_ = cycles_;
    }
    if (chance(0.15)) {
      flush(now_);
      cyc(cycles_);
      const std::uint64_t at = note_packet();
      put({0x2d, 0x34, 0x12});
      flushed_ = at;
      trace_.branches.push_back({at, at, tsc()});
      return;
    }
    tnt_.push_back(tsc());
    if (tnt_.size() == 6) flush(now_);
  }

  void overflow() {
    tnt_.clear();
    const std::uint64_t size = trace_.bytes.size();
    const std::size_t packets = trace_.packets.size();
    work(1500 / cycle_ticks());
    pass(1500, false, true);
    trace_.bytes.resize(size);
    trace_.packets.resize(packets);
    flushed_ = note_packet();
    put({0x02, 0xf3});
  }

  // ---- Packets.

  std::uint64_t note_packet() {
    trace_.packets.push_back({trace_.bytes.size(), trace_.bytes.size(), tsc()});
    return trace_.bytes.size();
  }
  void put(std::initializer_list<unsigned> bytes) {
    for (const unsigned byte : bytes) trace_.bytes.push_back(static_cast<std::uint8_t>(byte));
  }

  void psb() {
    flush(now_);
    cyc(cycles_);
    last_psb_ = trace_.bytes.size();
    note_packet();
    for (int i = 0; i < 8; ++i) put({0x02, 0x82});
    tsc_tma();
    put({0x02, 0x03, ratio_, 0});
    put({0x3d, 0x34, 0x12});  // FUP
    note_packet();
    put({0x02, 0x23});
  }

  void tsc_tma() {
    note_packet();
    put({0x19});
    for (unsigned i = 0; i < 7; ++i) put({static_cast<unsigned>(tsc() >> (8 * i)) & 0xff});
    if (!config_.mtc) return;
    const std::uint64_t count = ctc(now_);
    const double since = now_ - std::ceil(ctc_time(count));
    const auto fast = static_cast<unsigned>(std::max(since, 0.0));
    put({0x02, 0x73, static_cast<unsigned>(count) & 0xff, static_cast<unsigned>(count >> 8) & 0xff, 0,
         fast & 0xff, fast >> 8});
  }

  void cbr() {
    flush(now_);
    cyc(cycles_);
    note_packet();
    put({0x02, 0x03, ratio_, 0});
  }

  void mtc() {
    if (config_.first_branch) flush(now_);  // nothing that follows a CYC may be older
    cyc(cycles_);
    note_packet();
    put({0x59, static_cast<unsigned>(next_edge_) & 0xff});
  }

  void cyc(double cycles) {
    if (!config_.cyc) return;
    const auto count = static_cast<std::uint64_t>(cycles);
    std::uint64_t passed = count - reported_;
    if (config_.floor_each_cyc) passed = static_cast<std::uint64_t>(cycles - reported_exactly_);
    if (passed == 0 || passed < config_.cyc_threshold) return;
    reported_ = count;
    reported_exactly_ = cycles;
    unsigned first = static_cast<unsigned>(passed & 0x1f) << 3 | 3;
    passed >>= 5;
    put({first | (passed != 0 ? 4U : 0U)});
    while (passed != 0) {
      const unsigned bits = static_cast<unsigned>(passed & 0x7f) << 1;
      passed >>= 7;
      put({bits | (passed != 0 ? 1U : 0U)});
    }
  }

  void flush(double) {
    if (tnt_.empty()) return;
    cyc(config_.first_branch ? tnt_cycles_ : cycles_);
    const std::uint64_t at = trace_.bytes.size();
    if (!config_.first_branch) note_packet();
    for (const std::uint64_t time : tnt_) trace_.branches.push_back({flushed_, at, time});
    unsigned bits = 1;
    for (std::size_t i = 0; i < tnt_.size(); ++i) bits = bits << 1 | 1;
    put({bits << 1});
    flushed_ = at;
    tnt_.clear();
  }

  SyntheticConfig config_;
  std::mt19937_64 random_;
  SyntheticTrace trace_;
  double now_ = 0;
  double cycles_ = 1000;
  std::uint64_t reported_ = 1000;
  double reported_exactly_ = 1000;
  std::uint8_t ratio_;
  std::uint64_t next_edge_ = 0;
  std::uint64_t last_psb_ = 0;
  std::uint64_t flushed_ = 0;
  std::vector<std::uint64_t> tnt_;
  double tnt_time_ = 0;
  double tnt_cycles_ = 0;
};

}  // namespace

SyntheticTrace synthesize(const SyntheticConfig& config) { return Generator(config).run(); }

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values[values.size() * 99 / 100]};
}

}  // namespace ptkit::time::test
