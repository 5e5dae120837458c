#include "lines/fields.h"

#include <algorithm>
#include <array>
#include <bit>

#include "packet/text.h"

namespace ptkit::lines {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::size_t kOpcodeWidth = 10;
constexpr std::size_t kPayloadWidth = 24;
constexpr std::size_t kOutputBytes = std::size_t{1} << 17U;  // that are given out at once
constexpr std::size_t kBlockRows = 256;                      // rows that are prepared at once
constexpr std::size_t kMostFields = 64;                      // as many as a mask has bits

void add_seconds(TextBuffer& out, std::int64_t ns) {
  std::int64_t seconds = ns / kSecond;
  std::int64_t rest = ns % kSecond;
  if (rest < 0) rest += kSecond, --seconds;
  out.add_decimal(seconds);
  std::array<char, base::kMostDigits> digits;
  // Begins with the digit 1, which is replaced by the point.
  char* const end = base::put_decimal(digits.data(), kSecond + rest);
  digits[0] = '.';
  out.add({digits.data(), end});
}

void add_packet(TextBuffer& out, const PacketField& field, std::size_t row) {
  packet::Packet packet;
  packet.kind = static_cast<packet::PacketKind>(field.kinds[row]);
  packet.payload = field.payload[row];
  packet.payload2 = field.payload2[row];
  packet.flags = field.flags[row];
  const packet::DumpText text = packet::dump_text(packet);
  const std::size_t begin = out.size();
  out.add(text.opcode);
  if (text.payload.size() + text.detail.size() == 0) return;
  out.pad(begin, kOpcodeWidth + 1, true);
  const std::size_t payload = out.size();
  out.add_padded(text.payload.data(), text.payload.size());
  if (text.detail.size() == 0) return;
  out.pad(payload, kPayloadWidth, true);
  out.add(' ');
  out.add_padded(text.detail.data(), text.detail.size());
}

PaddedText joined(const PaddedText& one, std::string_view other) {
  return PaddedText(std::string(one.view()).append(other));
}

// A field with a block of its values. Numbers and labels that are those of the row before need not be written
// again: their text is copied, and that of equal neighbours at once.
class BlockField {
 public:
  explicit BlockField(const Field& field)
      : field_(field),
        kind_(static_cast<Kind>(field.value.index())),
        lead_(joined(field.first, field.before.view())),
        unknown_(joined(field.first, field.unknown.view())) {
    if (kind_ != Kind::LABEL) return;
    for (const PaddedText& label : std::get<LabelField>(field.value).labels) {
      labels_.push_back(joined(lead_, std::string(label.view()).append(field.after.view())));
    }
  }

  // Reads rows [first, first + rows), and sets `bit` in the masks of the rows that are as the row before. The
  // first row of a block is not.
  void load(std::size_t first, std::size_t rows, std::uint64_t bit, std::span<std::uint64_t> masks) {
    first_ = first;
    if (kind_ == Kind::NONE) {
      for (std::size_t row = 1; row < rows; ++row) masks[row] |= bit;
    }
    if (kind_ != Kind::NUMBER && kind_ != Kind::LABEL) return;
    const Cells& cells = kind_ == Kind::NUMBER ? std::get<NumberField>(field_.value).cells
                                               : std::get<LabelField>(field_.value).cells;
    std::visit([&](const auto& all) { widen(all.subspan(first, rows)); }, cells);
    const bool* const known = field_.known.empty() ? nullptr : field_.known.data() + first;
    for (std::size_t row = 1; row < rows; ++row) {
      const bool same =
          values_[row] == values_[row - 1] && (known == nullptr || known[row] == known[row - 1]);
      masks[row] |= same ? bit : 0;
    }
  }

  void write(TextBuffer& out, std::size_t row) const {
    const std::size_t begin = out.size() + field_.first.size();
    if (!field_.known.empty() && !field_.known[row]) {
      out.add(unknown_);
    } else if (kind_ == Kind::LABEL) {
      out.add(labels_[std::min<std::uint64_t>(values_[row - first_], labels_.size() - 1)]);
    } else {
      out.add(lead_);
      write_value(out, row);
      if (field_.after.size() != 0) out.add(field_.after);
    }
    if (field_.width != 0) out.pad(begin, field_.width, field_.right);
  }

 private:
  // Alternatives of Field::value.
  enum class Kind : std::uint8_t { NONE, NUMBER, LABEL, TEXT, ADDRESS, PAIR, INSTRUCTION, PACKET };

  template <typename Cell>
  void widen(std::span<const Cell> cells) {
    using Wide = std::conditional_t<std::is_signed_v<Cell>, std::int64_t, std::uint64_t>;
    signed_ = std::is_signed_v<Cell>;
    for (std::size_t row = 0; row < cells.size(); ++row) {
      values_[row] = static_cast<std::uint64_t>(static_cast<Wide>(cells[row]));
    }
  }

  void write_number(TextBuffer& out, std::uint64_t value) const {
    switch (std::get_if<NumberField>(&field_.value)->form) {
      case Number::HEX16:
        return out.add_hex16(value);
      case Number::HEX:
        return out.add_hex(value);
      case Number::DECIMAL:
        return signed_ ? out.add_decimal(static_cast<std::int64_t>(value)) : out.add_decimal(value);
      case Number::SECONDS:
        return add_seconds(out, static_cast<std::int64_t>(value));
    }
  }

  void write_value(TextBuffer& out, std::size_t row) const {
    switch (kind_) {
      case Kind::NUMBER:
        return write_number(out, values_[row - first_]);
      case Kind::TEXT:
        return out.add(std::get_if<TextField>(&field_.value)->texts[row]);
      case Kind::ADDRESS: {
        const auto& address = *std::get_if<AddressField>(&field_.value);
        return address.texts->add(out, address.rows, row);
      }
      case Kind::PAIR: {
        const auto& pair = *std::get_if<AddressPairField>(&field_.value);
        return pair.texts->add_pair(out, pair.from, pair.to, row);
      }
      case Kind::INSTRUCTION: {
        const auto& instruction = *std::get_if<InstructionField>(&field_.value);
        return instruction.texts->add(out, instruction.rows, row);
      }
      case Kind::PACKET:
        return add_packet(out, *std::get_if<PacketField>(&field_.value), row);
      case Kind::NONE:
      case Kind::LABEL:
        return;
    }
  }

  const Field& field_;
  Kind kind_;
  PaddedText lead_;                 // what comes before a value
  PaddedText unknown_;              // with what comes before it
  std::vector<PaddedText> labels_;  // with what comes before and after them
  std::size_t first_ = 0;           // row of the block's first value
  bool signed_ = false;
  std::array<std::uint64_t, kBlockRows> values_;  // of numbers and labels
};

class LineWriter {
 public:
  LineWriter(const Lines& lines, std::span<const Note> notes, TextBuffer& out, const Output& output)
      : lines_(lines),
        notes_(notes),
        fields_(lines.fields.begin(), lines.fields.end()),
        starts_(lines.fields.size() + 1),
        out_(out),
        output_(output) {}

  void write() {
    out_.clear();
    for (std::size_t first = 0; first < lines_.rows; first += kBlockRows) {
      write_block(first, std::min(kBlockRows, lines_.rows - first));
    }
    write_notes(lines_.rows);
    if (out_.size() != 0) output_(out_.view());
  }

 private:
  void write_block(std::size_t first, std::size_t rows) {
    masks_.fill(0);
    for (std::size_t field = 0; field < fields_.size(); ++field) {
      const std::uint64_t bit = field < kMostFields ? std::uint64_t{1} << field : 0;
      fields_[field].load(first, rows, bit, masks_);
    }
    can_copy_ = false;
    for (std::size_t row = 0; row < rows; ++row) {
      write_notes(first + row);
      if (!lines_.shown.empty() && !lines_.shown[first + row]) {
        can_copy_ = false;
        continue;
      }
      write_line(first + row, can_copy_ ? masks_[row] : 0);
      if (out_.size() >= kOutputBytes) give_out();
    }
  }

  // `same` are the fields that the line before has, too.
  void write_line(std::size_t row, std::uint64_t same) {
    const std::size_t begin = out_.size();
    for (std::size_t field = 0; field < fields_.size();) {
      const std::uint64_t from_here = field < kMostFields ? same >> field : 0;
      if ((from_here & 1U) != 0) {
        const std::size_t end =
            std::min(field + static_cast<std::size_t>(std::countr_one(from_here)), fields_.size());
        const std::size_t moved = out_.size() - starts_[field];
        out_.repeat(starts_[field], starts_[end] - starts_[field]);
        for (; field < end; ++field) starts_[field] += moved;
      } else {
        starts_[field] = out_.size();
        fields_[field].write(out_, row);
        ++field;
      }
    }
    starts_.back() = out_.size();
    if (lines_.strip) out_.strip(begin);
    can_copy_ = out_.size() == starts_.back();
    out_.add('\n');
  }

  void write_notes(std::size_t row) {
    for (; next_note_ < notes_.size() && notes_[next_note_].first <= row; ++next_note_) {
      out_.add(notes_[next_note_].second);
      out_.add('\n');
      if (out_.size() >= kOutputBytes) give_out();
    }
  }

  void give_out() {
    output_(out_.view());
    out_.clear();
    can_copy_ = false;
  }

  const Lines& lines_;
  std::span<const Note> notes_;
  std::size_t next_note_ = 0;
  std::vector<BlockField> fields_;
  std::vector<std::size_t> starts_;              // of the fields of the last line, and their end
  bool can_copy_ = false;                        // fields of the last line
  std::array<std::uint64_t, kBlockRows> masks_;  // fields that are those of the row before, by row
  TextBuffer& out_;
  const Output& output_;
};

}  // namespace

void write_lines(const Lines& lines, std::span<const Note> notes, TextBuffer& buffer, const Output& output) {
  LineWriter(lines, notes, buffer, output).write();
}

}  // namespace ptkit::lines
