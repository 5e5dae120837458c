#include "image/pe.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cinttypes>
#include <cstdio>
#include <limits>
#include <map>
#include <optional>

#include "base/paths.h"
#include "image/name_budget.h"
#include "image/pe_file.h"
#include "trace/warning_codes.h"

namespace ptkit::image {

namespace {

constexpr std::size_t kExportBytes = 40;
constexpr std::size_t kFunctionBytes = 12;
constexpr std::size_t kDebugBytes = 28;
constexpr std::uint32_t kCodeView = 2;
constexpr std::size_t kRsdsBytes = 24;  // signature, GUID, age
constexpr std::size_t kSymbolBytes = 18;
constexpr std::uint64_t kFunctionType = 0x20;
constexpr std::uint32_t kMostExports = 1U << 20U;

// The file name in lower case: Windows ignores case.
std::string lower_case_name(const std::string& path) {
  std::string name(base::last_part(path));
  for (char& letter : name) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return name;
}

struct Module {
  std::uint64_t base = 0;
  std::uint64_t size = 0;  // 0: not known
};

// The recorded base and size of a module of this name.
std::optional<Module> recorded_module(const trace::TraceBundle& bundle, const std::string& path) {
  const std::string name = lower_case_name(path);
  for (const trace::CodeRegion& region : bundle.code) {
    if (region.file < 0 || region.bytes.size() != 0) continue;
    if (lower_case_name(bundle.files[static_cast<std::size_t>(region.file)].path) == name)
      return Module{region.address - region.file_offset, region.file_offset == 0 ? region.size : 0};
  }
  return std::nullopt;
}

// The sizes of functions, by begin address.
std::map<std::uint32_t, std::uint32_t> function_sizes(const PeFile& file) {
  std::map<std::uint32_t, std::uint32_t> sizes;
  const PeFile::Directory table = file.directory(PeFile::kFunctions);
  if (!file.is_64_bit()) return sizes;
  const base::Bytes rows = file.at_address(table.address, table.size);
  for (std::size_t at = 0; at + kFunctionBytes <= rows.size(); at += kFunctionBytes) {
    const std::uint32_t begin = load_u32(rows, at);
    const std::uint32_t end = load_u32(rows, at + 4);
    if (end > begin) sizes.try_emplace(begin, end - begin);
  }
  return sizes;
}

class SymbolReader {
 public:
  explicit SymbolReader(const PeFile& file)
      : file_(file), sizes_(function_sizes(file)), names_(file.bytes().size()) {}

  std::vector<trace::SymbolEntry> read() {
    read_exports();
    read_coff();
    const auto less = [](const trace::SymbolEntry& a, const trace::SymbolEntry& b) {
      return a.file_offset != b.file_offset ? a.file_offset < b.file_offset : a.name < b.name;
    };
    std::stable_sort(symbols_.begin(), symbols_.end(), less);
    const auto same = [](const trace::SymbolEntry& a, const trace::SymbolEntry& b) {
      return a.file_offset == b.file_offset && a.name == b.name;
    };
    symbols_.erase(std::unique(symbols_.begin(), symbols_.end(), same), symbols_.end());
    return std::move(symbols_);
  }

 private:
  // Returns false if there are more names than a valid file can have.
  bool add(std::string_view name, std::uint32_t address) {
    if (!names_.take(name)) return false;
    const auto offset = file_.offset_of(address);
    if (name.empty() || !offset) return true;
    const auto size = sizes_.find(address);
    symbols_.push_back({std::string(name), *offset, size == sizes_.end() ? 0 : size->second});
    return true;
  }

  void read_exports() {
    const PeFile::Directory directory = file_.directory(PeFile::kExports);
    const base::Bytes table = file_.at_address(directory.address, kExportBytes);
    if (table.empty()) return;
    const std::uint32_t functions = std::min(load_u32(table, 20), kMostExports);
    const std::uint32_t names = std::min(load_u32(table, 24), kMostExports);
    const base::Bytes addresses = file_.at_address(load_u32(table, 28), std::uint64_t{functions} * 4);
    const base::Bytes name_addresses = file_.at_address(load_u32(table, 32), std::uint64_t{names} * 4);
    const base::Bytes ordinals = file_.at_address(load_u32(table, 36), std::uint64_t{names} * 2);
    if (addresses.empty() || name_addresses.empty() || ordinals.empty()) return;
    for (std::size_t i = 0; i < names; ++i) {
      const auto ordinal = static_cast<std::size_t>(base::load_le<2>(ordinals.data() + i * 2));
      if (ordinal >= functions) continue;
      const std::uint32_t address = load_u32(addresses, ordinal * 4);
      const bool forwarded = address >= directory.address && address - directory.address < directory.size;
      const auto name = file_.offset_of(load_u32(name_addresses, i * 4));
      if (!forwarded && name && !add(file_.text_at(*name), address)) return;
    }
  }

  void read_coff() {
    const std::uint64_t table = file_.symbol_table();
    const std::uint64_t strings = table + std::uint64_t{file_.symbol_count()} * kSymbolBytes;
    if (table == 0 || file_.at(table, strings - table).empty()) return;
    for (std::uint64_t at = table; at < strings;) {
      const base::Bytes row = file_.at(at, kSymbolBytes);
      if (row.empty()) return;
      at += kSymbolBytes * (1 + std::uint64_t{row[17]});  // with auxiliary rows
      const auto section = static_cast<std::size_t>(base::load_le<2>(row.data() + 12));
      if ((base::load_le<2>(row.data() + 14) & 0xf0) != kFunctionType) continue;
      if (section == 0 || section > file_.sections().size()) continue;
      const std::string_view short_name(reinterpret_cast<const char*>(row.data()), 8);
      const std::string_view name = load_u32(row, 0) == 0 ? file_.text_at(strings + load_u32(row, 4))
                                                          : short_name.substr(0, short_name.find('\0'));
      if (!add(name, file_.sections()[section - 1].address + load_u32(row, 8))) return;
    }
  }

  const PeFile& file_;
  std::map<std::uint32_t, std::uint32_t> sizes_;
  NameBudget names_;
  std::vector<trace::SymbolEntry> symbols_;
};

// GUID and age of the file's PDB, "0123456789abcdef0123456789abcdef-1", or empty. It stays the same when a
// file is patched. Its form differs from a build-id's, so that no cache of decoded code uses it as a key.
std::string build_id_of(const PeFile& file) {
  const PeFile::Directory directory = file.directory(PeFile::kDebug);
  const base::Bytes rows = file.at_address(directory.address, directory.size);
  for (std::size_t at = 0; at + kDebugBytes <= rows.size(); at += kDebugBytes) {
    if (load_u32(rows, at + 12) != kCodeView || load_u32(rows, at + 16) < kRsdsBytes) continue;
    const base::Bytes data = file.at(load_u32(rows, at + 24), kRsdsBytes);
    if (data.empty() || data[0] != 'R' || data[1] != 'S' || data[2] != 'D' || data[3] != 'S') continue;
    std::array<char, 64> text{};
    std::uint64_t rest = 0;
    for (std::size_t i = 12; i < 20; ++i) rest = rest << 8U | data[i];
    std::snprintf(text.data(), text.size(), "%08" PRIx32 "%04" PRIx64 "%04" PRIx64 "%016" PRIx64 "-%" PRIx32,
                  load_u32(data, 4), base::load_le<2>(data.data() + 8), base::load_le<2>(data.data() + 10),
                  rest, load_u32(data, 20));
    return text.data();
  }
  return {};
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
  bundle.files.push_back({path, build_id_of(file.value()), contents.value(), {}});
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

std::vector<trace::SymbolEntry> pe_symbols(base::Bytes bytes) {
  const auto file = PeFile::open(bytes);
  return file.ok() ? SymbolReader(file.value()).read() : std::vector<trace::SymbolEntry>{};
}

}  // namespace ptkit::image
