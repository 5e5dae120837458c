// The readers of each kind of list. Internal to src/formats/symbols.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "formats/symbols/symbol_list.h"

namespace ptkit::formats::symbols {

// A list, the reason why it has no symbols that can be used, or neither: the text is of another kind.
struct ReadList {
  std::optional<SymbolList> list{};
  std::string problem{};
};

[[nodiscard]] ReadList read_json_profile(std::string_view text);
[[nodiscard]] ReadList read_gnu_map(std::string_view text);
[[nodiscard]] ReadList read_segment_map(std::string_view text);  // of IDA, MSVC, Delphi
[[nodiscard]] ReadList read_windbg(std::string_view text);
[[nodiscard]] ReadList read_plain_list(std::string_view text);  // nm, System.map, kallsyms, perf-PID.map

// Symbols that linkers put at the begin of an image say what the addresses of a list count from.
void note_base(SymbolList& list, std::string_view name, std::uint64_t address);

}  // namespace ptkit::formats::symbols
