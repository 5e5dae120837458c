// Text of recordings for lines: names are not to be trusted, and may not be UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace ptkit::tables::text {

// For a terminal: control characters and ends of lines become "\x1b" and the like, as
// ptkit.support.text.one_line() writes them.
[[nodiscard]] std::string for_terminal(std::string_view utf8);
// As a JSON string of ASCII, with its quotes, as Python's json.dumps() writes it.
[[nodiscard]] std::string for_json(std::string_view utf8);

}  // namespace ptkit::tables::text
