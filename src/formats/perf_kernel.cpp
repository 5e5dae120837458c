#include "formats/perf_kernel.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "formats/files.h"
#include "image/elf.h"

namespace ptkit::formats::perf {

namespace {

struct Name {
  std::uint64_t address = 0;
  std::string_view text;
};

// "ffffffff81000000 T _stext", and "[module]" behind names of modules.
bool take_name(std::string_view line, Name& out) {
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), out.address, 16);
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  if (error != std::errc{} || line.size() < 4 || line[0] != ' ' || line[2] != ' ') return false;
  if (std::string_view("tTwW").find(line[1]) == std::string_view::npos) return false;
  line.remove_prefix(3);
  out.text = line.substr(0, line.find('\t'));
  return true;
}

void add_names(trace::TraceBundle& bundle, std::size_t file, std::string_view text) {
  std::vector<const trace::CodeRegion*> regions;
  for (const trace::CodeRegion& region : bundle.code) {
    if (region.file == static_cast<std::int32_t>(file)) regions.push_back(&region);
  }
  auto& symbols = bundle.files[file].symbols;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    Name name;
    const bool taken = take_name(text.substr(0, end), name);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!taken) continue;
    const auto region = std::ranges::find_if(
        regions, [&](const auto* one) { return name.address - one->address < one->size; });
    if (region == regions.end()) continue;
    symbols.push_back(
        {std::string(name.text), (*region)->file_offset + (name.address - (*region)->address), 0});
  }
}

}  // namespace

bool add_kernel(trace::TraceBundle& bundle, const std::string& folder) {
  const std::string path = join(folder, "kcore");
  if (!is_file(path)) return false;
  const auto added = image::add_elf(bundle, path, {});
  if (!added.ok()) {
    bundle.warnings.push_back(added.failure().detail + "; the kernel's code is not known.");
    return true;
  }
  const auto file = static_cast<std::size_t>(added.value());
  bundle.files[file].path = "[kernel]";
  bundle.files[file].contents = {};  // it has no symbols; kallsyms has them
  const auto names = trace::TraceBuffer::map_file(join(folder, "kallsyms"));
  if (names.ok()) {
    const base::Bytes text = names.value().bytes();
    add_names(bundle, file, {reinterpret_cast<const char*>(text.data()), text.size()});
  }
  return true;
}

}  // namespace ptkit::formats::perf
