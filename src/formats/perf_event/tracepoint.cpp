#include "formats/perf_event/tracepoint.h"

#include <charconv>
#include <string_view>

namespace ptkit::formats::perf {

namespace {

// The number after `words`. Advances `text` past it.
std::optional<std::uint64_t> number_after(std::string_view& text, std::string_view words) {
  const std::size_t at = text.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + words.size());
  std::uint64_t number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc{}) return std::nullopt;
  return number;
}

}  // namespace

// The data contains the kernel's format files: "name: sched_switch\nID: 316\nformat:\n" and, for each
// field,
// "\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n".
std::optional<SchedSwitch> find_sched_switch(base::Bytes tracing_data) {
  std::string_view text(reinterpret_cast<const char*>(tracing_data.data()), tracing_data.size());
  const auto event = number_after(text, "name: sched_switch\nID: ");
  if (!event) return std::nullopt;
  text = text.substr(0, text.find("\nname: "));
  const std::size_t field = text.find(" next_pid;");
  if (field == std::string_view::npos) return std::nullopt;
  text = text.substr(field, text.find('\n', field) - field);
  const auto offset = number_after(text, "offset:");
  const auto size = number_after(text, "size:");
  if (!offset || size != 4) return std::nullopt;
  return SchedSwitch{*event, static_cast<std::size_t>(*offset)};
}

}  // namespace ptkit::formats::perf
