#include "tables/text/block_field.h"

#include <algorithm>
#include <string>
#include <type_traits>

#include "packet/text.h"
#include "trace/ptwrite_text.h"

namespace ptkit::tables::text {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::size_t kOpcodeWidth = 10;
constexpr std::size_t kPayloadWidth = 24;

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
  std::string annotation;
  if (field.annotated && packet.kind == packet::PacketKind::PTW)
    annotation = trace::ptwrite_text(packet.payload);
  const std::size_t begin = out.size();
  out.add(text.opcode);
  if (text.payload.size() + text.detail.size() == 0) return;
  out.pad(begin, kOpcodeWidth + 1, true);
  const std::size_t payload = out.size();
  out.add_padded(text.payload.data(), text.payload.size());
  if (text.detail.size() + annotation.size() == 0) return;
  out.pad(payload, kPayloadWidth, true);
  out.add(' ');
  out.add_padded(text.detail.data(), text.detail.size());
  out.add(annotation);
}

PaddedText joined(const PaddedText& one, std::string_view other) {
  return PaddedText(std::string(one.view()).append(other));
}

}  // namespace

BlockField::BlockField(const Field& field)
    : field_(field),
      kind_(static_cast<Kind>(field.value.index())),
      lead_(joined(field.first, field.before.view())),
      unknown_(joined(field.first, field.unknown.view())) {
  if (kind_ != Kind::LABEL) return;
  for (const PaddedText& label : std::get<LabelField>(field.value).labels) {
    labels_.push_back(joined(lead_, std::string(label.view()).append(field.after.view())));
  }
}

template <typename Cell>
void BlockField::widen(std::span<const Cell> cells) {
  using Wide = std::conditional_t<std::is_signed_v<Cell>, std::int64_t, std::uint64_t>;
  signed_ = std::is_signed_v<Cell>;
  for (std::size_t row = 0; row < cells.size(); ++row) {
    values_[row] = static_cast<std::uint64_t>(static_cast<Wide>(cells[row]));
  }
}

void BlockField::load(std::size_t first, std::size_t rows) {
  first_ = first;
  if (kind_ != Kind::NUMBER && kind_ != Kind::LABEL) return;
  const Cells& cells = kind_ == Kind::NUMBER ? std::get<NumberField>(field_.value).cells
                                             : std::get<LabelField>(field_.value).cells;
  std::visit([&](const auto& all) { widen(all.subspan(first, rows)); }, cells);
}

void BlockField::mark_repeated(std::size_t rows, std::uint64_t bit, std::span<std::uint64_t> masks) const {
  if (kind_ == Kind::NONE) {
    for (std::size_t row = 1; row < rows; ++row) masks[row] |= bit;
  }
  if (kind_ != Kind::NUMBER && kind_ != Kind::LABEL) return;
  const bool* const known = field_.known.empty() ? nullptr : field_.known.data() + first_;
  for (std::size_t row = 1; row < rows; ++row) {
    const bool same = values_[row] == values_[row - 1] && (known == nullptr || known[row] == known[row - 1]);
    masks[row] |= same ? bit : 0;
  }
}

void BlockField::write_number(TextBuffer& out, std::uint64_t value) const {
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

bool BlockField::write_value(TextBuffer& out, std::size_t row) const {
  switch (kind_) {
    case Kind::NUMBER:
      write_number(out, values_[row - first_]);
      return true;
    case Kind::TEXT:
      out.add(std::get_if<TextField>(&field_.value)->texts[row]);
      return true;
    case Kind::ADDRESS: {
      const auto& address = *std::get_if<AddressField>(&field_.value);
      return address.from.ips.empty() ? address.texts->add(out, address.rows, row)
                                      : address.texts->add_target(out, address.rows, address.from, row);
    }
    case Kind::PAIR: {
      const auto& pair = *std::get_if<AddressPairField>(&field_.value);
      return pair.texts->add_pair(out, pair.from, pair.to, pair.indirect, row);
    }
    case Kind::INSTRUCTION: {
      const auto& instruction = *std::get_if<InstructionField>(&field_.value);
      instruction.texts->add(out, instruction.rows, row);
      return true;
    }
    case Kind::PACKET:
      add_packet(out, *std::get_if<PacketField>(&field_.value), row);
      return true;
    case Kind::NONE:
    case Kind::LABEL:
      return true;
  }
  return true;
}

}  // namespace ptkit::tables::text
