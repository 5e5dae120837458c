// The last failure of each thread, and the boundary that no exception crosses.
#pragma once

#include <exception>
#include <new>
#include <string_view>

#include "base/status.h"
#include "ptkit.h"

namespace ptkit::api::c {

// Keeps the message and the offset for ptkit_failure_message() and ptkit_failure_offset(), and returns the
// status. Without memory for a text of its own, so that it can report that there is none.
int fail(int status, std::string_view message, std::uint64_t offset = 0) noexcept;
int fail(const base::Failure& failure);
inline int fail_config(const char* message) noexcept { return fail(PTKIT_BAD_CONFIG, message); }

// Calls work(), which returns a status.
template <typename Work>
int guarded(const Work& work) noexcept {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return fail(PTKIT_NO_MEMORY, base::status_sentence(base::Status::NO_MEMORY));
  } catch (const std::exception& problem) {
    return fail(PTKIT_INTERNAL, problem.what());
  } catch (...) {
    return fail(PTKIT_INTERNAL, ptkit_status_sentence(PTKIT_INTERNAL));
  }
}

}  // namespace ptkit::api::c
