#include "flow/events/recovery.h"

namespace ptkit::flow {

void Recovery::error(const StreamSpan& span, base::Status code, const std::uint64_t* ip,
                     std::uint64_t argument, std::uint64_t argument2,
                     const code::image::CodeView* code_view) {
  FlowError row;
  row.span = span;
  row.code = code;
  row.ip_known = ip != nullptr;
  if (ip != nullptr) row.ip = *ip;
  row.argument = argument;
  row.argument2 = argument2;
  if (ip != nullptr && code_view != nullptr) {
    const code::image::Provenance from = code_view->provenance(*ip);
    row.file = from.file;
    if (code == base::Status::NO_CODE || code == base::Status::BAD_INSN) {
      constexpr std::uint64_t kPage = 4096;
      const bool covered = from.region >= 0;
      row.argument = covered ? from.region_address : *ip & ~(kPage - 1);
      row.argument2 = covered ? from.region_size : kPage;
    }
  }
  sink_.on_error(row);
}

void Recovery::open(std::uint64_t offset, const std::uint64_t* from_ip, GapCause cause, base::Status code) {
  if (gap_) return;
  Gap gap;
  gap.begin = offset;
  gap.cause = cause;
  gap.code = code;
  if (from_ip != nullptr) {
    gap.from_ip = *from_ip;
    gap.flags |= FROM_KNOWN;
  }
  gap_ = gap;
}

void Recovery::close(std::uint64_t offset, const std::uint64_t* to_ip) {
  if (!gap_) return;
  Gap gap = *gap_;
  gap_.reset();
  gap.end = offset;
  if (to_ip != nullptr) {
    gap.to_ip = *to_ip;
    gap.flags |= TO_KNOWN;
  }
  sink_.on_gap(gap);
}

}  // namespace ptkit::flow
