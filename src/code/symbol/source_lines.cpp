#include "code/symbol/source_lines.h"

#include "code/symbol/names/demangle.h"
#include "code/symbol/row_views.h"

namespace ptkit::code::symbol {

source::SourceLine LineFinder::line_at(const code::image::Provenance& where, std::uint64_t address) {
  if (where.file != file_) {
    file_ = where.file;
    cursor_.reset();
    if (const source::SourceInfo* const lines = modules_.lines_of(file_)) cursor_ = lines->line_cursor();
  }
  if (!cursor_) return {};
  const auto linked = modules_.linked_address(where.region, address);
  return linked ? cursor_->at(*linked) : source::SourceLine{};
}

source::SourceLine LineFinder::declaration_at(const code::image::Provenance& where, std::uint64_t address) {
  const source::SourceLine line = line_at(where, address);
  const auto linked = modules_.linked_address(where.region, address);
  if (line.file.empty() || !linked) return line;
  const source::SourceLine declared = modules_.lines_of(where.file)->declaration_at(*linked);
  return declared.file == line.file && declared.line != 0 ? declared : line;
}

std::string_view SourceLines::inlined_at(const code::image::Provenance& where, std::uint64_t address,
                                         std::uint32_t level) const {
  const source::SourceInfo* const lines = modules_->lines_of(where.file);
  const auto linked = modules_->linked_address(where.region, address);
  if (lines == nullptr || !linked) return {};
  const std::vector<source::Frame> frames = lines->frames_at(*linked);
  return level < frames.size() ? frames[frames.size() - 1 - level].function : std::string_view{};
}

std::uint32_t SourceLines::levels_at(const code::image::Provenance& where, std::uint64_t address) const {
  const source::SourceInfo* const lines = modules_->lines_of(where.file);
  const auto linked = modules_->linked_address(where.region, address);
  if (lines == nullptr || !linked) return 0;
  const std::uint32_t call = lines->inlined_at(*linked).call;
  return call == source::InlinedCall::kNone ? 0 : lines->inlined_call(call).level;
}

std::vector<SourceFrame> SourceLines::frames_at(const code::image::Image& image,
                                                const code::image::CodeView& view, const Symbols& symbols,
                                                std::uint64_t address) const {
  const code::image::Provenance where = file_at(image, view, address);
  std::vector<SourceFrame> frames;
  const source::SourceInfo* const lines = modules_->lines_of(where.file);
  if (const auto linked = modules_->linked_address(where.region, address); linked && lines != nullptr) {
    for (const source::Frame& frame : lines->frames_at(*linked))
      frames.push_back({demangle(frame.function), std::string(frame.at.file), frame.at.line});
  }
  if (!frames.empty() && !frames.back().function.empty()) return frames;
  const auto symbol = symbols.find(view.space(), view.valid_from(), address);
  if (!symbol) return frames;
  if (frames.empty()) frames.emplace_back();
  frames.back().function = symbol->name;
  return frames;
}

}  // namespace ptkit::code::symbol
