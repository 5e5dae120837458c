// Lines of rows: a line is a sequence of fields, and each field writes one value of a row.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tables/text/address_texts.h"
#include "tables/text/text_buffer.h"
#include "tables/text/text_cache.h"

namespace ptkit::tables::text {

// One column, whatever the type of its cells.
using Cells =
    std::variant<std::span<const bool>, std::span<const std::uint8_t>, std::span<const std::uint16_t>,
                 std::span<const std::uint32_t>, std::span<const std::uint64_t>,
                 std::span<const std::int32_t>, std::span<const std::int64_t>>;

enum class Number : std::uint8_t {
  HEX16,    // 16 digits
  HEX,      // without leading zeros
  DECIMAL,  //
  SECONDS,  // of nanoseconds: "1.000000001"
};

struct NumberField {
  Cells cells;
  Number form = Number::DECIMAL;
};
// A text for each value; the last one for all larger values.
struct LabelField {
  Cells cells;
  std::vector<PaddedText> labels;
};
// A text for each row.
struct TextField {
  std::vector<std::string_view> texts;
};
struct AddressField {
  AddressTexts* texts = nullptr;
  code::symbol::RowAddresses rows;
  code::symbol::RowAddresses
      from{};  // of branches' targets: where they come from, known for indirect branches
};
struct AddressPairField {
  AddressTexts* texts = nullptr;
  code::symbol::RowAddresses from;
  code::symbol::RowAddresses to;
  code::symbol::RowAddresses indirect;  // `from`, known where an indirect branch may read an import slot
};
struct InstructionField {
  InstructionTexts* texts = nullptr;
  RowInstructions rows;
};
// Name and payload, in the manner of ptdump.
struct PacketField {
  std::span<const std::uint8_t> kinds;
  std::span<const std::uint64_t> payload;
  std::span<const std::uint64_t> payload2;
  std::span<const std::uint8_t> flags;
  bool annotated = false;  // PTW packets may be annotations of a recorder: these are explained
};
struct NoField {};

struct Field {
  PaddedText first;  // before each value, known or not
  std::variant<NoField, NumberField, LabelField, TextField, AddressField, AddressPairField, InstructionField,
               PacketField>
      value;
  std::span<const bool> known;  // empty: each value is known
  PaddedText before;            // before and after a known value
  PaddedText after;
  PaddedText unknown;  // instead of a value that is not known
  std::size_t width = 0;
  bool right = false;  // padded on the right
};

// Texts of the values of some fields, as long as those have the same layout. Few enough to stay in a
// processor's cache, for a trace may have as many values as rows.
struct KeptTexts {
  static constexpr std::size_t kMostSlots = std::size_t{1} << 18U;

  std::string layout;
  TextCache cache{kMostSlots};
};

// Fields [begin, end). Their values decide their text: it is kept, and rows of the same values have a copy.
struct Group {
  std::size_t begin = 0;
  std::size_t end = 0;
  KeptTexts* texts = nullptr;
};

// A line that stands before a row, or behind the last one.
using Note = std::pair<std::size_t, std::string_view>;

struct Lines {
  std::vector<Field> fields;
  std::size_t rows = 0;
  std::span<const bool> shown;  // empty: all rows
  bool strip = false;           // no blanks at the end of a line
  std::vector<Group> groups{};  // in order
};

// Takes whole lines. They are valid during the call.
using Output = std::function<void(std::string_view lines)>;

// Writes a line for each row, and the notes between them: both in order. `buffer` is memory for a part of
// them, kept from one call to the next.
void write_lines(const Lines& lines, std::span<const Note> notes, TextBuffer& buffer, const Output& output);

}  // namespace ptkit::tables::text
