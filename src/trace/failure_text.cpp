#include "trace/failure_text.h"

#include "base/shortened.h"

namespace ptkit::trace {
namespace {

// Whether the detail is a complete sentence, with the file or setting and the error.
bool says_all(base::Status status) noexcept {
  return status == base::Status::IO_ERROR || status == base::Status::BAD_FILE ||
         status == base::Status::BAD_CONFIG || status == base::Status::UNSUPPORTED;
}

}  // namespace

std::string failure_text(const base::Failure& failure) {
  std::string text(base::status_sentence(failure.status));
  const std::string detail = base::shortened_message(failure.detail);
  if (!detail.empty() && says_all(failure.status)) {
    text = detail;
  } else if (!detail.empty()) {
    text += ": " + detail;
  }
  if (failure.offset != 0) text += " (at byte " + std::to_string(failure.offset) + ")";
  return text;
}

}  // namespace ptkit::trace
