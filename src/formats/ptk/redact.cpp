#include "formats/ptk/redact.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "code/image/files/imports.h"
#include "trace/module_names.h"

namespace ptkit::formats::ptk {

namespace {

// Names that the kernel gives to mappings without a file. "[anon:...]" is not listed: the program chooses the
// rest of that name.
constexpr std::array<std::string_view, 5> kKernelNames{"[vdso]", "[vsyscall]", "[heap]", "[stack]",
                                                       "[uprobes]"};

// `machine` is the kernel's version and the processor's name.
constexpr std::array<std::string_view, 8> kPublicMembers{"backend", "machine",      "cpu",          "clock",
                                                         "ranges",  "space_ranges", "ranges_known", "failed"};

// Recorders append paths (of QEMU, say) to the machine's description. The text from the comma before a path
// on is removed.
Json without_path(const Json& machine) {
  if (!machine.is_string()) return {};
  const auto text = machine.get<std::string>();
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) return machine;
  const std::size_t comma = text.rfind(',', slash);
  return comma == std::string::npos ? std::string() : text.substr(0, comma);
}

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// JIT compilers put paths of source files behind names: "py::f:/srv/file.py", "JS:~f /srv/file.js:12:3".
// Names of Java classes have slashes, too: "Ljava/lang/String;::charAt".
std::string name_without_path(const std::string& name) {
  const bool is_python = name.starts_with("py::");
  const std::size_t path = is_python ? name.find(':', 4) : name.find('/');
  const bool is_class = name.starts_with('L') && name.find(';') < name.find_first_of(" :");
  if (path == std::string::npos || is_class) return name;
  const std::size_t end = is_python ? path + 1 : name.find_last_of(" :", path);
  return end == std::string::npos ? "[function]" : name.substr(0, end);
}

}  // namespace

trace::Stream redacted(std::uint32_t id, trace::Stream stream) {
  if (stream.tid != trace::kNoId) {
    stream.name = "thread " + std::to_string(stream.tid);
  } else if (stream.cpu != trace::kNoId) {
    stream.name = "cpu " + std::to_string(stream.cpu);
  } else {
    stream.name = "stream " + std::to_string(id);
  }
  return stream;
}

trace::ImageFile redacted(std::uint32_t id, trace::ImageFile file) {
  if (trace::pid_of_jit_map(file.path) || trace::is_jit_dump(file.path)) {
    for (trace::SymbolEntry& one : file.symbols) one.name = name_without_path(one.name);
  }
  if (!is_one_of(kKernelNames, file.path)) file.path = "file-" + std::to_string(id);
  const auto imports = code::image::Imports::decode(file.imports);
  file.imports = imports ? imports->redacted().encode() : std::vector<std::uint8_t>();
  file.debug = {};  // has the paths of source files
  return file;
}

trace::Sideband redacted(trace::Sideband record) {
  if (!is_one_of(kKernelNames, record.text)) record.text.clear();
  return record;
}

Json redacted_meta(const Json& meta) {
  Json out = Json::object();
  if (!meta.is_object()) return out;
  for (const auto& [name, value] : meta.items()) {
    if (is_one_of(kPublicMembers, name) || value.is_number() || value.is_boolean()) out[name] = value;
  }
  if (out.contains("machine")) out["machine"] = without_path(out["machine"]);
  const auto warnings = meta.find("warnings");
  if (warnings == meta.end() || !warnings->is_array()) return out;
  for (const Json& warning : *warnings) {
    if (warning.is_string() && names_no_path(warning.get<std::string>())) out["warnings"].push_back(warning);
  }
  return out;
}

bool names_no_path(const std::string& warning) { return warning.find('/') == std::string::npos; }

}  // namespace ptkit::formats::ptk
