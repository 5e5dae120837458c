#include "api/c/failure.h"

#include <algorithm>
#include <array>
#include <string>

#include "trace/failure_text.h"

namespace ptkit::api::c {
namespace {

// A longer path is cut.
constexpr std::size_t kMessageBytes = 512;

struct LastFailure {
  std::array<char, kMessageBytes> message;
  std::uint64_t offset;
};

// Zero at first: no failure.
thread_local LastFailure last_failure;

}  // namespace

int fail(int status, std::string_view message, std::uint64_t offset) noexcept {
  const std::size_t size = std::min(message.size(), kMessageBytes - 1);
  std::copy_n(message.data(), size, last_failure.message.data());
  last_failure.message[size] = '\0';
  last_failure.offset = offset;
  return status;
}

int fail(const base::Failure& failure) {
  return fail(static_cast<int>(failure.status), trace::failure_text(failure), failure.offset);
}

}  // namespace ptkit::api::c

const char* ptkit_failure_message(void) { return ptkit::api::c::last_failure.message.data(); }
uint64_t ptkit_failure_offset(void) { return ptkit::api::c::last_failure.offset; }

const char* ptkit_status_sentence(int status) {
  if (status == PTKIT_IN_USE) return "another call uses the handle";
  if (status == PTKIT_INTERNAL) return "a mistake in ptkit, or in read_code";
  if (status < 0 || status > UINT8_MAX) return "unknown status";
  // Text of status.def, which ends with a NUL.
  return ptkit::base::status_sentence(static_cast<ptkit::base::Status>(status)).data();
}
