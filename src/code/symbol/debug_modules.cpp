#include "code/symbol/debug_modules.h"

#include <utility>

#include "code/bounds/table.h"
#include "code/image/elf/elf.h"
#include "code/image/files/segments.h"
#include "code/source/dwarf/files/search.h"
#include "code/source/dwarf/small_names.h"
#include "code/source/pdb/pdb_info.h"
#include "code/source/pdb/search.h"
#include "trace/warning_codes.h"

namespace ptkit::code::symbol {
namespace {

// A program's own symbols are left out if the bundle has them.
std::vector<trace::SymbolEntry> names_in(const dwarf::DebugFiles& files, const trace::ImageFile& file) {
  std::vector<trace::SymbolEntry> names;
  if (files.debug) names = code::image::elf_debug_symbols(files.debug->bytes());
  if (!files.program || !names.empty()) return names;
  if (file.contents.size() == 0 && file.symbols.empty())
    names = code::image::elf_debug_symbols(files.program->bytes());
  return names.empty() ? dwarf::small_names(files.program->bytes()) : names;
}

}  // namespace

struct DebugModules::Module {
  std::once_flag once;  // guards these
  dwarf::DebugFiles files;
  std::shared_ptr<const pdb::PdbFile> pdb;  // null: none
  std::vector<code::image::FileSegment> segments;
  bounds::UnwindTable unwind;
  std::uint64_t linked_at = 0;

  std::once_flag names_once;
  std::unique_ptr<const Table> names;

  std::once_flag lines_once;
  const source::SourceInfo* lines = nullptr;
  std::unique_ptr<const pdb::PdbInfo> pdb_lines;
};

DebugModules::DebugModules(std::shared_ptr<const trace::TraceBundle> bundle, dwarf::Folders folders)
    : bundle_(std::move(bundle)),
      loads_(bundle_),
      folders_(std::move(folders)),
      modules_(std::make_unique<Module[]>(bundle_->files.size())) {}
DebugModules::~DebugModules() = default;

DebugModules::Module* DebugModules::module_of(std::int32_t file) const {
  const trace::ImageFile* const image = bundle_->file(file);
  if (image == nullptr) return nullptr;
  Module& module = modules_[static_cast<std::size_t>(file)];
  std::call_once(module.once, [&] { find_files(module, *image); });
  return &module;
}

void DebugModules::find_files(Module& module, const trace::ImageFile& file) const {
  module.files = dwarf::find_debug_files(file, folders_);
  if (!module.files.other.empty())
    report(trace::warn(trace::WarningCode::DEBUG_FILE_DIFFERS, module.files.other).at(file.path));
  if (module.files.program) {
    module.segments = code::image::file_segments(module.files.program->bytes());
  } else {
    module.unwind = bounds::UnwindTable::of(file);
  }
  for (const auto& one : {module.files.program, module.files.debug}) {
    if (one == nullptr) continue;
    module.linked_at = code::image::linked_address(one->bytes()).value_or(0);
    break;
  }
  pdb::FoundPdb found = pdb::find_pdb(file, folders_);
  module.pdb = std::move(found.file);
  for (trace::Warning& problem : found.problems) report(std::move(problem));
}

const Table* DebugModules::names_of(std::int32_t file) const {
  Module* const module = module_of(file);
  if (module == nullptr) return nullptr;
  std::call_once(module->names_once, [&] {
    auto names = module->pdb ? names_in_pdb(*module)
                             : names_in(module->files, bundle_->files[static_cast<std::size_t>(file)]);
    if (!names.empty()) module->names = std::make_unique<const Table>(std::move(names));
  });
  return module->names.get();
}

std::vector<trace::SymbolEntry> DebugModules::names_in_pdb(const Module& module) const {
  const auto names = module.pdb->names();
  if (names->problem) report(*names->problem);
  std::vector<trace::SymbolEntry> found = names->symbols;
  for (trace::SymbolEntry& one : found) one.file_offset += module.linked_at;
  return found;
}

bool DebugModules::has_pdb(std::int32_t file) const {
  const Module* const module = module_of(file);
  return module != nullptr && module->pdb != nullptr;
}

const source::SourceInfo* DebugModules::lines_of(std::int32_t file) const {
  Module* const module = module_of(file);
  if (module == nullptr) return nullptr;
  std::call_once(module->lines_once,
                 [&] { find_lines(*module, bundle_->files[static_cast<std::size_t>(file)].path); });
  return module->lines;
}

void DebugModules::find_lines(Module& module, const std::string& path) const {
  if (module.pdb) {
    const auto tables = module.pdb->tables();
    for (const trace::Warning& problem : tables->problems) report(problem);
    if (tables->is_cut) report(trace::warn(trace::WarningCode::DEBUG_INFO_CUT).at(module.pdb->path()));
    module.pdb_lines = std::make_unique<const pdb::PdbInfo>(tables, module.linked_at);
    module.lines = module.pdb_lines.get();
    return;
  }
  for (const auto& one : {module.files.program, module.files.debug}) {
    if (one == nullptr) continue;
    const dwarf::DebugInfo* const info = one->debug_info(folders_);
    if (!one->missing_part().empty())
      report(trace::warn(trace::WarningCode::DEBUG_PART_MISSING, one->missing_part()).at(one->path()));
    if (info == nullptr) continue;
    module.lines = info;
    const std::lock_guard lock(mutex_);
    watched_.push_back({info, one->path(), false, false});
    return;
  }
  if (module.files.is_rebuilt) report(trace::warn(trace::WarningCode::DEBUG_PROGRAM_DIFFERS).at(path));
}

std::optional<std::uint64_t> DebugModules::linked_address(std::int32_t region_index,
                                                          std::uint64_t address) const {
  if (region_index < 0) return std::nullopt;
  const trace::CodeRegion& region = bundle_->code[static_cast<std::size_t>(region_index)];
  const Module* const module = module_of(region.file);
  if (module == nullptr) return std::nullopt;
  const std::uint64_t offset = region.file_offset + (address - region.address);
  auto rva = code::image::rva_of(module->segments, region, offset);
  if (!rva) rva = module->unwind.rva_of(offset);
  if (!rva) rva = loads_.known_rva(region_index, address);
  return rva ? std::optional(module->linked_at + *rva) : std::nullopt;
}

void DebugModules::report(trace::Warning problem) const {
  const std::lock_guard lock(mutex_);
  problems_.push_back(std::move(problem));
}

std::vector<trace::Warning> DebugModules::take_problems() const {
  const std::lock_guard lock(mutex_);
  for (Watched& one : watched_) {
    if (!one.is_cut && one.info->is_cut()) {
      problems_.push_back(trace::warn(trace::WarningCode::DEBUG_INFO_CUT).at(one.path));
      one.is_cut = true;
    }
    if (const std::string missing = one.info->missing_split(); !one.lacks_split && !missing.empty()) {
      problems_.push_back(trace::warn(trace::WarningCode::DEBUG_SPLIT_MISSING, missing).at(one.path));
      one.lacks_split = true;
    }
  }
  return std::exchange(problems_, {});
}

}  // namespace ptkit::code::symbol
