// A stream's timing packets, resolved frame by frame: what is known of time, whoever asks.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "time/history.h"
#include "time/mtc.h"
#include "time/reader.h"

namespace ptkit::time {

class Timeline {
 public:
  // The opening of a frame.
  struct Opening {
    std::uint64_t origin = 0;
    double low = 0;
    double high = 0;
    CtcReference reference;
    double cyc_low = -kNoLimit;  // of the last CYC before

    template <typename Fields>
    void describe(Fields& fields) {  // for files: see base/fields.h
      fields(origin);
      fields(low);
      fields(high);
      reference.describe(fields);
      fields(cyc_low);
    }
  };

  Timeline(base::Bytes stream, std::span<const trace::KnownLoss> losses, const packet::Errata& errata,
           const ClockModel& model);

  // All that is carried over the TSC of a PSB+.
  struct State {
    std::uint64_t psb = kUnknown;
    FrameReader reader;
    Opening opening;
    bool wraps_seen = false;
    History::Point tsc;  // as it is told to who asks

    // For files. True if it is a state of the stream that `reader` reads.
    template <typename Fields>
    bool describe(Fields& fields) {
      fields(psb);
      opening.describe(fields);
      fields(wraps_seen);
      tsc.describe(fields);
      return reader.describe(fields);
    }
  };
  // Goes on from a state of the same stream.
  Timeline(const Timeline& like, const State& state);
  // One that has the reader of this one, to be filled in.
  [[nodiscard]] State blank_state() const { return {kUnknown, reader_, {}, false, {}}; }
  // The state at the TSC of the PSB+ at `psb`; null if it was not read yet, too long ago, or has no TSC.
  [[nodiscard]] const State* state_at(std::uint64_t psb) const noexcept;

  // Until a point behind `offset` is known, or the stream ends. Points before may be forgotten: indices
  // change by what forgotten() grows.
  void read_past(std::uint64_t offset);
  // Reads on, until a point behind `to` is known, as far as points of the PSB+ before `offset` are kept.
  void read_on(std::uint64_t offset, std::uint64_t to);
  bool read_frame();  // false: the stream ends
  [[nodiscard]] bool is_past(std::uint64_t offset) const noexcept {
    return ended_ || (!history_.empty() && history_.last_offset() > offset);
  }

  [[nodiscard]] const History& history() const noexcept { return history_; }
  [[nodiscard]] std::size_t forgotten() const noexcept { return forgotten_; }  // points, in sum
  [[nodiscard]] const ClockModel& model() const noexcept { return model_; }
  [[nodiscard]] std::uint64_t tail() const noexcept { return tail_; }  // upper limit behind the last point
  [[nodiscard]] std::uint64_t first_psb() const noexcept { return reader_.first_psb(); }

 private:
  void resolve();
  void resolve_points(double end, bool back);
  void open_next(double end);
  [[nodiscard]] double low_of_last_cyc() const noexcept;
  [[nodiscard]] CtcReference reference_of_last_mtc(double shift) const noexcept;
  void forget();
  void note_state();

  FrameReader reader_;
  ClockModel model_;
  Frame frame_;
  Opening opening_;
  History history_;
  std::size_t forgotten_ = 0;
  std::array<std::uint64_t, 4> psbs_{};
  std::array<std::optional<State>, 4> states_;
  std::size_t next_state_ = 0;
  std::uint64_t tail_ = kUnknown;
  bool ended_ = false;
  bool wraps_seen_ = false;
};

}  // namespace ptkit::time
