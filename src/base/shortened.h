// Values of files in messages: a file decides how long they are.
#pragma once

#include <string>
#include <string_view>

namespace ptkit::base {

// At most 100 bytes of a value, and "..." if it has more. Cuts no character of UTF-8.
[[nodiscard]] std::string shortened(std::string_view value);
// A message without values that are longer than any path of a usual system, and of 2,000 bytes at most.
[[nodiscard]] std::string shortened_message(std::string_view text);

}  // namespace ptkit::base
