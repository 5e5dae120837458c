#include "tables/text/field_keys.h"

#include <algorithm>
#include <functional>
#include <type_traits>

namespace ptkit::tables::text {
namespace {

// Texts may hold any byte, so each has its length before it.
void append(std::string& layout, std::string_view text) {
  layout.append(std::to_string(text.size())).append(":").append(text);
}

template <typename Cell>
constexpr unsigned bits_of() {
  return std::is_same_v<Cell, bool> ? 1 : 8 * sizeof(Cell);
}

}  // namespace

FieldKeys::FieldKeys(std::span<const Field> fields) {
  for (const Field& field : fields) {
    describe(field);
    add_known(field.known);
    if (const auto* number = std::get_if<NumberField>(&field.value)) {
      add(number->cells);
    } else if (const auto* label = std::get_if<LabelField>(&field.value)) {
      add(label->cells);
    } else if (const auto* address = std::get_if<AddressField>(&field.value)) {
      add(*address->texts, address->rows);
      if (!address->from.ips.empty()) add(*address->texts, address->from);
    } else if (const auto* pair = std::get_if<AddressPairField>(&field.value)) {
      add(*pair->texts, pair->from);
      add(*pair->texts, pair->to);
      add(*pair->texts, pair->indirect);
    } else if (!std::holds_alternative<NoField>(field.value)) {
      fits_ = false;
    }
  }
  // The widest first: then narrow values fill what is left.
  std::ranges::stable_sort(columns_, std::greater(), &Column::bits);
  for (Column& column : columns_) put(column.bits, column.word, column.shift);
  for (KeySlot& one : slots_) put(kViewBits, one.word, one.shift);
}

void FieldKeys::describe(const Field& field) {
  append(layout_, std::to_string(field.value.index()));
  for (const PaddedText* text : {&field.first, &field.before, &field.after, &field.unknown}) {
    append(layout_, text->view());
  }
  append(layout_, std::to_string(2 * field.width + (field.right ? 1 : 0)));
  if (const auto* number = std::get_if<NumberField>(&field.value))
    append(layout_, std::to_string(static_cast<int>(number->form)));
  if (const auto* label = std::get_if<LabelField>(&field.value)) {
    for (const PaddedText& text : label->labels) append(layout_, text.view());
  }
}

void FieldKeys::add(const Cells& cells) {
  std::visit(
      [&]<typename Cell>(std::span<const Cell> all) {
        std::size_t which = 0;
        const auto same = [&](const Column& column) {
          const auto* other = std::get_if<std::span<const Cell>>(&column.cells);
          return other != nullptr && other->data() == all.data();
        };
        while (which < columns_.size() && !same(columns_[which])) ++which;
        if (which == columns_.size()) columns_.push_back({cells, bits_of<Cell>(), 0, 0});
        append(layout_, std::to_string(which));
        append(layout_, std::to_string(cells.index()));
      },
      cells);
}

void FieldKeys::add_known(std::span<const bool> known) {
  layout_ += known.empty() ? '-' : 'k';
  if (!known.empty()) add(Cells(known));
}

void FieldKeys::add(AddressTexts& texts, const code::symbol::RowAddresses& rows) {
  append(layout_, texts.description());
  add_known(rows.known);
  add(Cells(rows.ips));
  std::size_t which = 0;
  const auto same = [&](const KeySlot& one) {
    return one.rows.spaces.data() == rows.spaces.data() && one.rows.tsc.data() == rows.tsc.data();
  };
  while (which < slots_.size() && !same(slots_[which])) ++which;
  if (which == slots_.size()) slots_.push_back({&texts, rows, 0, 0});
  append(layout_, std::to_string(which));
}

void FieldKeys::put(unsigned bits, std::size_t& word, unsigned& shift) {
  for (word = 0; word < kWords && used_[word] + bits > 64; ++word) {
  }
  if (word == kWords) {
    fits_ = false;
    return;
  }
  shift = used_[word];
  used_[word] += bits;
}

void FieldKeys::read(std::size_t first, std::span<TextCache::Key> keys) const {
  static constexpr std::array kWordOf = {&TextCache::Key::ip, &TextCache::Key::view, &TextCache::Key::more};
  std::ranges::fill(keys, TextCache::Key{});
  for (const Column& column : columns_) {
    const auto word = kWordOf[column.word];
    std::visit(
        [&]<typename Cell>(std::span<const Cell> all) {
          using Bits = typename std::conditional_t<std::is_same_v<Cell, bool>, std::type_identity<bool>,
                                                   std::make_unsigned<Cell>>::type;
          for (std::size_t row = 0; row < keys.size(); ++row) {
            keys[row].*word |= std::uint64_t{static_cast<Bits>(all[first + row])} << column.shift;
          }
        },
        column.cells);
  }
  for (const KeySlot& one : slots_) {
    const auto word = kWordOf[one.word];
    for (std::size_t row = 0; row < keys.size(); ++row) {
      keys[row].*word |= one.texts->view_key_of(one.rows, first + row) << one.shift;
    }
  }
}

}  // namespace ptkit::tables::text
