#include "code/symbol/names/python_name.h"

namespace ptkit::code::symbol {

namespace {

// The last part of a path; of a package's "__init__.py", the last two.
std::string_view short_path(std::string_view path) {
  std::size_t begin = path.rfind('/');
  if (begin == std::string_view::npos) return path;
  if (path.substr(begin + 1).starts_with("__") && begin != 0) begin = path.rfind('/', begin - 1);
  return path.substr(begin + 1);  // npos + 1 is 0
}

}  // namespace

std::optional<std::string> python_name(std::string_view raw_name) {
  if (!is_python_name(raw_name)) return std::nullopt;
  raw_name.remove_prefix(4);
  const std::size_t colon = raw_name.find(':');
  std::string out(raw_name.substr(0, colon));
  if (colon + 1 == raw_name.size()) return out;
  return out.append(" (").append(short_path(raw_name.substr(colon + 1))).append(")");
}

}  // namespace ptkit::code::symbol
