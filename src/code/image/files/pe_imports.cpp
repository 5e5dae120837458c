// Names and numbers are from "PE Format" (Microsoft), sections "The .idata Section" and "Delay-Load Import
// Tables".
#include "code/image/files/import_readers.h"
#include "code/image/name_budget.h"
#include "code/image/pe/pe.h"
#include "code/image/pe/pe_file.h"

namespace ptkit::code::image {
namespace {

constexpr std::size_t kImportBytes = 20;
constexpr std::size_t kDelayImportBytes = 32;
constexpr std::size_t kMostSlots = std::size_t{1} << 20U;

// The tables of one DLL: names, and slots, in the same order.
struct Imported {
  std::uint32_t dll = 0;    // address of its name
  std::uint32_t names = 0;  // of the import name table
  std::uint32_t slots = 0;  // of the import address table
};

class ImportReader {
 public:
  ImportReader(const PeFile& file, std::map<std::uint64_t, ImportSlots::Slot>& slots)
      : file_(file), slots_(slots), names_(file.bytes().size()) {}

  void read() {
    read_directory(PeFile::kImports, kImportBytes, [](base::Bytes row) {
      const std::uint32_t slots = load_u32(row, 16);
      return Imported{load_u32(row, 12), load_u32(row, 0) != 0 ? load_u32(row, 0) : slots, slots};
    });
    read_directory(PeFile::kDelayImports, kDelayImportBytes, [](base::Bytes row) {
      const bool has_rvas = (load_u32(row, 0) & 1U) != 0;  // files of Visual C++ 6 have addresses instead
      return has_rvas ? Imported{load_u32(row, 4), load_u32(row, 16), load_u32(row, 12)} : Imported{};
    });
  }

 private:
  template <typename Parse>
  void read_directory(unsigned number, std::size_t row_bytes, const Parse& parse) {
    const PeFile::Directory directory = file_.directory(number);
    for (std::uint64_t address = directory.address; address != 0 && left_ != 0; address += row_bytes) {
      const base::Bytes row = at(address, row_bytes);
      const Imported one = row.empty() ? Imported{} : parse(row);
      if (one.dll == 0 || one.slots == 0) return;
      read_slots(one);
    }
  }

  [[nodiscard]] base::Bytes at(std::uint64_t address, std::uint64_t size) const noexcept {
    return address <= 0xFFFF'FFFF ? file_.at_address(static_cast<std::uint32_t>(address), size)
                                  : base::Bytes{};
  }

  void read_slots(const Imported& one) {
    const std::size_t bytes = file_.is_64_bit() ? 8 : 4;
    const std::uint64_t by_ordinal = std::uint64_t{1} << (8 * bytes - 1);
    const std::string_view module = text_at(one.dll);
    if (!names_.take(module)) left_ = 0;
    for (std::uint64_t i = 0; left_ != 0; ++i) {
      --left_;
      const base::Bytes cell = at(one.names + i * bytes, bytes);
      const std::uint64_t value = cell.empty() ? 0
                                  : bytes == 8 ? base::load_le<8>(cell.data())
                                               : load_u32(cell, 0);
      if (value == 0) return;
      // In memory without a table of names, slots have addresses: of the kernel, their highest bit is set,
      // too.
      const bool has_ordinal = (value & by_ordinal) != 0 && (value & ~by_ordinal) <= 0xFFFF;
      const std::string name =
          has_ordinal ? ordinal_name(module, value & 0xFFFF) : std::string(import_name_at(value));
      if (!names_.take(name) || !names_.take(module)) left_ = 0;
      if (!name.empty())
        slots_.try_emplace(one.slots + i * bytes, ImportSlots::Slot{name, std::string(module)});
    }
  }

  [[nodiscard]] std::string_view import_name_at(std::uint64_t address) const noexcept {
    const std::string_view name = name_at(address);
    return file_.is_64_bit() ? name : undecorated_export(name);
  }

  // A 2-byte hint comes before the name.
  [[nodiscard]] std::string_view name_at(std::uint64_t address) const noexcept {
    return address + 2 <= 0xFFFF'FFFF ? text_at(static_cast<std::uint32_t>(address + 2)) : std::string_view{};
  }

  [[nodiscard]] std::string_view text_at(std::uint32_t address) const noexcept {
    const auto offset = file_.offset_of(address);
    return offset ? file_.text_at(*offset) : std::string_view{};
  }

  [[nodiscard]] static std::string ordinal_name(std::string_view module, std::uint64_t ordinal) {
    return std::string(module.substr(0, module.find_last_of('.'))) + "!Ordinal" + std::to_string(ordinal);
  }

  const PeFile& file_;
  std::map<std::uint64_t, ImportSlots::Slot>& slots_;
  NameBudget names_;
  std::size_t left_ = kMostSlots;  // rows of hostile files may share tables
};

}  // namespace

ImportSlots read_import_slots(const PeFile& file) {
  ImportSlots slots;
  slots.is_64_bit = file.is_64_bit();
  slots.linked_base = file.linked_base();
  ImportReader(file, slots.slots).read();
  return slots;
}

Imports::Imports(const PeFile& file) {
  std::vector<FileSegment> segments;
  for (const PeFile::Section& section : file.sections()) {
    if (section.file_size != 0)
      segments.push_back({section.offset, section.file_size, section.address, section.executable});
  }
  *this = Imports(read_import_slots(file), std::move(segments));
}

}  // namespace ptkit::code::image
