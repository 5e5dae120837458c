#include "formats/symbols/symbol_list.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/hexadecimal.h"
#include "base/interval_map.h"
#include "base/paths.h"
#include "code/image/files/code_file.h"
#include "code/image/files/segments.h"
#include "code/source/pdb/pdb_file.h"
#include "code/symbol/load_addresses.h"
#include "trace/module_names.h"
#include "trace/warning_codes.h"

namespace ptkit::formats {
namespace {

constexpr std::uint64_t kLast = ~std::uint64_t{0};

struct LoadAddress {
  trace::SpaceId space = trace::kAnySpace;
  std::uint64_t base = 0;
  std::uint64_t end = 0;
  std::int32_t file = -1;
};

// The name of the list's file without extensions of lists: "libc.so.6" of "lists/libc.so.6.nm.gz".
std::string_view without_extensions(std::string_view path) {
  constexpr std::array<std::string_view, 11> kOfLists = {".nm",   ".map", ".txt", ".sym", ".syms", ".symbols",
                                                         ".json", ".log", ".lst", ".xz",  ".gz"};
  std::string_view name = base::last_part(path);
  for (std::size_t i = 0; i < kOfLists.size();) {
    const bool ends = name.size() > kOfLists[i].size() && name.ends_with(kOfLists[i]);
    if (ends) name.remove_suffix(kOfLists[i].size());
    i = ends ? 0 : i + 1;
  }
  return name;
}

class SymbolPlacement {
 public:
  SymbolPlacement(trace::TraceBundle& bundle, const std::string& path, SymbolList list,
                  std::optional<std::uint64_t> cr3)
      : bundle_(bundle), path_(path), list_(std::move(list)) {
    count_ = list_.symbols.size();
    if (cr3) spaces_ = code::image::spaces_with(bundle_, *cr3);
    for (const trace::SymbolEntry& one : list_.symbols) lowest_ = std::min(lowest_, one.file_offset);
  }

  std::optional<base::Failure> add(std::optional<std::uint64_t> base) {
    if (base && list_.at_run_time) return has_own_addresses();
    if (!list_.at_run_time) find_loads();
    if (list_.only_by_id && loads_.empty() && is_of_other_build(base)) return std::nullopt;
    if (base) {
      use_image();
      add_ranges(loads_at(*base), linked_base());
    } else if (list_.at_run_time) {
      add_as_they_are();
    } else if (!loads_.empty()) {
      use_image();
      const bool fits = lowest_ >= loads_[0].base && lowest_ < loads_[0].end;
      add_ranges(loads_, list_.linked_base || image_base_ || !fits ? linked_base() : loads_[0].base);
    } else if (!list_.only_by_id && (lowest_ >= kKernelAddresses || has_symbols_at_code())) {
      add_as_they_are();
    } else {
      return failure();
    }
    if (!bundle_.code.empty() && !is_at_code_) {
      bundle_.warnings.push_back(warn(trace::WarningCode::SYMBOLS_ELSEWHERE, count_).at(path_));
    }
    return std::nullopt;
  }

 private:
  // Load addresses of the module that the list is of.
  void find_loads() {
    std::set<std::int32_t> files;
    const auto add_files = [&](const auto& is_it) {
      for (std::size_t i = 0; i < bundle_.files.size(); ++i) {
        if (is_it(bundle_.files[i])) files.insert(static_cast<std::int32_t>(i));
      }
    };
    if (!list_.pdb.empty()) add_files([&](const auto& file) { return file.build_id == list_.pdb; });
    for (const std::string_view name : {std::string_view(list_.module), without_extensions(path_)}) {
      if (!files.empty() || name.empty() || list_.only_by_id) continue;
      add_files([&](const auto& file) { return trace::is_same_module(name, file.path); });
    }
    const auto same = std::shared_ptr<const trace::TraceBundle>(&bundle_, [](const auto*) {});
    std::map<std::pair<trace::SpaceId, std::uint64_t>, std::size_t> known;
    for (const code::symbol::Mapping& one : code::symbol::LoadAddresses(same).mappings()) {
      if (!files.contains(one.file)) continue;
      if (!spaces_.empty() && std::ranges::find(spaces_, one.space) == spaces_.end()) continue;
      const std::uint64_t base = one.address - one.rva;
      const auto [at, is_new] = known.try_emplace({one.space, base}, loads_.size());
      if (is_new) loads_.push_back({one.space, base, 0, one.file});
      LoadAddress& load = loads_[at->second];
      load.end = std::max(load.end, one.address + one.size);
    }
  }

  // The spaces that have the module at the base, if the recording tells; else those that are given, or all.
  [[nodiscard]] std::vector<LoadAddress> loads_at(std::uint64_t base) const {
    std::vector<LoadAddress> found;
    for (const LoadAddress& load : loads_) {
      if (load.base == base) found.push_back({load.space, base, base, -1});
    }
    const auto of_all = [](const LoadAddress& load) { return load.space == trace::kAnySpace; };
    if (!found.empty() && std::ranges::none_of(found, of_all)) return found;
    found.clear();
    for (const trace::SpaceId space : given_spaces()) found.push_back({space, base, base, -1});
    return found;
  }

  [[nodiscard]] std::vector<trace::SpaceId> given_spaces() const {
    return spaces_.empty() ? std::vector{trace::kAnySpace} : spaces_;
  }

  // Whether a module at the base, or of the list's name, has the id of another PDB: a warning says so.
  bool is_of_other_build(std::optional<std::uint64_t> base) {
    const auto same = std::shared_ptr<const trace::TraceBundle>(&bundle_, [](const auto*) {});
    for (const code::symbol::Mapping& one : code::symbol::LoadAddresses(same).mappings()) {
      if (one.file < 0) continue;
      const trace::ImageFile& file = bundle_.files[static_cast<std::size_t>(one.file)];
      const bool is_it =
          base ? one.address - one.rva == *base : trace::is_same_module(list_.module, file.path);
      if (!is_it || !code::pdb::is_pdb_id(file.build_id)) continue;
      bundle_.warnings.push_back(
          warn(trace::WarningCode::PDB_DIFFERS, path_, list_.pdb, file.build_id).at(file.path));
      return true;
    }
    return false;
  }

  // Takes the linked address and the begins of segments from the module's image.
  void use_image() {
    for (const LoadAddress& load : loads_) {
      const base::Bytes image = bundle_.files[static_cast<std::size_t>(load.file)].contents.bytes();
      image_base_ = code::image::linked_address(image);
      if (!image_base_) continue;
      for (ListedSegment& segment : list_.segments) move_segment(image, segment);
      return;
    }
  }

  void move_segment(base::Bytes image, const ListedSegment& segment) {
    const auto rva = code::image::section_rva(image, segment.name);
    if (!rva || *rva == segment.begin) return;
    for (std::size_t i = 0; i < list_.symbols.size(); ++i) {
      if (moved_.size() != list_.symbols.size()) moved_.resize(list_.symbols.size());
      std::uint64_t& address = list_.symbols[i].file_offset;
      if (moved_[i] || address < segment.begin || address - segment.begin >= segment.size) continue;
      address = *rva + (address - segment.begin);
      moved_[i] = true;
    }
  }

  // The base of the list's addresses.
  [[nodiscard]] std::uint64_t linked_base() const {
    constexpr std::uint64_t kLowestProgram = 0x40'0000;  // of programs that are not position independent
    constexpr std::uint64_t kAlignment = 0x1'0000;
    constexpr std::uint64_t kMostHeaders = 0x3000;
    if (list_.linked_base) return *list_.linked_base;
    if (image_base_) return *image_base_;
    const bool is_like_program = lowest_ >= kLowestProgram && lowest_ % kAlignment < kMostHeaders;
    return is_like_program ? lowest_ / kAlignment * kAlignment : 0;
  }

  void add_as_they_are() {
    std::vector<LoadAddress> spaces;
    for (std::size_t i = 1; i < bundle_.spaces.size() && list_.pid != trace::kNoId; ++i) {
      if (bundle_.spaces[i].pid == list_.pid) spaces.push_back({static_cast<trace::SpaceId>(i), 0, 0, -1});
    }
    if (spaces.empty() || !spaces_.empty()) {
      spaces.clear();
      for (const trace::SpaceId space : given_spaces()) spaces.push_back({space, 0, 0, -1});
    }
    add_ranges(spaces, 0);
  }

  // Adds the list as a file, and ranges of its symbols: their addresses less `linked` count from each base.
  void add_ranges(const std::vector<LoadAddress>& loads, std::uint64_t linked) {
    const auto file = static_cast<std::int32_t>(bundle_.files.size());
    std::erase_if(list_.symbols,
                  [linked](const trace::SymbolEntry& one) { return one.file_offset < linked; });
    if (list_.symbols.empty()) return;
    std::uint64_t first = kLast;
    std::uint64_t last = 0;
    for (trace::SymbolEntry& one : list_.symbols) {
      one.file_offset -= linked;
      first = std::min(first, one.file_offset);
      const std::uint64_t more = one.size == 0 ? kLongestTail : one.size - 1;
      last = std::max(last, one.file_offset + std::min(more, kLast - one.file_offset));
    }
    for (const LoadAddress& load : loads) {
      std::uint64_t end = last;
      if (load.end > load.base) end = std::max(first, std::min(last, load.end - load.base - 1));
      if (first > kLast - load.base) continue;
      end = std::min(end, kLast - load.base);
      bundle_.names.push_back({load.space, load.base + first, end - first + 1, file, first});
      is_at_code_ = is_at_code_ || has_symbols_at_code(load.base);
    }
    bundle_.files.push_back({path_, "", {}, std::move(list_.symbols)});
  }

  [[nodiscard]] bool has_symbols_at_code(std::uint64_t base = 0) {
    if (!code_) {
      code_.emplace();
      for (const trace::CodeRegion& region : bundle_.code)
        code_->assign_size(region.address, region.size, true);
    }
    return std::ranges::any_of(list_.symbols, [&](const trace::SymbolEntry& one) {
      return code_->find(base + one.file_offset) != code_->end();
    });
  }

  [[nodiscard]] base::Failure has_own_addresses() const {
    return {base::Status::BAD_CONFIG, 0,
            path_ + ": is " + list_.kind +
                ", which has the addresses of the running system; give it without a base"};
  }

  [[nodiscard]] base::Failure failure() const {
    if (list_.only_by_id)
      return {base::Status::BAD_CONFIG, 0,
              path_ + ": is a PDB with GUID and age " + list_.pdb +
                  ", which no module of the trace has: give the program or driver (--image PATH@ADDRESS, "
                  "images=), or the address of the module (--symbols FILE@BASE, symbols=[(path, base)])"};
    const std::string name = list_.module.empty() ? std::string(without_extensions(path_)) : list_.module;
    return {base::Status::BAD_CONFIG, 0,
            path_ + ": is " + list_.kind + " with addresses from " + base::hexadecimal(lowest_) +
                " on; the trace has neither code there nor a module " + name +
                ", so it is not known where they lie: give the address of the module (--symbols FILE@BASE, "
                "symbols=[(path, base)]), or name the list's file like the module"};
  }

  static constexpr std::uint64_t kLongestTail = (std::uint64_t{1} << 20U) - 1;  // of the last symbol

  trace::TraceBundle& bundle_;
  std::optional<base::IntervalMap<bool>> code_;  // addresses of all code
  const std::string& path_;
  SymbolList list_;
  std::size_t count_ = 0;
  std::uint64_t lowest_ = kLast;
  std::vector<trace::SpaceId> spaces_;  // that are given; empty: all
  std::vector<LoadAddress> loads_;
  std::vector<bool> moved_;
  std::optional<std::uint64_t> image_base_;
  bool is_at_code_ = false;
};

}  // namespace

void add_modules(trace::TraceBundle& bundle, const SymbolList& list) {
  for (const ListedModule& module : list.modules) {
    bundle.names.push_back({trace::kAnySpace, module.begin, module.end - module.begin,
                            static_cast<std::int32_t>(bundle.files.size()), 0});
    bundle.files.push_back({module.name, "", {}, {}});
  }
}

std::optional<base::Failure> add_symbols(trace::TraceBundle& bundle, const std::string& path, SymbolList list,
                                         std::optional<std::uint64_t> base,
                                         std::optional<std::uint64_t> cr3) {
  if (list.problem) bundle.warnings.push_back(*list.problem);
  if (list.symbols.empty()) return std::nullopt;
  return SymbolPlacement(bundle, path, std::move(list), cr3).add(base);
}

SymbolList read_pdb_list(const std::string& path, base::Bytes contents) {
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

}  // namespace ptkit::formats
