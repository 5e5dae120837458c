// Errors and gaps: reports where control flow is lost and where it is known again.
#pragma once

#include <optional>

#include "code/image/image.h"
#include "flow/rows/sink.h"

namespace ptkit::flow {

class Recovery {
 public:
  explicit Recovery(FlowSink& sink) : sink_(sink) {}

  // Emits an error row. `code_view` (may be null) gives the image of the IP.
  void error(const StreamSpan& span, base::Status code, const std::uint64_t* ip, std::uint64_t argument,
             std::uint64_t argument2, const code::image::CodeView* code_view);

  // Control flow is unknown from here on. Does nothing while a gap is open.
  void open(std::uint64_t offset, const std::uint64_t* from_ip, GapCause cause, base::Status code);
  // Control flow is known again. Emits the gap row if a gap is open.
  void close(std::uint64_t offset, const std::uint64_t* to_ip);
  [[nodiscard]] bool is_open() const noexcept { return gap_.has_value(); }
  [[nodiscard]] const std::optional<Gap>& gap() const noexcept { return gap_; }
  void set_gap(const std::optional<Gap>& gap) noexcept { gap_ = gap; }  // an open gap, or none

 private:
  FlowSink& sink_;
  std::optional<Gap> gap_;
};

}  // namespace ptkit::flow
