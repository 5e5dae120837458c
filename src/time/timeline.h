// A stream's timing packets, resolved frame by frame: what is known of time, whoever asks.
#pragma once

#include <array>
#include <span>

#include "time/history.h"
#include "time/mtc.h"
#include "time/reader.h"

namespace ptkit::time {

class Timeline {
 public:
  Timeline(base::Bytes stream, std::span<const trace::KnownLoss> losses, const packet::Errata& errata,
           const ClockModel& model);

  // Until a point behind `offset` is known, or the stream ends. True: points before were forgotten, so that
  // indices changed by what forgotten() says.
  void read_past(std::uint64_t offset);
  [[nodiscard]] bool is_past(std::uint64_t offset) const noexcept {
    return ended_ || (!history_.empty() && history_.last_offset() > offset);
  }

  [[nodiscard]] const History& history() const noexcept { return history_; }
  [[nodiscard]] std::size_t forgotten() const noexcept { return forgotten_; }  // points, in sum
  [[nodiscard]] const ClockModel& model() const noexcept { return model_; }
  [[nodiscard]] std::uint64_t tail() const noexcept { return tail_; }  // upper limit behind the last point
  [[nodiscard]] std::uint64_t first_psb() const noexcept { return reader_.first_psb(); }

 private:
  // The opening of the next frame.
  struct Opening {
    std::uint64_t origin = 0;
    double low = 0;
    double high = 0;
    CtcReference reference;
    double cyc_low = -kNoLimit;  // of the last CYC before
  };

  void resolve();
  void resolve_points(double end, bool back);
  void open_next(double end);
  [[nodiscard]] double low_of_last_cyc() const noexcept;
  [[nodiscard]] CtcReference reference_of_last_mtc(double shift) const noexcept;
  void forget();

  FrameReader reader_;
  ClockModel model_;
  Frame frame_;
  Opening opening_;
  History history_;
  std::size_t forgotten_ = 0;
  std::array<std::uint64_t, 4> psbs_{};
  std::uint64_t tail_ = kUnknown;
  bool ended_ = false;
  bool wraps_seen_ = false;
};

}  // namespace ptkit::time
