// Decodes branch records and code into the same rows of control flow as packets.
#pragma once

#include <algorithm>

#include "flow/decoder/decoder_context.h"
#include "flow/walk/route.h"
#include "trace/branch_record.h"

namespace ptkit::flow {

// Decodes one stream of kind BRANCH_RECORDS. The offset of a row is the number of its branch record.
class RecordDecoder final : public RowSource, private DecoderContext {
 public:
  // As for FlowDecoder, all references must outlive the decoder; `track` and `pool` may be null.
  RecordDecoder(const trace::Stream& stream, const trace::Configuration& configuration,
                const code::image::Image& image, FlowSink& sink, time::TimeTrack* track,
                CodeCachePool* pool = nullptr);

  [[nodiscard]] bool run() override;
  [[nodiscard]] std::uint64_t position() const noexcept override { return position_; }

 private:
  void take_losses();
  void take_record();
  void follow_context();
  void bad_record(const std::uint64_t* ip, std::uint64_t argument);
  void open_gap(GapCause cause, base::Status code);
  void close_gap(std::uint64_t at, const std::uint64_t* to_ip);
  [[nodiscard]] std::uint64_t number() const noexcept { return trace::record_number(position_); }
  // Gaps do not overlap.
  [[nodiscard]] std::uint64_t gap_begin() const noexcept { return std::max(last_number_, gap_end_); }
  [[nodiscard]] bool is_repeated(const trace::BranchRecord& record);
  void follow(const trace::BranchRecord& record);
  [[nodiscard]] bool follow_path_to(const trace::BranchRecord& record);
  void leave(const trace::BranchRecord& record);
  [[nodiscard]] bool begin_at(const trace::BranchRecord& record);
  void miss_code(base::Status status);
  [[nodiscard]] BranchKind kind_of(const trace::BranchRecord& record) const noexcept;
  void emit(const trace::BranchRecord& record, BranchKind kind);

  Route route_;
  bool has_code_;
  std::uint64_t position_ = 0;     // stream offset
  std::uint64_t last_number_ = 0;  // number of the preceding record
  std::uint64_t gap_end_ = 0;      // end of the last gap
  std::uint64_t ip_ = 0;           // target of the preceding record, if known_
  bool known_ = false;
  bool in_tx_ = false;        // state at ip_
  std::int32_t missed_ = -1;  // region of the image in the last error row for missing code
  bool begun_ = false;
  bool done_ = false;
};

}  // namespace ptkit::flow
