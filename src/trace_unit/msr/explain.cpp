#include "trace_unit/msr/explain.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/hexadecimal.h"
#include "ptkit/rtit_regs.h"

namespace ptkit::trace_unit::msr {

namespace {

std::string mask_or_table(std::uint64_t value) {
  const std::uint64_t mask = value << PT_OUTPUT_TABLE_OFFSET_SHIFT | PT_OUTPUT_MASK_LOWEST;
  const std::string table = "with ToPA, entry " + std::to_string(value) + " of the table (byte " +
                            base::hexadecimal(value * PT_TOPA_ENTRY_BYTES) + ")";
  if (!std::has_single_bit(mask + 1)) return "for one range no mask of consecutive ones; " + table;
  return "one range of " + bytes_text(mask + 1) + "; " + table;
}

// "cycle", "8 cycles"
std::string counted(std::uint64_t count, std::string_view noun) {
  if (count == 1) return std::string(noun);
  return std::to_string(count).append(1, ' ').append(noun).append(1, 's');
}

std::string cyc_thresh(std::uint64_t value) {
  if (value == 0) return "with CYCEn, a CYC packet before each packet that may have one";
  return "with CYCEn, a CYC packet at most every " + counted(std::uint64_t{1} << (value - 1), "cycle");
}

std::string addr_cfg(std::uint64_t value, std::string_view range) {
  switch (value) {
    case PT_ADDR_CFG_OFF:
      return std::string(range) + " is not used";
    case PT_ADDR_CFG_FILTER:
      return "traces code of " + std::string(range);
    case PT_ADDR_CFG_TRACE_STOP:
      return "tracing stops for good in " + std::string(range);
    default:
      return "reserved";
  }
}

std::string words_of(const Field& field, std::uint64_t value) {
  switch (field.format) {
    case FieldFormat::FLAG:
      return std::string(value != 0 ? field.set : field.clear);
    case FieldFormat::LOWER_MASK:
      return "always ones";
    case FieldFormat::MASK_OR_TABLE:
      return mask_or_table(value);
    case FieldFormat::MTC_FREQ:
      return "with MTCEn, an MTC packet every " + counted(std::uint64_t{1} << value, "tick") +
             " of the crystal clock";
    case FieldFormat::CYC_THRESH:
      return cyc_thresh(value);
    case FieldFormat::PSB_FREQ:
      return "a PSB about every " + bytes_text(std::uint64_t{2048} << value);
    case FieldFormat::ADDR_CFG:
      return addr_cfg(value, field.set);
    case FieldFormat::NUMBER:
    case FieldFormat::ADDRESS:
      break;
  }
  return std::string(field.set);
}

// Replaces n in a field's name by the number of the register.
std::string numbered(std::string_view name, const Register& row, std::uint32_t number) {
  std::string out(name);
  if (const auto at = out.find('n'); row.count > 1 && at != std::string::npos)
    out.replace(at, 1, std::to_string((number - row.number) / row.stride));
  return out;
}

// Groups of adjacent set bits, as fields without a meaning.
void add_rest(std::uint64_t bits, bool reserved, std::vector<FieldValue>& out) {
  while (bits != 0) {
    const auto first = static_cast<unsigned>(std::countr_zero(bits));
    const auto width = static_cast<unsigned>(std::countr_one(bits >> first));
    const std::uint64_t run = (width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1);
    out.push_back({reserved ? "reserved" : "other", static_cast<std::uint8_t>(first),
                   static_cast<std::uint8_t>(width), run, reserved ? "must be 0" : "not of tracing"});
    bits &= ~(run << first);
  }
}

}  // namespace

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits{"bytes", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && bytes % 1024 == 0 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + " " + std::string(kUnits[unit]);
}

std::vector<FieldValue> explain(const NamedRegister& which, std::uint64_t value) {
  std::vector<FieldValue> out;
  if (which.row == nullptr) return out;
  std::uint64_t known = 0;
  for (const Field& field : which.row->fields) {
    known |= field.mask();
    const std::uint64_t own = field.of(value);
    const std::uint64_t shown = field.format == FieldFormat::ADDRESS ? value & field.mask() : own;
    out.push_back({numbered(field.name, *which.row, which.number), field.first, field.width, shown,
                   words_of(field, own)});
  }
  add_rest(value & ~known, which.row->complete, out);
  std::stable_sort(out.begin(), out.end(),
                   [](const FieldValue& a, const FieldValue& b) { return a.first < b.first; });
  return out;
}

std::vector<FieldValue> explain(std::uint32_t number, std::uint64_t value) {
  return explain({find_register(number), number}, value);
}

std::string summary(std::uint32_t number, std::uint64_t value) {
  return summary({find_register(number), number}, value);
}

std::string summary(const NamedRegister& which, std::uint64_t value) {
  std::string text;
  for (const FieldValue& field : explain(which, value)) {
    if (field.value == 0) continue;
    if (!text.empty()) text += ", ";
    text += field.name;
    if (field.width == 1) continue;
    text += ' ';
    text += field.width > 8 ? base::hexadecimal(field.value) : std::to_string(field.value);
  }
  return text.empty() ? "all 0" : text;
}

}  // namespace ptkit::trace_unit::msr
