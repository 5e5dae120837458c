#include "formats/symbols/symbol_list.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/paths.h"
#include "formats/common/files.h"
#include "formats/symbols/readers.h"

namespace ptkit::formats {
namespace {

constexpr std::string_view kKinds =
    "the output of nm, a System.map or kallsyms, a map of IDA, Microsoft's linker or GNU ld (-Map), the "
    "output of "
    "WinDbg's x or lm, a Volatility ISF or Rekall profile (JSON), or a perf-PID.map";

// The process of "perf-4711.map".
std::int64_t pid_of(const std::string& path) {
  std::string_view name = base::last_part(path);
  constexpr std::string_view kBegin = "perf-";
  constexpr std::string_view kEnd = ".map";
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return trace::kNoId;
  name.remove_prefix(kBegin.size());
  name.remove_suffix(std::min(kEnd.size(), name.size()));
  std::int64_t pid = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  const bool is_number = error == std::errc{} && end == name.data() + name.size() && pid >= 0;
  return is_number ? pid : trace::kNoId;
}

// Why the file is no list, and what helps.
std::string describe_other(base::Bytes contents) {
  const std::string what = describe(contents);
  const std::string_view text(reinterpret_cast<const char*>(contents.data()), contents.size());
  if (text.starts_with("\x7f"
                       "ELF") ||
      text.starts_with("MZ"))
    return "is a program, no list of symbols; give it as an image (--image PATH[@ADDRESS], images=)";
  if (text.starts_with("Microsoft C/C++ MSF"))
    return "is a PDB, which ptkit does not read; give the output of WinDbg's `x MODULE!*`, or a Volatility "
           "ISF of it";
  return "is " + what + " and no list of symbols that ptkit knows; give " + std::string(kKinds);
}

}  // namespace

namespace symbols {

void note_base(SymbolList& list, std::string_view name, std::uint64_t address) {
  constexpr std::array<std::string_view, 6> kOfImages = {"__executable_start", "__ehdr_start",
                                                         "__ImageBase",        "___ImageBase",
                                                         "__image_base__",     "___image_base__"};
  const bool is_kernel = address >= kKernelAddresses;
  const bool is_begin = is_kernel ? name == "_text" : std::ranges::find(kOfImages, name) != kOfImages.end();
  if (is_begin) list.linked_base = address;
}

}  // namespace symbols

base::Result<SymbolList> read_symbol_list(const std::string& path, base::Bytes contents) {
  const std::string_view text(reinterpret_cast<const char*>(contents.data()), contents.size());
  const bool is_text = !text.empty() && text.find('\0') == std::string_view::npos;
  for (const auto read : {&symbols::read_json_profile, &symbols::read_gnu_map, &symbols::read_segment_map,
                          &symbols::read_windbg, &symbols::read_plain_list}) {
    if (!is_text) break;
    symbols::ReadList found = read(text);
    if (!found.problem.empty()) return bad_file(path, found.problem);
    if (!found.list) continue;
    if (found.list->at_run_time) found.list->pid = pid_of(path);
    return std::move(*found.list);
  }
  return bad_file(path, describe_other(contents));
}

}  // namespace ptkit::formats
