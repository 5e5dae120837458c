#include "image/pe.h"

#include <optional>

#include "image/pe_file.h"
#include "trace/module_names.h"
#include "trace/warning_codes.h"

namespace ptkit::image {

namespace {

struct Module {
  std::uint64_t base = 0;
  std::uint64_t size = 0;  // 0: not known
};

// The recorded base and size of a module of this name.
std::optional<Module> recorded_module(const trace::TraceBundle& bundle, const std::string& path) {
  const auto is_it = [&](std::int32_t file) {
    return file >= 0 && trace::is_same_module(bundle.files[static_cast<std::size_t>(file)].path, path);
  };
  for (const trace::CodeRegion& region : bundle.code) {
    if (region.bytes.size() == 0 && is_it(region.file))
      return Module{region.address - region.file_offset, region.file_offset == 0 ? region.size : 0};
  }
  for (const trace::NameRange& range : bundle.names) {
    if (is_it(range.file) && bundle.files[static_cast<std::size_t>(range.file)].symbols.empty())
      return Module{range.address, range.size};
  }
  return std::nullopt;
}

// The size is the only recorded property that distinguishes builds.
void look_for_doubt(trace::TraceBundle& bundle, const std::string& path, std::uint64_t recorded,
                    std::uint64_t size) {
  constexpr std::uint64_t kPage = 4096;
  if (recorded == 0 || size == 0 || (size + kPage - 1) / kPage == (recorded + kPage - 1) / kPage) return;
  bundle.warnings.push_back(warn(trace::WarningCode::IMAGE_SIZE_MISMATCH, size, recorded).at(path));
}

}  // namespace

bool is_pe(base::Bytes file) noexcept {
  if (file.size() < 0x40 || file[0] != 'M' || file[1] != 'Z') return false;
  const std::uint64_t start = base::load_le<4>(file.data() + 0x3c);
  return start <= file.size() - 4 && base::load_le<4>(file.data() + start) == 0x4550;
}

base::Result<std::int32_t> add_pe(trace::TraceBundle& bundle, const std::string& path,
                                  const Placement& placement) {
  auto contents = trace::TraceBuffer::map_file(path);
  if (!contents.ok()) return contents.failure();
  const auto file = PeFile::open(contents.value().bytes());
  if (!file.ok())
    return base::Failure{base::Status::BAD_FILE, file.failure().offset, path + ": " + file.failure().detail};
  const auto recorded = recorded_module(bundle, path);
  const std::uint64_t otherwise = recorded ? recorded->base : file.value().linked_base();
  const std::uint64_t base = placement.load_address.value_or(otherwise);
  if (recorded && recorded->base == base) look_for_doubt(bundle, path, recorded->size, file.value().size());
  const auto index = static_cast<std::int32_t>(bundle.files.size());
  bundle.files.push_back({path, file.value().pdb().id, contents.value(), {}});
  const std::size_t before = bundle.code.size();
  for (const PeFile::Section& section : file.value().sections()) {
    if (section.file_size == 0) continue;
    trace::CodeRegion region;
    region.space = placement.space;
    region.address = base + section.address;
    region.bytes = contents.value().slice(section.offset, section.file_size);
    region.size = section.file_size;
    region.tsc_from = placement.tsc_from;
    region.tsc_to = placement.tsc_to;
    region.file = index;
    region.file_offset = section.offset;
    if (region.address + (region.size - 1) >= region.address) bundle.code.push_back(std::move(region));
  }
  if (bundle.code.size() != before) return index;
  bundle.files.pop_back();
  return base::Failure{base::Status::BAD_FILE, 0, path + ": no section has bytes in the file"};
}

std::string pe_pdb_name(base::Bytes bytes) {
  const auto file = PeFile::open(bytes);
  return file.ok() ? file.value().pdb().name : std::string();
}

}  // namespace ptkit::image
