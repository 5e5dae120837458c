#include "code/source/dwarf/abbreviations.h"

#include <dwarf.h>

#include <algorithm>
#include <cstddef>

namespace ptkit::code::dwarf {
namespace {

constexpr std::size_t kLongest = 256;            // bytes of an abbreviation; GCC and clang have some 50
constexpr std::uint64_t kMostCodes = 1U << 20U;  // in a unit; libdw hashes them by their value
constexpr std::uint64_t kLargestName = 0xFFFF;   // of attributes and forms
constexpr std::uint64_t kBytesInMemory = 16;     // of libdw, for each byte of an abbreviation
constexpr std::uint64_t kBytesOfAStep = 4;       // that are checked in the time of a step
constexpr std::uint64_t kUnitsOfAStep = 256;     // type units that a hash table of libdw passes in a step

// The abbreviations of a unit, one after the other.
class Table {
 public:
  explicit Table(base::Bytes bytes) noexcept : bytes_(bytes) {}

  // Whether all are such that compilers make.
  [[nodiscard]] bool check() noexcept {
    while (at_ < bytes_.size() && bytes_[at_] != 0) {
      const std::size_t begin = at_;
      const std::uint64_t code = number();
      number();  // tag
      ++at_;     // whether it has children
      for (bool more = true; more;) {
        const std::uint64_t name = number();
        const std::uint64_t form = number();
        if (form == DW_FORM_implicit_const) number();
        if (name > kLargestName || form > kLargestName || at_ - begin > kLongest) return false;
        more = name != 0 || form != 0;
      }
      longest_ = std::max<std::uint64_t>(longest_, at_ - begin);
      if (is_damaged_ || code > kMostCodes) return false;
    }
    return true;
  }
  [[nodiscard]] std::uint64_t longest() const noexcept { return longest_; }
  [[nodiscard]] std::size_t size() const noexcept { return at_ < bytes_.size() ? at_ : bytes_.size(); }

 private:
  // An LEB128 number; its sign does not matter. 0 at the end.
  std::uint64_t number() noexcept {
    constexpr unsigned kMostBits = 63;
    std::uint64_t value = 0;
    for (unsigned shift = 0; at_ < bytes_.size(); shift += 7) {
      const std::uint8_t byte = bytes_[at_++];
      if (shift < kMostBits) value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
      if (shift >= kMostBits) break;
    }
    is_damaged_ = true;  // libdw reads ten bytes at most: what follows would be read in another way
    return 0;
  }

  base::Bytes bytes_;
  std::size_t at_ = 0;
  std::uint64_t longest_ = 0;
  bool is_damaged_ = false;
};

// Visits the headers of .debug_info, or of .debug_types: this alone reads no entries.
class Units {
 public:
  Units(Dwarf& dwarf, bool of_types) noexcept : dwarf_(dwarf), of_types_(of_types) {}

  [[nodiscard]] bool next() noexcept {
    std::size_t header = 0;
    Dwarf_Half version = 0;
    Dwarf_Off following = 0;
    const int result = dwarf_next_unit(&dwarf_, at_, &following, &header, &version, &abbreviations_, nullptr,
                                       nullptr, of_types_ ? &signature_ : nullptr, nullptr);
    if (result != 0 || following <= at_) return false;
    at_ = following;
    is_new_form_ = version >= 5;
    return true;
  }
  [[nodiscard]] Dwarf_Off abbreviations() const noexcept { return abbreviations_; }
  // Whether libdw may keep it in its hash table of type units.
  [[nodiscard]] bool may_be_of_type() const noexcept { return of_types_ || is_new_form_; }

 private:
  Dwarf& dwarf_;
  Dwarf_Off at_ = 0;
  Dwarf_Off abbreviations_ = 0;
  std::uint64_t signature_ = 0;
  bool of_types_;
  bool is_new_form_ = false;
};

}  // namespace

std::optional<std::uint64_t> longest_abbreviation(Dwarf& dwarf, base::Bytes section,
                                                  code::source::Budget& steps, code::source::Budget& memory) {
  std::uint64_t hashed = 0;
  std::uint64_t longest = 0;
  for (const bool of_types : {false, true}) {
    Units units(dwarf, of_types);
    Dwarf_Off known = ~Dwarf_Off{0};  // units of a program optimised as a whole share their table
    std::size_t size = 0;
    while (units.next()) {
      if (units.abbreviations() != known) {
        if (units.abbreviations() >= section.size()) continue;  // libdw finds none
        known = units.abbreviations();
        Table table(section.subspan(static_cast<std::size_t>(known)));
        if (!table.check()) return std::nullopt;
        size = table.size();
        longest = std::max(longest, table.longest());
      }
      if (units.may_be_of_type()) ++hashed;
      if (!steps.take(1 + size / kBytesOfAStep + hashed / kUnitsOfAStep)) return std::nullopt;
      if (!memory.take(1 + size * kBytesInMemory)) return std::nullopt;
    }
  }
  return longest;
}

}  // namespace ptkit::code::dwarf
