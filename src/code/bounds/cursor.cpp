#include "code/bounds/cursor.h"

namespace ptkit::code::bounds {

Cursor Cursor::part(std::uint64_t count) noexcept {
  const std::size_t begin = at_;
  skip(count);
  Cursor part(good_ ? bytes_.subspan(begin, at_ - begin) : base::Bytes(), address_ + begin, is_64_bit_);
  part.good_ = good_;
  return part;
}

std::uint64_t Cursor::leb(bool is_signed) noexcept {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const std::uint8_t next = byte();
    value |= std::uint64_t{next & 0x7fU} << shift;
    if ((next & 0x80U) != 0) continue;
    return is_signed && (next & 0x40U) != 0 && shift < 57 ? base::sign_extend(value, shift + 7) : value;
  }
  good_ = false;  // no compiler writes more bytes, and a long row of them would be read again and again
  return 0;
}

std::uint64_t Cursor::value(std::uint8_t encoding) noexcept {
  switch (encoding & kFormat) {
    case 0x0:  // DW_EH_PE_absptr
      return is_64_bit_ ? fixed<8>() : fixed<4>();
    case 0x1:
      return leb(false);
    case 0x2:
      return fixed<2>();
    case 0x3:
      return fixed<4>();
    case 0x4:
    case 0xc:
      return fixed<8>();
    case 0x9:
      return leb(true);
    case 0xa:
      return base::sign_extend(fixed<2>(), 16);
    case 0xb:
      return base::sign_extend(fixed<4>(), 32);
    default:
      good_ = false;
      return 0;
  }
}

std::optional<std::uint64_t> Cursor::pointer(std::uint8_t encoding) noexcept {
  if (encoding == kOmitted) return std::nullopt;
  const std::uint64_t field = address();
  std::uint64_t target = value(encoding);
  const std::uint8_t base = encoding & kBase;
  const bool is_known = base == 0 || base == kFromField;
  if (!good_ || target == 0 || !is_known || (encoding & kIndirect) != 0) return std::nullopt;
  if (base == kFromField) target += field;
  return is_64_bit_ ? target : target & 0xFFFF'FFFF;
}

}  // namespace ptkit::code::bounds
