#include "base/system/owner.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace ptkit::base {

namespace {

std::optional<unsigned> number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  unsigned value = 0;
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<Owner> sudo_caller() {
  if (::geteuid() != 0) return std::nullopt;
  const auto user = number_in("SUDO_UID");
  const auto group = number_in("SUDO_GID");
  if (!user || !group) return std::nullopt;
  return Owner{*user, *group};
}

}  // namespace ptkit::base
