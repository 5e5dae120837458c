// Branch records and code to control flow: the same rows as from packets.
#pragma once

#include <algorithm>

#include "flow/route.h"
#include "flow/stream_parts.h"
#include "trace/branch_record.h"

namespace ptkit::flow {

// Decodes one stream of kind BRANCH_RECORDS. Rows stand at the offset of the record that told them.
class RecordDecoder final : public RowSource, private StreamParts {
 public:
  // As FlowDecoder's: all references must outlive the decoder; `track` and `pool` may be null.
  RecordDecoder(const trace::Stream& stream, const trace::Configuration& configuration,
                const image::Image& image, FlowSink& sink, time::TimeTrack* track,
                CodeCachePool* pool = nullptr);

  [[nodiscard]] bool run() override;
  [[nodiscard]] std::uint64_t position() const noexcept override { return position_; }

 private:
  void take_losses();
  void take_record();
  void follow_context();
  void bad_record(const std::uint64_t* ip, std::uint64_t argument);
  void open_gap(GapCause cause, base::Status code);
  void close_gap(std::uint64_t offset, const std::uint64_t* to_ip);
  // Gaps do not overlap.
  [[nodiscard]] std::uint64_t gap_begin() const noexcept { return std::max(last_offset_, gap_end_); }
  void follow(const trace::BranchRecord& record);
  [[nodiscard]] bool go_on_to(const trace::BranchRecord& record);
  void leave(const trace::BranchRecord& record);
  [[nodiscard]] bool begin_at(const trace::BranchRecord& record);
  void miss_code(base::Status status);
  [[nodiscard]] BranchKind kind_of(const trace::BranchRecord& record) const noexcept;
  void give(const trace::BranchRecord& record, BranchKind kind);

  Route route_;
  bool has_code_;
  std::uint64_t position_ = 0;
  std::uint64_t last_offset_ = 0;  // of the record before
  std::uint64_t gap_end_ = 0;      // of the last gap
  std::uint64_t ip_ = 0;           // where it led, if known_
  bool known_ = false;
  bool in_tx_ = false;        // there
  std::int32_t missed_ = -1;  // the image's region that the last row of missing code is about
  bool begun_ = false;
  bool done_ = false;
};

}  // namespace ptkit::flow
