#include "symbol/source_lines.h"

#include "dwarf/shared_files.h"
#include "symbol/row_views.h"

namespace ptkit::symbol {

struct SourceLines::Module {
  std::once_flag once;  // guards the others
  std::shared_ptr<const dwarf::DebugInfo> info;
  std::vector<image::FileSegment> segments;
  std::uint64_t linked_at = 0;
};

SourceLines::SourceLines(std::shared_ptr<const trace::TraceBundle> bundle)
    : bundle_(std::move(bundle)), modules_(std::make_unique<Module[]>(bundle_->files.size())) {}
SourceLines::~SourceLines() = default;

const SourceLines::Module* SourceLines::module_of(const image::Provenance& where) const {
  if (where.region < 0 || where.file < 0) return nullptr;
  const auto index = static_cast<std::size_t>(where.file);
  Module& module = modules_[index];
  std::call_once(module.once, [&] {
    const dwarf::SharedFile found = dwarf::debug_info_of(bundle_->files[index]);
    module.info = found.info;
    module.segments = image::file_segments(found.file.bytes());
    module.linked_at = image::linked_address(found.file.bytes()).value_or(0);
  });
  return module.info ? &module : nullptr;
}

std::optional<std::uint64_t> SourceLines::linked_address(const Module& module, const image::Provenance& where,
                                                         std::uint64_t address) const {
  const trace::CodeRegion& region = bundle_->code[static_cast<std::size_t>(where.region)];
  const std::uint64_t offset = region.file_offset + (address - region.address);
  const auto rva = image::rva_of(module.segments, region, offset);
  return rva ? std::optional(module.linked_at + *rva) : std::nullopt;
}

dwarf::SourceLine SourceLines::line_at(const image::Provenance& where, std::uint64_t address) const {
  const Module* const module = module_of(where);
  if (module == nullptr) return {};
  const auto linked = linked_address(*module, where, address);
  return linked ? module->info->line_at(*linked) : dwarf::SourceLine{};
}

std::vector<SourceFrame> SourceLines::frames_at(const image::Image& image, const image::CodeView& view,
                                                const Symbols& symbols, std::uint64_t address) const {
  const image::Provenance where = file_at(image, view, address);
  std::vector<SourceFrame> frames;
  if (const Module* const module = module_of(where)) {
    if (const auto linked = linked_address(*module, where, address)) {
      for (const dwarf::Frame& frame : module->info->frames_at(*linked))
        frames.push_back({demangle(frame.function), std::string(frame.at.file), frame.at.line});
    }
  }
  if (!frames.empty() && !frames.back().function.empty()) return frames;
  const auto symbol = symbols.find(view.space(), view.valid_from(), address);
  if (!symbol) return frames;
  if (frames.empty()) frames.emplace_back();
  frames.back().function = symbol->name;
  return frames;
}

}  // namespace ptkit::symbol
