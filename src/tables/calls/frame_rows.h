// Frames as rows of the table of calls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tables/calls/frame_index.h"
#include "tables/calls/python_frames.h"
#include "tables/calls/stack/frame.h"
#include "tables/columns/batch.h"
#include "tables/columns/ip_set.h"
#include "tables/columns/request.h"

namespace ptkit::tables::calls {

// Writes a frame. `first_id`: number of the stream's first frame.
void put_row(tables::columns::Batch& batch, std::size_t row, const Frame& frame,
             std::uint64_t first_id) noexcept;
// Adds a row of a table of anomalies. False: out of memory.
[[nodiscard]] bool add_row(tables::columns::Batch& batch, const Anomaly& anomaly) noexcept;
[[nodiscard]] tables::columns::OwnerRun run_of(const Owner& owner, std::uint32_t stream) noexcept;

// Whether a frame is selected: by its entry, and by its time, of which it has a part.
class FrameFilter {
 public:
  explicit FrameFilter(const tables::columns::Selection& selection)
      : selection_(selection), ips_(selection.ips) {}
  [[nodiscard]] bool selects(const Frame& frame, const Owner& owner) const noexcept {
    if (frame.is_outside) return false;
    return selects_all() || is_chosen(frame, owner);
  }
  // Whatever frames there are, but for those outside of a window.
  [[nodiscard]] bool selects_all() const noexcept { return !selection_.by_time && ips_.empty(); }
  // By the ends of its branch, and by its time.
  [[nodiscard]] bool selects(const Anomaly& anomaly, const Owner& owner) const noexcept;

 private:
  [[nodiscard]] bool is_chosen(const Frame& frame, const Owner& owner) const noexcept;

  tables::columns::Selection selection_;
  tables::columns::IpSet ips_;
};

// Rows of one stream by id. The memory has all frames of the stream, open ones too; of a window, those that
// are not before it.
class FrameTable final : public FrameSink {
 public:
  // `hides`: some frames are not shown.
  FrameTable(const tables::columns::Selection& selection, tables::columns::ColumnMask mask,
             std::uint32_t stream, bool hides = false);

  void on_frame(const Frame& frame, const Owner& owner) override;
  void on_anomaly(const Anomaly& anomaly, const Owner& owner) override;
  void on_window(std::span<const std::uint64_t> open, std::uint64_t frames) override;
  void on_hidden(const Frame& frame) override;
  [[nodiscard]] std::uint64_t bytes() const noexcept override;
  [[nodiscard]] std::uint64_t later_bytes(const FrameCounts& counts) const noexcept override;
  // After the last frame: the rows in the order of their ids, which begin with `first_id`. Their numbers of
  // functions are those of `notes`, which get the notes of the stream. Null: out of memory.
  [[nodiscard]] std::unique_ptr<tables::columns::Batch> take(std::uint64_t first_id,
                                                             const FunctionTable& functions,
                                                             FrameIndex& notes);
  [[nodiscard]] std::unique_ptr<tables::columns::Batch> take_anomalies(std::uint64_t first_id);
  [[nodiscard]] bool out_of_memory() const noexcept { return out_of_memory_; }

 private:
  // The slot of a frame among those that have one.
  [[nodiscard]] std::size_t slot_of(std::uint64_t id) const noexcept {
    if (id >= first_inside_) return static_cast<std::size_t>(id - first_inside_) + open_.size();
    return static_cast<std::size_t>(std::ranges::lower_bound(open_, id) - open_.begin());
  }

  FrameFilter filter_;
  std::uint32_t stream_;
  std::uint64_t row_bytes_;
  std::unique_ptr<tables::columns::Batch> rows_;
  std::unique_ptr<tables::columns::Batch> anomalies_;
  std::vector<std::uint64_t> open_;  // frames that began before the window, ascending
  std::uint64_t first_inside_ = 0;   // all frames from this one on have a slot
  std::size_t capacity_ = 0;
  std::uint64_t ids_ = 0;
  std::vector<Owner> owners_;
  std::vector<std::uint32_t> owner_of_;  // by slot: 1 + index in owners_; 0: not selected
  std::size_t last_owner_ = 0;
  FrameIndex notes_;
  std::optional<HiddenFrames> hidden_;
  bool out_of_memory_ = false;
};

// Rows in the order in which frames end.
class FrameList final : public FrameSink {
 public:
  FrameList(const tables::columns::Selection& selection, tables::columns::ColumnMask mask);

  // Frames of this stream follow. Their ids begin after those of the streams before it.
  void begin_stream(std::uint32_t stream) noexcept;
  void on_frame(const Frame& frame, const Owner& owner) override;
  void on_anomaly(const Anomaly&, const Owner&) override {}
  void on_window(std::span<const std::uint64_t>, std::uint64_t frames) override { next_id_ = frames; }
  [[nodiscard]] std::uint64_t bytes() const noexcept override { return rows_->bytes(); }
  [[nodiscard]] std::uint64_t later_bytes(const FrameCounts& counts) const noexcept override {
    return counts.open * row_bytes_;
  }
  [[nodiscard]] std::size_t rows() const noexcept { return rows_->rows(); }
  // Up to this many rows, from the front. Null: out of memory.
  [[nodiscard]] std::unique_ptr<tables::columns::Batch> take(std::size_t most);
  [[nodiscard]] bool out_of_memory() const noexcept { return out_of_memory_; }

 private:
  FrameFilter filter_;
  std::uint64_t row_bytes_;
  std::unique_ptr<tables::columns::Batch> rows_;
  std::uint32_t stream_ = 0;
  std::uint64_t first_id_ = 0;
  std::uint64_t next_id_ = 0;
  bool out_of_memory_ = false;
};

}  // namespace ptkit::tables::calls
