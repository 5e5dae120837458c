// Errors and gaps: what is said when control flow is lost, and where it is known again.
#pragma once

#include <optional>

#include "flow/sink.h"
#include "image/image.h"

namespace ptkit::flow {

class Recovery {
 public:
  explicit Recovery(FlowSink& sink) : sink_(sink) {}

  // Gives an error row. `code` (may be null) tells which image the IP concerns.
  void error(const Place& place, base::Status code, const std::uint64_t* ip, std::uint64_t argument,
             std::uint64_t argument2, const image::CodeView* code_view);

  // Control flow is not known from here on. While a gap is open, another one does not begin.
  void open(std::uint64_t offset, const std::uint64_t* from_ip, GapCause cause, base::Status code);
  // It is known again. Gives the gap row; nothing if no gap is open.
  void close(std::uint64_t offset, const std::uint64_t* to_ip);
  [[nodiscard]] bool is_open() const noexcept { return gap_.has_value(); }
  [[nodiscard]] const Gap& gap() const noexcept { return *gap_; }
  void set_gap(const std::optional<Gap>& gap) noexcept { gap_ = gap; }  // that is open, or none

 private:
  FlowSink& sink_;
  std::optional<Gap> gap_;
};

}  // namespace ptkit::flow
