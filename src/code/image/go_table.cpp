#include "code/image/go_table.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>

#include "code/image/name_budget.h"

namespace ptkit::code::image {
namespace {

enum class Version : std::uint8_t { GO_1_2, GO_1_16, GO_1_18 };

// The header: a magic number, two zeros, the least size of an instruction (1 on x86), the size of a pointer.
constexpr std::size_t kHeadBytes = 8;
// A hostile file may have any number of tables, and of what looks like one by its header.
constexpr unsigned kMostTables = 4;
constexpr std::size_t kMostHeads = std::size_t{1} << 16U;

std::optional<Version> version_of(std::uint8_t magic) noexcept {
  switch (magic) {
    case 0xFB:
      return Version::GO_1_2;
    case 0xFA:
      return Version::GO_1_16;
    case 0xF0:  // 1.18
    case 0xF1:  // 1.20: its functions have a member more, after the name
      return Version::GO_1_18;
    default:
      return std::nullopt;
  }
}

// Linked addresses to bytes of the file.
class Memory {
 public:
  explicit Memory(const LoadedProgram& program) : program_(program) {}

  [[nodiscard]] std::size_t pointer_bytes() const noexcept { return program_.is_64_bit ? 8 : 4; }
  [[nodiscard]] const LoadedPart* part_at(std::uint64_t address) const noexcept {
    const auto above = std::ranges::upper_bound(program_.parts, address, {}, &LoadedPart::address);
    if (above == program_.parts.begin()) return nullptr;
    const LoadedPart& part = *std::prev(above);
    return address - part.address < part.bytes.size() ? &part : nullptr;
  }
  [[nodiscard]] std::uint64_t word(base::Bytes bytes, std::size_t at) const noexcept {
    return program_.is_64_bit ? base::load_le<8>(bytes.data() + at) : base::load_le<4>(bytes.data() + at);
  }
  // The pointer at an address. nullopt: the file has no bytes there.
  [[nodiscard]] std::optional<std::uint64_t> pointer(std::uint64_t address) const noexcept {
    const auto written = std::ranges::lower_bound(program_.pointers, address, {},
                                                  &std::pair<std::uint64_t, std::uint64_t>::first);
    if (written != program_.pointers.end() && written->first == address) return written->second;
    const LoadedPart* const part = part_at(address);
    if (part == nullptr || part->bytes.size() - (address - part->address) < pointer_bytes())
      return std::nullopt;
    return word(part->bytes, static_cast<std::size_t>(address - part->address));
  }
  [[nodiscard]] const LoadedProgram& program() const noexcept { return program_; }

 private:
  const LoadedProgram& program_;
};

// The linked address of the first byte of Go's code, from which tables since 1.18 count. The linker writes it
// into the structure `moduledata` of the runtime, of which the first member points to the table.
class TextStart {
 public:
  TextStart(const Memory& memory, std::uint64_t table) : memory_(memory), table_(table) {}

  // `first`: distance of the first function.
  [[nodiscard]] std::optional<std::uint64_t> find(std::uint64_t first) const {
    for (const auto& [at, target] : memory_.program().pointers) {
      if (target != table_) continue;
      if (const auto found = text_of(at, first)) return found;
    }
    const std::size_t step = memory_.pointer_bytes();
    for (const LoadedPart& part : memory_.program().parts) {
      if (part.executable) continue;
      for (std::size_t at = (0 - part.address) & (step - 1); at + step <= part.bytes.size(); at += step) {
        if (memory_.word(part.bytes, at) != table_) continue;
        if (const auto found = text_of(part.address + at, first)) return found;
      }
    }
    return std::nullopt;
  }

 private:
  // Members of `moduledata` in words: the table, six slices of three words each, a pointer.
  static constexpr std::uint64_t kLowest = 20;  // address of the first function
  static constexpr std::uint64_t kText = 22;

  [[nodiscard]] std::optional<std::uint64_t> text_of(std::uint64_t module, std::uint64_t first) const {
    const auto lowest = memory_.pointer(module + kLowest * memory_.pointer_bytes());
    const auto text = memory_.pointer(module + kText * memory_.pointer_bytes());
    return lowest && text && *lowest == *text + first ? text : std::nullopt;
  }

  const Memory& memory_;
  std::uint64_t table_;
};

class TableReader {
 public:
  // `bytes` begin with the table.
  TableReader(const Memory& memory, base::Bytes bytes, std::uint64_t address, Version version)
      : memory_(memory), bytes_(bytes), address_(address), version_(version) {}

  [[nodiscard]] std::vector<GoFunction> read() {
    if (!find_parts()) return {};
    std::vector<GoFunction> found;
    NameBudget names(bytes_.size());
    auto begin = address_of(0);
    for (std::size_t i = 0; begin && i < count_; ++i) {
      const auto end = address_of(i + 1);
      if (!end || *end < *begin) break;  // damaged
      const std::string_view name = name_of(i);
      if (!names.take(name)) break;
      const LoadedPart* const part = memory_.part_at(*begin);
      if (!name.empty() && *end != *begin && part != nullptr && part->executable) {
        const std::uint64_t inside = *begin - part->address;
        const std::uint64_t size = std::min(*end - *begin, part->bytes.size() - inside);
        found.push_back({name, *begin, part->file_offset + inside, size});
      }
      begin = end;
    }
    return found;
  }

 private:
  [[nodiscard]] std::uint64_t header(std::size_t word) const noexcept {
    return memory_.word(bytes_, kHeadBytes + word * memory_.pointer_bytes());
  }
  // The rest of the table from an offset; empty: it is not in the table.
  [[nodiscard]] base::Bytes from(std::uint64_t offset) const noexcept {
    return offset <= bytes_.size() ? bytes_.subspan(static_cast<std::size_t>(offset)) : base::Bytes{};
  }

  // Finds where functions and names lie. False: no table can be so.
  [[nodiscard]] bool find_parts() {
    const bool is_first = version_ == Version::GO_1_2;
    const std::size_t words = is_first ? 1 : version_ == Version::GO_1_16 ? 7 : 8;
    const std::size_t head = kHeadBytes + words * memory_.pointer_bytes();
    if (bytes_.size() < head) return false;
    const std::uint64_t functions = is_first ? head : header(words - 1);
    rows_ = from(functions);
    data_ = is_first ? bytes_ : rows_;
    names_ = is_first ? bytes_ : from(header(words - 5));
    cell_ = version_ == Version::GO_1_18 ? 4 : memory_.pointer_bytes();
    // Rows are pairs of an address and a function's offset; an address follows the last one.
    const std::uint64_t count = header(0);
    if (count == 0 || rows_.size() < cell_ || count > (rows_.size() - cell_) / (2 * cell_)) return false;
    count_ = static_cast<std::size_t>(count);
    rows_at_ = address_ + functions;
    return version_ != Version::GO_1_18 || find_text();
  }

  [[nodiscard]] bool find_text() {
    // Go 1.26 writes 0 instead of the address.
    const auto text = memory_.pointer(address_ + kHeadBytes + 2 * memory_.pointer_bytes());
    if (!text) return false;
    text_ = *text;
    if (text_ != 0) return true;
    const auto found = TextStart(memory_, address_).find(cell(0));
    text_ = found.value_or(0);
    return found.has_value();
  }

  [[nodiscard]] std::uint64_t cell(std::size_t number) const noexcept {
    const std::uint8_t* const at = rows_.data() + number * cell_;
    return cell_ == 4 ? base::load_le<4>(at) : base::load_le<8>(at);
  }

  [[nodiscard]] std::optional<std::uint64_t> address_of(std::size_t function) const noexcept {
    if (version_ == Version::GO_1_18) return text_ + cell(2 * function);
    return memory_.pointer(rows_at_ + 2 * function * cell_);
  }

  // A function's data begin with its address, of the size of a row's. The offset of its name follows.
  [[nodiscard]] std::string_view name_of(std::size_t function) const noexcept {
    const std::uint64_t at = cell(2 * function + 1);
    if (at > data_.size() || data_.size() - at < cell_ + 4) return {};
    const std::uint64_t name = base::load_le<4>(data_.data() + at + cell_);
    if (name >= names_.size()) return {};
    const base::Bytes rest = names_.subspan(static_cast<std::size_t>(name));
    const base::Bytes text = rest.first(std::min(rest.size(), kLongestName));
    const void* const end = std::memchr(text.data(), 0, text.size());
    if (end == nullptr) return {};
    return {reinterpret_cast<const char*>(text.data()),
            static_cast<std::size_t>(static_cast<const std::uint8_t*>(end) - text.data())};
  }

  static constexpr std::size_t kLongestName = std::size_t{1} << 16U;

  const Memory& memory_;
  base::Bytes bytes_;
  std::uint64_t address_;
  Version version_;
  base::Bytes rows_;
  base::Bytes data_;
  base::Bytes names_;
  std::size_t cell_ = 0;
  std::size_t count_ = 0;
  std::uint64_t rows_at_ = 0;  // linked address
  std::uint64_t text_ = 0;
};

// Looks for tables in parts of a program. A file that is part of the program (//go:embed) may have one, too:
// that of the program is the one to which `moduledata` points, in all versions.
class TableFinder {
 public:
  explicit TableFinder(const LoadedProgram& program) : memory_(program) {}

  [[nodiscard]] std::vector<GoFunction> find() {
    for (const LoadedPart& part : memory_.program().parts) {
      if (part.name != ".gopclntab" && part.name != ".data.rel.ro.gopclntab") continue;
      if (auto found = read(part, 0); !found.empty()) return found;
    }
    find_heads();
    find_pointed();
    for (const Head& head : heads_) {
      if (!head.is_pointed) continue;
      if (auto found = read(*head.part, head.at); !found.empty()) return found;
    }
    return {};
  }

 private:
  struct Head {
    std::uint64_t address = 0;  // linked
    const LoadedPart* part = nullptr;
    std::size_t at = 0;
    bool is_pointed = false;
  };

  void find_heads() {
    constexpr std::size_t kStep = 4;
    for (const LoadedPart& part : memory_.program().parts) {
      for (std::size_t at = 0; at + kHeadBytes <= part.bytes.size(); at += kStep) {
        if (!is_head(part.bytes.data() + at) || heads_.size() == kMostHeads) continue;
        heads_.push_back({part.address + at, &part, at});
      }
    }
    std::ranges::sort(heads_, {}, &Head::address);
  }

  void find_pointed() {
    if (heads_.empty()) return;
    for (const auto& [at, target] : memory_.program().pointers) note_pointer(target);
    const std::size_t step = memory_.pointer_bytes();
    for (const LoadedPart& part : memory_.program().parts) {
      for (std::size_t at = (0 - part.address) & (step - 1); at + step <= part.bytes.size(); at += step)
        note_pointer(memory_.word(part.bytes, at));
    }
  }

  void note_pointer(std::uint64_t target) noexcept {
    if (target < heads_.front().address || target > heads_.back().address) return;
    auto head = std::ranges::lower_bound(heads_, target, {}, &Head::address);
    for (; head != heads_.end() && head->address == target; ++head) head->is_pointed = true;
  }

  [[nodiscard]] bool is_head(const std::uint8_t* bytes) const noexcept {
    const std::uint64_t head = std::uint64_t{memory_.pointer_bytes()} << 56U | 0x0001'0000'FFFF'FF00U;
    return (base::load_le<8>(bytes) & ~std::uint64_t{0xFF}) == head && version_of(bytes[0]);
  }

  [[nodiscard]] std::vector<GoFunction> read(const LoadedPart& part, std::size_t at) {
    const base::Bytes bytes = part.bytes.subspan(at);
    if (bytes.size() < kHeadBytes || !is_head(bytes.data()) || left_ == 0) return {};
    const auto version = version_of(bytes[0]);
    if (!version) return {};
    --left_;
    return TableReader(memory_, bytes, part.address + at, *version).read();
  }

  Memory memory_;
  std::vector<Head> heads_;  // sorted by address
  unsigned left_ = kMostTables;
};

// Sections of a hostile file may have the same bytes, again and again.
bool repeats_bytes(const LoadedProgram& program) noexcept {
  constexpr std::uint64_t kRepeated = 4;
  std::uint64_t bytes = 0;
  std::uint64_t end = 0;
  for (const LoadedPart& part : program.parts) {
    bytes += part.bytes.size();
    end = std::max(end, part.file_offset + part.bytes.size());
  }
  return bytes > kRepeated * end;
}

}  // namespace

std::vector<GoFunction> read_go_functions(const LoadedProgram& program) {
  return repeats_bytes(program) ? std::vector<GoFunction>{} : TableFinder(program).find();
}

}  // namespace ptkit::code::image
