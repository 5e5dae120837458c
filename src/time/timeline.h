// The timing packets of a stream, resolved frame by frame. The result does not depend on queries.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "time/history.h"
#include "time/mtc.h"
#include "time/reader.h"

namespace ptkit::time {

class Timeline {
 public:
  // State at the opening of a frame.
  struct Opening {
    std::uint64_t origin = 0;
    double low = 0;
    double high = 0;
    CtcReference reference;
    double cyc_low = -kNoLimit;  // lower limit of the last CYC before the frame

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

  // The state that spans the TSC of a PSB+.
  struct State {
    std::uint64_t psb = kUnknown;
    FrameReader reader;
    Opening opening;
    bool wraps_seen = false;
    History::Point tsc;  // the point of that TSC in the history

    // For files. True if it is a state of the stream of `reader`.
    template <typename Fields>
    bool describe(Fields& fields) {
      fields(psb);
      opening.describe(fields);
      fields(wraps_seen);
      tsc.describe(fields);
      return reader.describe(fields);
    }
  };
  // Continues from a state of the same stream.
  Timeline(const Timeline& like, const State& state);
  // Begins at a PSB. `like`: of the same stream, before its first frame.
  Timeline(const Timeline& like, std::uint64_t psb, const CarriedTime& carried);
  // An empty state with the reader of this timeline.
  [[nodiscard]] State blank_state() const { return {kUnknown, reader_, {}, false, {}}; }
  // The state at the TSC of the PSB+ at `psb`; null if the PSB+ is not read yet, was dropped, or has no TSC.
  [[nodiscard]] const State* state_at(std::uint64_t psb) const noexcept;
  [[nodiscard]] std::vector<std::uint8_t> state_bytes_at(std::uint64_t psb) const;  // empty: null
  [[nodiscard]] CarriedTime carried() const noexcept;

  // Reads until a point after `offset` is known, or the stream ends. May drop points before: indices then
  // decrease by the growth of forgotten().
  void read_past(std::uint64_t offset);
  // Reads on until a point after `to` is known, as long as points of the PSB+ before `offset` are kept.
  void read_on(std::uint64_t offset, std::uint64_t to);
  bool read_frame();  // false: the stream ends
  [[nodiscard]] bool is_past(std::uint64_t offset) const noexcept {
    return ended_ || (!history_.empty() && history_.last_offset() > offset);
  }

  [[nodiscard]] const History& history() const noexcept { return history_; }
  [[nodiscard]] std::size_t forgotten() const noexcept { return forgotten_; }  // number of dropped points
  [[nodiscard]] const ClockModel& model() const noexcept { return model_; }
  [[nodiscard]] std::uint64_t tail() const noexcept { return tail_; }  // upper limit after the last point
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
