// A field with a block of its values.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tables/text/fields.h"

namespace ptkit::tables::text {

inline constexpr std::size_t kBlockRows = 256;  // rows that are prepared at once

// Numbers and labels that are those of the row before need not be written again: their text can be copied,
// and that of equal neighbours at once.
class BlockField {
 public:
  explicit BlockField(const Field& field);

  // Reads rows [first, first + rows).
  void load(std::size_t first, std::size_t rows);
  // Sets `bit` in the masks of the loaded rows that are as the row before. The first row of a block is not.
  void mark_repeated(std::size_t rows, std::uint64_t bit, std::span<std::uint64_t> masks) const;
  // Writes a loaded row. False: another row with the same values may have another text.
  bool write(TextBuffer& out, std::size_t row) const {
    const std::size_t begin = out.size() + field_.first.size();
    bool same = true;
    if (!field_.known.empty() && !field_.known[row]) {
      out.add(unknown_);
    } else if (kind_ == Kind::LABEL) {
      out.add(labels_[std::min<std::uint64_t>(values_[row - first_], labels_.size() - 1)]);
    } else {
      out.add(lead_);
      same = write_value(out, row);
      if (field_.after.size() != 0) out.add(field_.after);
    }
    if (field_.width != 0) out.pad(begin, field_.width, field_.right);
    return same;
  }

 private:
  // Alternatives of Field::value.
  enum class Kind : std::uint8_t { NONE, NUMBER, LABEL, TEXT, ADDRESS, PAIR, INSTRUCTION, PACKET };

  template <typename Cell>
  void widen(std::span<const Cell> cells);
  void write_number(TextBuffer& out, std::uint64_t value) const;
  bool write_value(TextBuffer& out, std::size_t row) const;

  const Field& field_;
  Kind kind_;
  PaddedText lead_;                 // what comes before a value
  PaddedText unknown_;              // with what comes before it
  std::vector<PaddedText> labels_;  // with what comes before and after them
  std::size_t first_ = 0;           // row of the block's first value
  bool signed_ = false;
  std::array<std::uint64_t, kBlockRows> values_;  // of numbers and labels
};

}  // namespace ptkit::tables::text
