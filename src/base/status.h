// All failures in one enumeration. Each value has a sentence and a remedy in status.def.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace ptkit::base {

// Stored in the `code` column of the errors table and in files: append only.
enum class Status : std::uint8_t {
#define PT_STATUS(name, value, sentence, remedy) name = value,
#include "base/status.def"
};

[[nodiscard]] std::string_view status_name(Status status) noexcept;      // "NO_CODE"
[[nodiscard]] std::string_view status_sentence(Status status) noexcept;  // what happened
[[nodiscard]] std::string_view status_remedy(Status status) noexcept;    // what to do about it

// A failure of a cold function: its status, offset and details.
struct Failure {
  Status status = Status::OK;
  std::uint64_t offset = 0;  // byte offset in the input that was read, if any
  std::string detail;        // names the file, member, value and limit
};

// An invalid argument or setting.
[[nodiscard]] inline Failure bad_config(std::string detail) {
  return {.status = Status::BAD_CONFIG, .offset = 0, .detail = std::move(detail)};
}

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}            // NOLINT(google-explicit-constructor)
  Result(Failure failure) : state_(std::move(failure)) {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] bool ok() const noexcept { return state_.index() == 0; }
  [[nodiscard]] T& value() noexcept { return *std::get_if<0>(&state_); }
  [[nodiscard]] const T& value() const noexcept { return *std::get_if<0>(&state_); }
  [[nodiscard]] const Failure& failure() const noexcept { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Failure> state_;
};

}  // namespace ptkit::base
