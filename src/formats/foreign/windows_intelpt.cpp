// Files of WindowsIntelPT's control application: cpuNN_bin.bin has the consecutive buffers of a CPU,
// cpuNN_text.log has the name of the traced program in its first lines.
#include <algorithm>
#include <charconv>

#include "base/addresses.h"
#include "base/paths.h"
#include "code/image/pe/pe.h"
#include "formats/common/files.h"
#include "formats/common/missing_files.h"
#include "formats/common/numbered_files.h"
#include "formats/common/readers.h"
#include "trace/warning_codes.h"

namespace ptkit::formats {

using trace::WarningCode;

namespace {

constexpr std::string_view kBefore = "cpu";
constexpr std::string_view kAfter = "_bin.bin";
constexpr std::string_view kLogAfter = "_text.log";
constexpr std::size_t kHeadBytes = 4096;  // begin of the log: a header, then the stream as text
using base::kPageBytes;

bool sniff(const std::string& path) {
  if (is_folder(path)) return !numbered_files(path, kBefore, kAfter).empty();
  return number_in_name(path, kBefore, kAfter) && is_file(path);
}

struct Module {
  std::string name;
  std::uint64_t base = 0;
  std::uint64_t size = 0;
};

// Returns the text from a label to the end of its line.
std::string after(std::string_view text, std::string_view label) {
  const auto at = text.find(label);
  if (at == std::string_view::npos) return {};
  std::string_view rest = text.substr(at + label.size());
  rest = rest.substr(0, rest.find_first_of("\r\n"));
  const auto first = rest.find_first_not_of(' ');
  const auto last = rest.find_last_not_of(' ');
  return first == std::string_view::npos ? std::string() : std::string(rest.substr(first, last + 1 - first));
}

std::uint64_t hex_number(std::string_view text) {
  std::uint64_t value = 0;
  if (text.starts_with("0x")) text.remove_prefix(2);
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

Module module_of(std::string_view text) {
  text = text.substr(0, text.find("Begin Trace Dump:"));
  Module module;
  module.name = after(text, "Executable name:");
  if (module.name.empty()) module.name = after(text, "Kernel driver name:");
  const std::string place = after(text, "Base address:");
  module.base = hex_number(place);
  module.size = hex_number(after(place, "- Size"));
  return module;
}

class Loader {
 public:
  explicit Loader(const std::string& path) : path_(path) {}

  base::Result<trace::TraceBundle> load(const std::map<std::int64_t, std::string>& files) {
    auto streams = cpu_streams(path_, files);
    if (!streams.ok()) return streams.failure();
    bundle_.streams = std::move(streams.value());
    std::size_t cut = 0;
    for (const trace::Stream& stream : bundle_.streams) {
      cut += stream.data.size() % kPageBytes != 0 ? 1U : 0U;
      const std::string start = stream.name.substr(0, stream.name.size() - kAfter.size());
      add_module(module_of(first_bytes(start + std::string(kLogAfter), kHeadBytes)),
                 parent_folder(stream.name));
    }
    if (cut != 0) bundle_.warnings.push_back(warn(WarningCode::WINDOWS_BUFFER_CUT, cut).at(path_));
    return std::move(bundle_);
  }

 private:
  // The tool programs the module that it names as the range of the address filter.
  void add_range(const Module& module) {
    for (trace::AddressRange& range : bundle_.configuration.ranges) {
      if (range.kind != trace::RangeKind::OFF) continue;
      range = {trace::RangeKind::FILTER, module.base, module.base + (module.size - 1)};
      return;
    }
  }

  // The logs of all CPUs name the same module. The user supplies its file, in the streams' folder or as an
  // image.
  void add_module(const Module& module, const std::string& folder) {
    if (module.name.empty() || module.size == 0 || module.base + (module.size - 1) < module.base) return;
    const auto known = [&](const trace::CodeRegion& region) { return region.address == module.base; };
    if (std::any_of(bundle_.code.begin(), bundle_.code.end(), known)) return;
    trace::CodeRegion region;
    region.address = module.base;
    region.size = module.size;
    region.file = static_cast<std::int32_t>(bundle_.files.size());
    bundle_.files.push_back({module.name, "", {}, {}});
    bundle_.code.push_back(std::move(region));
    add_range(module);
    const std::string path = join(folder, std::string(base::last_part(module.name)));
    if (!is_file(path)) {
      const MissingFile missing{.path = module.name};
      list_missing_files(bundle_, {&missing, 1});
      return;
    }
    code::image::Placement placement;
    placement.load_address = module.base;
    if (const auto added = code::image::add_pe(bundle_, path, placement); !added.ok())
      bundle_.warnings.push_back(warn(WarningCode::IMAGE_UNREADABLE, added.failure().detail));
  }

  std::string path_;
  trace::TraceBundle bundle_;
};

base::Result<trace::TraceBundle> read(const std::string& path, const OpenOptions&) {
  if (is_folder(path)) {
    const auto files = numbered_files(path, kBefore, kAfter);
    if (files.empty()) return bad_file(path, "expected files cpu00_bin.bin, cpu01_bin.bin, ..., found none");
    return Loader(path).load(files);
  }
  const auto cpu = number_in_name(path, kBefore, kAfter);
  if (!cpu) return bad_file(path, "expected a file named cpuNN_bin.bin");
  return Loader(path).load({{*cpu, path}});
}

}  // namespace

const Format kWindowsIntelPtFormat{
    .name = "windows-intelpt",
    .description = "WindowsIntelPT's cpuNN_bin.bin with cpuNN_text.log",
    .sniff = &sniff,
    .read = &read,
    .unverified = true,
};

}  // namespace ptkit::formats
