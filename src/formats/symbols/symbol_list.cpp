#include "formats/symbols/symbol_list.h"

#include <algorithm>
#include <array>
#include <memory>

#include "base/paths.h"
#include "code/source/pdb/pdb_file.h"
#include "formats/common/files.h"
#include "formats/symbols/readers.h"
#include "trace/module_names.h"

namespace ptkit::formats {
namespace {

constexpr std::string_view kKinds =
    "the output of nm, a System.map or kallsyms, a map of IDA, Microsoft's linker or GNU ld (-Map), the "
    "output of "
    "WinDbg's x or lm, a Volatility ISF or Rekall profile (JSON), a perf-PID.map, or a PDB";

// Why the file is no list, and what helps.
std::string describe_other(base::Bytes contents) {
  const std::string what = describe(contents);
  const std::string_view text(reinterpret_cast<const char*>(contents.data()), contents.size());
  if (text.starts_with("\x7f"
                       "ELF") ||
      text.starts_with("MZ"))
    return "is a program, no list of symbols; give it as an image (--image PATH[@ADDRESS], images=)";
  if (text.starts_with("Microsoft C/C++ program database 2.00"))
    return "is a PDB of Visual C++ 6 or older, which ptkit does not read; give the output of WinDbg's "
           "`x MODULE!*`";
  return "is " + what + " and no list of symbols that ptkit knows; give " + std::string(kKinds);
}

// Names of a PDB; see `problem` where there are none. A file at the path is read once for all its uses.
SymbolList read_pdb(const std::string& path, base::Bytes contents) {
  std::shared_ptr<const code::pdb::PdbFile> file = code::pdb::shared_pdb(path);
  if (!file || !std::ranges::equal(file->bytes(), contents))
    file = std::make_shared<const code::pdb::PdbFile>(path, trace::TraceBuffer(contents, nullptr));
  const auto names = file->names();
  SymbolList list{.kind = "PDB", .symbols = names->symbols};
  list.linked_base = 0;
  list.module = base::last_part(path);
  list.pdb = file->id()->id;
  list.only_by_id = true;
  list.problem = names->problem;
  return list;
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
  if (code::pdb::is_pdb(contents)) return read_pdb(path, contents);
  const bool is_text = !text.empty() && text.find('\0') == std::string_view::npos;
  for (const auto read : {&symbols::read_json_profile, &symbols::read_gnu_map, &symbols::read_segment_map,
                          &symbols::read_windbg, &symbols::read_plain_list}) {
    if (!is_text) break;
    symbols::ReadList found = read(text);
    if (!found.problem.empty()) return bad_file(path, found.problem);
    if (!found.list) continue;
    if (found.list->at_run_time) found.list->pid = trace::pid_of_jit_map(path).value_or(trace::kNoId);
    return std::move(*found.list);
  }
  return bad_file(path, describe_other(contents));
}

}  // namespace ptkit::formats
