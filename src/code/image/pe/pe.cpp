#include "code/image/pe/pe.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/hexadecimal.h"
#include "code/image/pe/pe_file.h"
#include "code/image/pe/pe_relocations.h"
#include "trace/module_names.h"
#include "trace/warning_codes.h"

namespace ptkit::code::image {

namespace {

// Copies and relocates a section at its first use.
class RelocatedSection final : public trace::ByteSource {
 public:
  RelocatedSection(trace::TraceBuffer section, trace::TraceBuffer file,
                   std::shared_ptr<const PeRelocations> relocations, std::uint64_t delta, std::uint32_t rva)
      : section_(std::move(section)),
        file_(std::move(file)),
        relocations_(std::move(relocations)),
        delta_(delta),
        rva_(rva),
        bytes_(std::make_unique_for_overwrite<std::uint8_t[]>(section_.size())) {}

  [[nodiscard]] base::Bytes bytes() const noexcept { return {bytes_.get(), section_.size()}; }
  void need(std::size_t /*begin*/, std::size_t /*end*/) noexcept override {
    std::call_once(once_, [this] {
      std::ranges::copy(section_.bytes(), bytes_.get());
      relocations_->apply(delta_, rva_, {bytes_.get(), section_.size()});
    });
  }
  [[nodiscard]] std::optional<trace::TraceBuffer> again() const override { return std::nullopt; }
  void forget_before(std::size_t /*end*/) noexcept override {}

 private:
  trace::TraceBuffer section_;
  trace::TraceBuffer file_;
  std::shared_ptr<const PeRelocations> relocations_;
  std::uint64_t delta_;
  std::uint32_t rva_;
  std::unique_ptr<std::uint8_t[]> bytes_;
  std::once_flag once_;
};

// The bytes of a section at an RVA, moved by `delta`; copied at their first use. `file` keeps what the
// relocations refer to.
trace::TraceBuffer relocated(const trace::TraceBuffer& section, const trace::TraceBuffer& file,
                             std::shared_ptr<const PeRelocations> relocations, std::uint64_t delta,
                             std::uint32_t rva) {
  auto source = std::make_shared<RelocatedSection>(section, file, std::move(relocations), delta, rva);
  const base::Bytes bytes = source->bytes();
  return trace::TraceBuffer::from_source(bytes, std::move(source));
}

struct Module {
  std::uint64_t base = 0;
  std::uint64_t size = 0;  // 0: not known
};

// The recorded base and size of a module of this name.
std::optional<Module> recorded_module(const trace::TraceBundle& bundle, const std::string& path) {
  const auto is_it = [&](std::int32_t file) {
    const trace::ImageFile* const image = bundle.file(file);
    return image != nullptr && trace::is_same_module(image->path, path);
  };
  for (const trace::CodeRegion& region : bundle.code) {
    if (region.bytes.size() == 0 && is_it(region.file))
      return Module{region.address - region.file_offset, region.file_offset == 0 ? region.size : 0};
  }
  for (const trace::NameRange& range : bundle.names) {
    if (is_it(range.file) && bundle.file(range.file)->symbols.empty())
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

// The regions of a PE file or dump at a base.
class Mapper {
 public:
  Mapper(trace::TraceBuffer contents, const PeFile& file, std::uint64_t base, const Placement& placement)
      : contents_(std::move(contents)), file_(file), base_(base), placement_(placement) {}

  // Moves the image to its base, unless a loader has.
  void relocate(PeLayout layout) {
    if (base_ == file_.linked_base()) return;
    auto found = std::make_shared<const PeRelocations>(file_);
    if (!found->are_applied(file_, base_, layout == PeLayout::MEMORY)) relocations_ = std::move(found);
  }

  // With `headers`, a region of what lies before the sections. Returns the number of regions.
  std::size_t add(trace::TraceBundle& bundle, std::int32_t index, bool headers) {
    const std::size_t before = bundle.code.size();
    if (headers) add(bundle, index, 0, 0, file_.header_size());
    for (const PeFile::Section& section : file_.sections())
      add(bundle, index, section.address, section.offset, section.file_size);
    return bundle.code.size() - before;
  }

 private:
  void add(trace::TraceBundle& bundle, std::int32_t index, std::uint32_t rva, std::uint32_t offset,
           std::uint32_t size) {
    if (size == 0) return;
    trace::CodeRegion region;
    region.space = placement_.space;
    region.address = base_ + rva;
    region.bytes = contents_.slice(offset, size);
    if (relocations_ && relocations_->any_in(rva, size))
      region.bytes = relocated(region.bytes, contents_, relocations_, base_ - file_.linked_base(), rva);
    region.size = size;
    region.tsc_from = placement_.tsc_from;
    region.tsc_to = placement_.tsc_to;
    region.file = index;
    region.file_offset = offset;
    if (region.address + (region.size - 1) >= region.address) bundle.code.push_back(std::move(region));
  }

  trace::TraceBuffer contents_;
  const PeFile& file_;
  std::uint64_t base_;
  const Placement& placement_;
  std::shared_ptr<const PeRelocations> relocations_;  // null: the bytes are those in memory
};

// Bytes in the layout that readers of PE files read.
trace::TraceBuffer readable(const trace::TraceBuffer& contents, PeLayout layout) {
  return layout == PeLayout::FILE ? contents : trace::TraceBuffer::from_vector(as_file(contents.bytes()));
}

// The image's name in its exports, or that of its PDB.
std::string own_name(const PeFile& file, std::uint64_t address) {
  const base::Bytes exports = file.at_address(file.directory(PeFile::kExports).address, 16);
  const auto at = exports.empty() ? std::nullopt : file.offset_of(load_u32(exports, 12));
  std::string name(at && *at != 0 ? file.text_at(*at) : std::string_view());
  if (name.empty()) name = file.pdb().name;
  return name.empty() ? "image at " + base::hexadecimal(address) : name;
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
  const base::Bytes bytes = contents.value().bytes();
  const PeLayout layout = placement.layout ? *placement.layout : layout_of(bytes);
  const auto file = PeFile::open(bytes, layout);
  if (!file.ok())
    return base::Failure{base::Status::BAD_FILE, file.failure().offset, path + ": " + file.failure().detail};
  const auto recorded = recorded_module(bundle, path);
  const std::uint64_t otherwise = recorded ? recorded->base : file.value().linked_base();
  const std::uint64_t base = placement.load_address.value_or(otherwise);
  if (recorded && recorded->base == base) look_for_doubt(bundle, path, recorded->size, file.value().size());
  Mapper mapper(contents.value(), file.value(), base, placement);
  mapper.relocate(layout);
  const auto index = static_cast<std::int32_t>(bundle.files.size());
  if (mapper.add(bundle, index, layout == PeLayout::MEMORY) == 0)
    return base::Failure{base::Status::BAD_FILE, 0, path + ": no section has bytes in the file"};
  bundle.files.push_back({path, file.value().id(), readable(contents.value(), layout), {}});
  return index;
}

std::int32_t add_code(trace::TraceBundle& bundle, const std::string& name, const trace::TraceBuffer& code,
                      std::uint64_t address, trace::SpaceId space) {
  const base::Bytes bytes = code.bytes();
  const bool is_image = is_pe(bytes) && layout_of(bytes) == PeLayout::MEMORY;
  const base::Result<PeFile> file =
      is_image ? PeFile::open(bytes, PeLayout::MEMORY) : base::Result<PeFile>(base::Failure{});
  if (file.ok()) {
    Placement placement;
    placement.space = space;
    const auto index = static_cast<std::int32_t>(bundle.files.size());
    if (Mapper(code, file.value(), address, placement).add(bundle, index, true) != 0) {
      const std::string shown = name.empty() ? own_name(file.value(), address) : name;
      bundle.files.push_back({shown, file.value().id(), readable(code, PeLayout::MEMORY), {}});
      return index;
    }
  }
  trace::CodeRegion region;
  region.address = address;
  region.bytes = code;
  region.size = code.size();
  region.space = space;
  bundle.code.push_back(std::move(region));
  return -1;
}

std::uint64_t pe_image_bytes(base::Bytes bytes) {
  const auto file = PeFile::open(bytes);
  return file.ok() ? file.value().size() : 0;
}

std::string pe_pdb_name(base::Bytes bytes) {
  const auto file = PeFile::open(bytes);
  return file.ok() ? file.value().pdb().name : std::string();
}

}  // namespace ptkit::code::image
