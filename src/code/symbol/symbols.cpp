#include "code/symbol/symbols.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <set>
#include <tuple>
#include <type_traits>

#include "base/bytes.h"
#include "base/check_sum.h"
#include "code/image/files/imports.h"
#include "code/image/ifunc_names.h"
#include "code/image/image.h"
#include "code/symbol/anon_memory.h"
#include "code/symbol/code_spans.h"
#include "code/symbol/debug_modules.h"
#include "code/symbol/name_ranges.h"
#include "code/symbol/names/demangle.h"
#include "code/symbol/names/microsoft.h"
#include "code/symbol/names/short_name.h"
#include "code/symbol/names/similar_names.h"
#include "code/symbol/row_views.h"
#include "code/symbol/table.h"

namespace ptkit::code::symbol {
namespace {

// No function is longer. Lists may have few of a module's functions.
constexpr std::uint64_t kLongestLabel = std::uint64_t{1} << 20U;

constexpr std::size_t kLongestBranch = 8;  // CALL or JMP through a slot, with prefixes

std::uint64_t hash_of(std::string_view text) noexcept {
  return base::check_sum({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

std::uint64_t size_of(const trace::CodeRegion& region) noexcept {
  return region.size != 0 ? region.size : region.bytes.size();
}

}  // namespace

class Symbols::Impl {
 public:
  Impl(std::shared_ptr<const trace::TraceBundle> bundle, std::shared_ptr<const DebugModules> debug)
      : bundle_(bundle),
        debug_(std::move(debug)),
        image_(std::move(bundle)),
        ranges_(bundle_->names),
        memory_(*bundle_),
        tables_(bundle_->files.size()),
        once_(bundle_->files.size()),
        imports_(bundle_->files.size()) {}

  [[nodiscard]] std::optional<Symbol> find(trace::SpaceId space, std::uint64_t tsc, std::uint64_t address,
                                           std::uint64_t& last) const {
    const code::image::CodeView& view = image_.view(space, tsc);
    const code::image::Provenance where = file_at(image_, view, address);
    last = where.last;
    std::optional<Symbol> best = find_in_file(where, address, last);
    if (!ranges_.empty()) last = address;
    ranges_.at(space, tsc, address, [&](const trace::NameRange& range) {
      if (range.is_module && where.file >= 0) return;
      const auto found = find_in_list(range, address);
      if (!found || (best && found->address < best->address)) return;
      // A label of a list does not extend from one file into another.
      if (file_at(image_, view, found->address).file == where.file) best = found;
    });
    return best;
  }

  [[nodiscard]] std::vector<Symbol> lookup(std::string_view name,
                                           const std::vector<std::int32_t>& files) const {
    std::vector<Symbol> first;
    for (const auto chosen :
         {&Impl::of_exact_name, &Impl::of_variant, &Impl::of_short_name, &Impl::of_last_part}) {
      std::vector<Symbol> found = (this->*chosen)(name);
      if (!files.empty())
        std::erase_if(found, [&](const Symbol& one) { return !std::ranges::count(files, one.file); });
      if (std::ranges::any_of(found, [this](const Symbol& one) { return has_code(one); })) return found;
      if (first.empty()) first = std::move(found);
    }
    return first;
  }

  [[nodiscard]] std::vector<Symbol> matching(const std::string& pattern, bool with_names) const {
    return symbols_of([&pattern](const Table& table) { return table.matching(pattern); }, with_names);
  }

  [[nodiscard]] bool has_imports() const {
    std::call_once(found_imports_, [&] {
      has_imports_ = std::ranges::any_of(bundle_->files, [](const trace::ImageFile& file) {
        return file.contents.size() != 0 || !file.imports.empty();
      });
    });
    return has_imports_;
  }

  [[nodiscard]] code::image::Import import_at(trace::SpaceId space, std::uint64_t tsc,
                                              std::uint64_t address) const {
    if (!has_imports()) return {};
    const code::image::CodeView& view = image_.view(space, tsc);
    const code::image::Provenance where = file_at(image_, view, address);
    if (where.file < 0 || static_cast<std::size_t>(where.file) >= imports_.size()) return {};
    ImportsOfFile& of = imports_[static_cast<std::size_t>(where.file)];
    std::call_once(of.once, [&] {
      of.imports = code::image::Imports::of(bundle_->files[static_cast<std::size_t>(where.file)]);
    });
    if (of.imports.empty()) return {};
    const trace::CodeRegion& region = bundle_->code[static_cast<std::size_t>(where.region)];
    const auto rva = of.imports.rva_of(region, region.file_offset + (address - region.address));
    std::array<std::uint8_t, kLongestBranch> code{};
    const std::size_t size = rva ? view.read(address, code) : 0;
    if (size == 0) return {};
    const code::image::Import found = of.imports.called(base::Bytes(code).first(size), *rva, address);
    if (found.name.empty()) return {};
    const std::lock_guard lock(made_names_mutex_);
    return {*made_names_.emplace(demangle_microsoft(found.name).value_or(std::string(found.name))).first,
            found.module};
  }

  [[nodiscard]] std::optional<Module> module_at(trace::SpaceId space, std::uint64_t tsc,
                                                std::uint64_t address) const {
    std::optional<Module> found;
    ranges_.at(space, tsc, address, [&](const trace::NameRange& range) {
      const std::uint64_t offset = address - range.address;
      if (range.is_module) {
        found = {range.file, range.file_offset + offset};
        return;
      }
      const Table* const table = table_of(range.file);
      if (table != nullptr && table->size() == 0) found = {range.file, offset};
    });
    return found;
  }

  [[nodiscard]] const AnonMemory& memory() const noexcept { return memory_; }

  [[nodiscard]] const bounds::UnwindTable* unwind_of(std::int32_t file) const {
    const Table* const table = table_of(file);
    return table == nullptr ? nullptr : &table->unwind();
  }

  [[nodiscard]] std::uint32_t lists_at(trace::SpaceId space, std::uint64_t tsc, std::uint64_t address) const {
    std::uint32_t found = 0;
    ranges_.at(space, tsc, address, [&](const trace::NameRange& range) {
      if (range.space != trace::kAnySpace) found = ranges_.number_of(range) + 1;
    });
    return found;
  }

  [[nodiscard]] std::uint64_t identity() const {
    std::uint64_t sum = bundle_->names.size();
    const auto add = [&sum](auto... values) {
      ((sum = base::mix(sum, static_cast<std::uint64_t>(values))), ...);
    };
    for (const trace::CodeRegion& one : bundle_->code) add(one.file);
    for (const trace::NameRange& one : bundle_->names)
      add(one.space, one.address, one.size, one.file, one.file_offset, one.tsc_from, one.tsc_to,
          one.is_module);
    for_each_table([&](const Table& table, std::int32_t file, bool by_address) {
      add(file, by_address, table.size(), base::check_sum(table.unwind().encode()));
      for (std::size_t i = 0; i < table.size(); ++i) {
        const Table::Extent extent = table.extent(i);
        add(extent.offset, extent.size);
        if (table.has_name(i)) add(hash_of(table.raw_name(i)));
      }
    });
    return sum;
  }

  [[nodiscard]] std::vector<std::string> similar(std::string_view name, std::size_t limit) const {
    SimilarNames similar(name, limit);
    for_each_table([&similar](const Table& table, std::int32_t, bool) {
      for (std::size_t i = 0; i < table.size(); ++i) similar.add(table.name(i));
    });
    return similar.names();
  }

 private:
  // Where the bundle maps the symbols that `indices_in` finds in the tables of its files, with or without
  // their names.
  template <typename Indices>
  [[nodiscard]] std::vector<Symbol> symbols_of(const Indices& indices_in, bool with_names = true) const {
    std::vector<Symbol> found;
    std::set<std::tuple<std::uint64_t, std::uint64_t, std::int32_t, trace::SpaceId>> seen;
    for_each_table([&](const Table& table, std::int32_t file, bool by_address) {
      for (const std::size_t entry : indices_in(table)) {
        const auto add = [&](Symbol symbol) {
          if (!seen.emplace(symbol.address, symbol.size, symbol.file, symbol.space).second) return;
          if (with_names) name(symbol, table, entry);
          found.push_back(symbol);
        };
        if (by_address) {
          for_each_linked_span(table, table.extent(entry), file, add);
        } else {
          for_each_span(table, table.extent(entry), file, add);
        }
      }
    });
    std::stable_sort(found.begin(), found.end(),
                     [](const Symbol& a, const Symbol& b) { return a.address < b.address; });
    return found;
  }

  [[nodiscard]] std::vector<Symbol> of_exact_name(std::string_view name) const {
    return symbols_of([name](const Table& table) { return table.named(name, Table::Form::EXACT); });
  }

  [[nodiscard]] std::vector<Symbol> of_short_name(std::string_view name) const {
    return symbols_of([name](const Table& table) { return table.named(name, Table::Form::SHORT); });
  }

  [[nodiscard]] std::vector<Symbol> of_last_part(std::string_view name) const {
    return symbols_of([name](const Table& table) { return table.named(name, Table::Form::LAST_PART); });
  }

  // Whether code of the symbol is known. Of a recording, that is the code that was executed.
  [[nodiscard]] bool has_code(const Symbol& symbol) const {
    bool found = false;
    spans(By::ADDRESS).overlapping(0, symbol.address, symbol.size, [&](std::uint32_t i) {
      const trace::SpaceId space = bundle_->code[i].space;
      found |= space == trace::kAnySpace || symbol.space == trace::kAnySpace || space == symbol.space;
    });
    return found;
  }

  // The functions that find() names so, which have one part of the name by their file and the other one by a
  // debug file: "memcpy (avx_unaligned_erms)".
  [[nodiscard]] std::vector<Symbol> of_variant(std::string_view name) const {
    const std::string_view function = without_variant(name);
    if (function.size() == name.size()) return {};
    std::set<std::uint64_t> addresses;
    for (const Symbol& one : of_exact_name(function)) addresses.insert(one.address);
    std::vector<Symbol> found = symbols_of([&](const Table& table) {
      std::vector<std::size_t> indices;
      for (std::size_t i = 0; i < table.size() && !addresses.empty(); ++i) {
        if (code::image::implementation_name(function, table.raw_name(i), 0) == name) indices.push_back(i);
      }
      return indices;
    });
    std::erase_if(found, [&](const Symbol& one) { return !addresses.contains(one.address); });
    return found;
  }

  // Calls `visit` with each table of symbols and its file; `by_address`: it is by linked address, not by
  // offset in the file.
  template <typename Visit>
  void for_each_table(Visit&& visit) const {
    for (std::size_t index = 0; index < tables_.size(); ++index) {
      const auto file = static_cast<std::int32_t>(index);
      visit(*table_of(file), file, false);
      const Table* const names = debug_ == nullptr ? nullptr : debug_->names_of(file);
      if (names != nullptr) visit(*names, file, true);
    }
  }

  // Null if the bundle has no such file.
  [[nodiscard]] const Table* table_of(std::int32_t file) const {
    const auto index = static_cast<std::size_t>(file);
    if (file < 0 || index >= tables_.size()) return nullptr;
    std::call_once(once_[index],
                   [&] { tables_[index] = std::make_unique<const Table>(bundle_->files[index]); });
    return tables_[index].get();
  }

  // Lowers `last` to an address up to which the symbol is the same.
  [[nodiscard]] std::optional<Symbol> find_in_file(const code::image::Provenance& where,
                                                   std::uint64_t address, std::uint64_t& last) const {
    const std::uint64_t most = std::exchange(last, address);
    if (where.region < 0 || where.file < 0) return std::nullopt;
    const trace::CodeRegion& region = bundle_->code[static_cast<std::size_t>(where.region)];
    const Table* table = table_of(where.file);
    if (table == nullptr) return std::nullopt;
    const std::uint64_t offset = region.file_offset + (address - region.address);
    const auto extent = table->find(offset);
    if (extent) last = std::min(most, last_of_same(*table, *extent, offset, address));
    std::optional<Symbol> own;
    if (extent && !is_elsewhere(*extent, region)) own = make(*table, *extent, region, size_of(region));
    const bool is_nameless = own && code::image::function_of_nameless(own->raw_name);
    const bool is_known = extent && table->has_size(extent->index) && table->has_name(extent->index);
    if (is_known && !is_nameless && !has_pdb(where.file)) return own;
    const auto found = find_in_debug_file(where, address, last);
    if (is_nameless && found && found->address == own->address)
      return with_variant(*own, *table, *extent, *found);
    const bool is_nearer = found && is_known && own && own->address > found->address;
    return found && !is_nearer ? found : own;
  }

  [[nodiscard]] static std::uint64_t last_of_same(const Table& table, const Table::Extent& extent,
                                                  std::uint64_t offset, std::uint64_t address) noexcept {
    const std::uint64_t end = table.end_of_same(extent, offset);
    return end > offset ? address + (end - 1 - offset) : address;
  }

  // A function that an IFUNC of a file chooses has the IFUNC's name, and its own one in a debug file.
  [[nodiscard]] Symbol with_variant(const Symbol& own, const Table& table, const Table::Extent& extent,
                                    const Symbol& debug) const {
    std::string_view function = *code::image::function_of_nameless(own.raw_name);
    // Several IFUNCs may choose one function.
    for (std::size_t i = extent.index; i < table.size() && table.offset(i) == extent.offset; ++i) {
      const auto other = code::image::function_of_nameless(table.raw_name(i));
      if (!other || !code::image::is_named_after(debug.raw_name, *other)) continue;
      function = *other;
      break;
    }
    Symbol symbol = debug;
    const std::string name =
        demangle(code::image::implementation_name(function, debug.raw_name, own.address));
    const std::lock_guard lock(made_names_mutex_);
    symbol.name = *made_names_.emplace(name).first;
    return symbol;
  }

  // Whether a label that nothing ends begins before the region, in another part of the file.
  [[nodiscard]] bool is_elsewhere(const Table::Extent& extent, const trace::CodeRegion& region) const {
    return extent.is_open() && extent.offset < region.file_offset && is_whole(region.file);
  }

  // Whether regions are the file's segments. Of a bundle, they are the regions that were executed.
  [[nodiscard]] bool is_whole(std::int32_t file) const {
    const trace::ImageFile* const image = bundle_->file(file);
    return image != nullptr && image->contents.size() != 0;
  }

  [[nodiscard]] bool has_pdb(std::int32_t file) const { return debug_ != nullptr && debug_->has_pdb(file); }

  // A region of a file, and the address that its begin was linked for instead of the offset in the file.
  struct LinkedSpan {
    std::uint64_t address = 0;
    std::uint64_t file_offset = 0;
    std::int32_t file = -1;
    trace::SpaceId space = trace::kAnySpace;
  };

  [[nodiscard]] std::optional<LinkedSpan> linked_span(std::int32_t index) const {
    const trace::CodeRegion& region = bundle_->code[static_cast<std::size_t>(index)];
    const auto linked = debug_->linked_address(index, region.address);
    if (!linked) return std::nullopt;
    return LinkedSpan{region.address, *linked, region.file, region.space};
  }

  // Only symbols with a size: a label of an ELF debug file may be of data. Lowers `last` as find_in_file().
  [[nodiscard]] std::optional<Symbol> find_in_debug_file(const code::image::Provenance& where,
                                                         std::uint64_t address, std::uint64_t& last) const {
    const Table* const names = debug_ == nullptr ? nullptr : debug_->names_of(where.file);
    if (names == nullptr) return std::nullopt;
    const auto span = linked_span(where.region);
    if (!span) return std::nullopt;
    const std::uint64_t offset = span->file_offset + (address - span->address);
    const auto extent = names->find(offset);
    last = extent ? std::min(last, last_of_same(*names, *extent, offset, address)) : address;
    if (!extent) return std::nullopt;
    const bool is_in_region = extent->offset >= span->file_offset || !is_whole(where.file);
    const bool is_label_here = has_pdb(where.file) && is_in_region;
    if (!names->has_size(extent->index) && !is_label_here) return std::nullopt;
    return make(*names, *extent, *span, size_of(bundle_->code[static_cast<std::size_t>(where.region)]));
  }

  template <typename Visit>
  void for_each_linked_span(const Table& table, const Table::Extent& extent, std::int32_t file,
                            Visit&& visit) const {
    if (!table.has_size(extent.index) && !has_pdb(file)) return;
    spans(By::LINKED_ADDRESS).overlapping(file, extent.offset, extent.size, [&](std::uint32_t i) {
      const LinkedSpan span = *linked_span(static_cast<std::int32_t>(i));
      const std::uint64_t size = size_of(bundle_->code[i]);
      if (overlap(extent, span.file_offset, size)) visit(symbol_in(table, extent, span, size));
    });
  }

  enum class By : std::uint8_t { FILE_OFFSET, LINKED_ADDRESS, ADDRESS };

  // Where regions lie in their files, or where they were linked to lie; by address, those with known code.
  [[nodiscard]] const CodeSpans& spans(By by) const {
    const SpansOfCode& of = spans_[static_cast<std::size_t>(by)];
    std::call_once(of.once, [&] {
      std::vector<CodeSpans::Span> found;
      for (std::uint32_t i = 0; i < bundle_->code.size(); ++i) {
        if (const auto span = span_of_region(i, by)) found.push_back(*span);
      }
      of.spans = std::make_unique<const CodeSpans>(std::move(found));
    });
    return *of.spans;
  }

  [[nodiscard]] std::optional<CodeSpans::Span> span_of_region(std::uint32_t i, By by) const {
    const trace::CodeRegion& region = bundle_->code[i];
    const std::uint64_t size = size_of(region);
    if (by == By::FILE_OFFSET) return CodeSpans::Span{region.file, region.file_offset, size, i};
    if (by == By::LINKED_ADDRESS) {
      const auto span = linked_span(static_cast<std::int32_t>(i));
      if (!span) return std::nullopt;
      return CodeSpans::Span{region.file, span->file_offset, size, i};
    }
    const bool is_known = region.bytes.size() != 0 || region.shared || is_whole(region.file);
    if (!is_known) return std::nullopt;
    return CodeSpans::Span{0, region.address, size, i};
  }

  [[nodiscard]] std::optional<Symbol> find_in_list(const trace::NameRange& range,
                                                   std::uint64_t address) const {
    const Table* const table = table_of(range.file);
    if (table == nullptr) return std::nullopt;
    const std::uint64_t offset = range.file_offset + (address - range.address);
    const auto extent = table->find(offset);
    if (!extent || extent->offset < range.file_offset) return std::nullopt;
    const bool is_near = table->has_bounds(extent->index) || offset - extent->offset < kLongestLabel;
    return is_near ? std::optional(make(*table, *extent, range, range.size)) : std::nullopt;
  }

  // Calls `visit` with the symbol at each address of its code.
  template <typename Visit>
  void for_each_span(const Table& table, const Table::Extent& extent, std::int32_t file,
                     Visit&& visit) const {
    spans(By::FILE_OFFSET).overlapping(file, extent.offset, extent.size, [&](std::uint32_t i) {
      const trace::CodeRegion& region = bundle_->code[i];
      const std::uint64_t size = size_of(region);
      if (overlap(extent, region.file_offset, size) && !is_elsewhere(extent, region))
        visit(symbol_in(table, extent, region, size));
    });
    ranges_.of_file(file, extent.offset, [&](const trace::NameRange& range) {
      if (range.file != file || extent.offset < range.file_offset) return;
      if (extent.offset - range.file_offset < range.size) visit(symbol_in(table, extent, range, range.size));
    });
  }

  // Whether a region has a byte of a symbol, not only its first one: a bundle may lack that.
  [[nodiscard]] static bool overlap(const Table::Extent& extent, std::uint64_t offset,
                                    std::uint64_t size) noexcept {
    return extent.offset < offset ? offset - extent.offset < extent.size : extent.offset - offset < size;
  }

  // `span` is a code region or a name range of so many bytes.
  template <typename Span>
  [[nodiscard]] static Symbol make(const Table& table, const Table::Extent& extent, const Span& span,
                                   std::uint64_t bytes) {
    Symbol symbol = symbol_in(table, extent, span, bytes);
    name(symbol, table, extent.index);
    return symbol;
  }

  static void name(Symbol& symbol, const Table& table, std::size_t index) {
    symbol.name = table.name(index);
    symbol.raw_name = table.raw_name(index);
  }

  // Makes a symbol without names.
  template <typename Span>
  [[nodiscard]] static Symbol symbol_in(const Table& table, const Table::Extent& extent, const Span& span,
                                        std::uint64_t bytes) {
    Symbol symbol;
    symbol.address = span.address + (extent.offset - span.file_offset);
    symbol.size = extent.size;
    // A label that nothing follows ends at the end of its region.
    const std::uint64_t in_span = bytes - (extent.offset - span.file_offset);
    constexpr bool kIsList = std::is_same_v<Span, trace::NameRange>;
    if (!table.has_bounds(extent.index) && (kIsList || extent.is_open())) {
      symbol.size = std::min(extent.size, in_span);
      if constexpr (kIsList) symbol.size = std::min(symbol.size, kLongestLabel);
    }
    symbol.file = span.file;
    symbol.space = span.space;
    return symbol;
  }

  std::shared_ptr<const trace::TraceBundle> bundle_;
  std::shared_ptr<const DebugModules> debug_;  // may be null
  code::image::Image image_;
  NameRanges ranges_;
  AnonMemory memory_;
  mutable std::vector<std::unique_ptr<const Table>> tables_;  // each created once, guarded by its once_flag
  mutable std::vector<std::once_flag> once_;
  struct ImportsOfFile {
    std::once_flag once;
    code::image::Imports imports;  // read at the first use, guarded by `once`
  };
  mutable std::vector<ImportsOfFile> imports_;
  struct SpansOfCode {
    mutable std::once_flag once;
    mutable std::unique_ptr<const CodeSpans> spans;  // sorted at the first use, guarded by `once`
  };
  std::array<SpansOfCode, 3> spans_;  // by By
  mutable std::mutex made_names_mutex_;
  mutable std::set<std::string> made_names_;  // that no table has, guarded by made_names_mutex_
  mutable std::once_flag found_imports_;
  mutable bool has_imports_ = false;
};

Symbols::Symbols(std::shared_ptr<const trace::TraceBundle> bundle, std::shared_ptr<const DebugModules> debug)
    : impl_(std::make_unique<Impl>(std::move(bundle), std::move(debug))) {}
Symbols::~Symbols() = default;

std::optional<Symbol> Symbols::find(trace::SpaceId space, std::uint64_t tsc, std::uint64_t address) const {
  std::uint64_t last = 0;
  return impl_->find(space, tsc, address, last);
}

std::optional<Symbol> Symbols::find(trace::SpaceId space, std::uint64_t tsc, std::uint64_t address,
                                    std::uint64_t& last) const {
  return impl_->find(space, tsc, address, last);
}

std::vector<Symbol> Symbols::lookup(std::string_view name, const std::vector<std::int32_t>& files) const {
  return impl_->lookup(name, files);
}

std::vector<Symbol> Symbols::matching(const std::string& pattern, bool with_names) const {
  return impl_->matching(pattern, with_names);
}

std::optional<Symbols::Module> Symbols::module_at(trace::SpaceId space, std::uint64_t tsc,
                                                  std::uint64_t address) const {
  return impl_->module_at(space, tsc, address);
}

const AnonMemory& Symbols::anon_memory() const { return impl_->memory(); }

const bounds::UnwindTable* Symbols::unwind_of(std::int32_t file) const { return impl_->unwind_of(file); }

bool Symbols::has_imports() const { return impl_->has_imports(); }

code::image::Import Symbols::import_at(trace::SpaceId space, std::uint64_t tsc, std::uint64_t address) const {
  return impl_->import_at(space, tsc, address);
}

std::uint32_t Symbols::lists_at(trace::SpaceId space, std::uint64_t tsc, std::uint64_t address) const {
  return impl_->lists_at(space, tsc, address);
}

std::uint64_t Symbols::identity() const { return impl_->identity(); }

std::vector<std::string> Symbols::similar(std::string_view name, std::size_t limit) const {
  return impl_->similar(name, limit);
}

}  // namespace ptkit::code::symbol
