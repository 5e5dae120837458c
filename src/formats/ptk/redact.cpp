#include "formats/ptk/redact.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace ptkit::formats::ptk {

namespace {

// Names that the kernel gives to mappings without a file. "[anon:...]" is not listed: the program chooses the
// rest of that name.
constexpr std::array<std::string_view, 5> kKernelNames{"[vdso]", "[vsyscall]", "[heap]", "[stack]",
                                                       "[uprobes]"};

// `machine` is the kernel's version and the processor's name.
constexpr std::array<std::string_view, 6> kPublicMembers{"backend", "machine", "cpu",
                                                         "clock",   "ranges",  "failed"};

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
  if (!is_one_of(kKernelNames, file.path)) file.path = "file-" + std::to_string(id);
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
