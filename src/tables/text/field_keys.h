// Keys of rows by the values of some fields.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tables/text/fields.h"
#include "tables/text/text_cache.h"

namespace ptkit::tables::text {

class FieldKeys {
 public:
  explicit FieldKeys(std::span<const Field> fields);

  // False: the values take more bits than a key has, or a text depends on more than values.
  [[nodiscard]] bool fits() const noexcept { return fits_; }
  // Where each value is in a key, and the texts around values: keys of two tables can be compared if this is
  // equal.
  [[nodiscard]] const std::string& layout() const noexcept { return layout_; }
  // Keys of rows [first, first + keys.size()).
  void read(std::size_t first, std::span<TextCache::Key> keys) const;

 private:
  struct Column {
    Cells cells;
    unsigned bits = 0;
    std::size_t word = 0;
    unsigned shift = 0;
  };
  struct KeySlot {
    AddressTexts* texts = nullptr;
    code::symbol::RowAddresses rows;
    std::size_t word = 0;
    unsigned shift = 0;
  };
  static constexpr std::size_t kWords = 3;

  void describe(const Field& field);
  void add(const Cells& cells);
  void add_known(std::span<const bool> known);
  void add(AddressTexts& texts, const code::symbol::RowAddresses& rows);
  void put(unsigned bits, std::size_t& word, unsigned& shift);

  std::vector<Column> columns_;
  std::vector<KeySlot> slots_;
  std::array<unsigned, kWords> used_{};  // bits
  bool fits_ = true;
  std::string layout_;
};

}  // namespace ptkit::tables::text
