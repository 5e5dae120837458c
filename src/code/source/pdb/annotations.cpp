#include "code/source/pdb/annotations.h"

#include "code/source/pdb/cursor.h"

namespace ptkit::code::pdb {
namespace {

enum class Operation : std::uint8_t {
  END,  // the rest aligns the record
  CODE_OFFSET,
  CODE_OFFSET_BASE,
  CODE_STEP,
  CODE_LENGTH,
  FILE,
  LINE_STEP,
  LINE_END_STEP,
  RANGE_KIND,
  COLUMN,
  COLUMN_END_STEP,
  CODE_AND_LINE_STEP,    // the line above 4 bits of code
  CODE_LENGTH_AND_STEP,  // two operands
  COLUMN_END,
};

// 0xxxxxxx, 10xxxxxx and a byte, or 110xxxxx and three bytes: the highest bits first.
bool take_number(Cursor& bytes, std::uint32_t& number) {
  constexpr std::uint32_t kByte = 8;
  const std::uint32_t first = bytes.next<std::uint8_t>();
  const unsigned more = first < 0x80 ? 0 : first < 0xc0 ? 1 : 3;
  number = more == 0 ? first : first & (more == 1 ? 0x3fU : 0x1fU);
  for (unsigned i = 0; i < more; ++i) number = number << kByte | bytes.next<std::uint8_t>();
  return bytes.good() && first < 0xe0;
}

// The lowest bit is the sign.
std::uint32_t signed_step(std::uint32_t number) noexcept {
  return (number & 1U) != 0 ? 0 - (number >> 1U) : number >> 1U;
}

class SiteRows {
 public:
  SiteRows(std::uint32_t size, std::vector<SiteRow>& rows) : size_(size), rows_(rows) {}

  [[nodiscard]] bool read(base::Bytes annotations) {
    constexpr std::uint32_t kCodeBits = 4;
    Cursor bytes(annotations);
    while (bytes.left() != 0) {
      std::uint32_t code = 0;
      std::uint32_t number = 0;
      if (!take_number(bytes, code)) return false;
      const auto operation = static_cast<Operation>(code);
      if (code == 0) break;
      if (code > static_cast<std::uint32_t>(Operation::COLUMN_END) || !take_number(bytes, number))
        return false;
      switch (operation) {
        case Operation::CODE_OFFSET:
        case Operation::CODE_STEP:
          begin_code(number);
          break;
        case Operation::CODE_LENGTH:
          end_code(number);
          break;
        case Operation::FILE:
          at_.file = number;
          break;
        case Operation::LINE_STEP:
          step_line(number);
          break;
        case Operation::CODE_AND_LINE_STEP:
          step_line(number >> kCodeBits);
          begin_code(number & ((1U << kCodeBits) - 1));
          break;
        case Operation::CODE_LENGTH_AND_STEP: {
          std::uint32_t step = 0;
          if (!take_number(bytes, step)) return false;
          begin_code(step);
          const std::uint32_t begin = at_.offset;
          end_code(number);
          at_.offset = begin;  // the length is no step then
          break;
        }
        default:
          break;
      }
    }
    if (is_open_) add(size_, SiteRow::kOutside, 0);
    return true;
  }

 private:
  void go_on(std::uint32_t bytes) noexcept {
    at_.offset = bytes < size_ && at_.offset < size_ - bytes ? at_.offset + bytes : size_;
  }
  void step_line(std::uint32_t number) noexcept {
    at_.line = static_cast<std::int32_t>(static_cast<std::uint32_t>(at_.line) + signed_step(number));
  }
  void begin_code(std::uint32_t step) {
    go_on(step);
    add(at_.offset, at_.file, at_.line);
    is_open_ = true;
  }
  void end_code(std::uint32_t length) {
    go_on(length);
    if (is_open_) add(at_.offset, SiteRow::kOutside, 0);
    is_open_ = false;
  }
  void add(std::uint32_t offset, std::uint32_t file, std::int32_t line) {
    while (!rows_.empty() && rows_.back().offset >= offset) rows_.pop_back();
    rows_.push_back({offset, file, line});
  }

  std::uint32_t size_;
  std::vector<SiteRow>& rows_;
  SiteRow at_;
  bool is_open_ = false;  // the last row has no end
};

}  // namespace

bool read_annotations(base::Bytes annotations, std::uint32_t size, std::vector<SiteRow>& rows) {
  rows.clear();
  return SiteRows(size, rows).read(annotations);
}

}  // namespace ptkit::code::pdb
