#include "trace_unit/msr/registers.h"

#include <array>

#include "base/ascii.h"
#include "base/hexadecimal.h"
#include "ptkit/rtit_regs.h"

namespace ptkit::trace_unit::msr {

namespace {

enum class Id : std::uint8_t {
#define PT_REGISTER(id, number, count, stride, name, rest, words) id,
#define PT_FIELD(id, name, shift, width, format, set, clear)
#include "trace_unit/msr/registers.def"
#undef PT_REGISTER
#undef PT_FIELD
};

constexpr Field kCtlFields[] = {
#define PT_CTL_FIELD(member, type, name, shift, width, format, perf, set, clear) \
  {name, shift, width, FieldFormat::format, perf, set, clear},
#include "trace_unit/msr/ctl.def"
#undef PT_CTL_FIELD
};

struct OwnedField {
  Id owner;
  Field field;
};

constexpr OwnedField kOtherFields[] = {
#define PT_REGISTER(id, number, count, stride, name, rest, words)
#define PT_FIELD(id, name, shift, width, format, set, clear) \
  {Id::id, {name, shift, width, FieldFormat::format, "", set, clear}},
#include "trace_unit/msr/registers.def"
#undef PT_REGISTER
#undef PT_FIELD
};

constexpr auto kPlainFields = [] {
  std::array<Field, std::size(kOtherFields)> fields{};
  for (std::size_t i = 0; i < fields.size(); ++i) fields[i] = kOtherFields[i].field;
  return fields;
}();

enum class Rest : std::uint8_t { RESERVED, OTHER };

constexpr std::span<const Field> fields_of(Id id) {
  if (id == Id::RTIT_CTL) return kCtlFields;
  std::size_t begin = 0;
  while (begin < kPlainFields.size() && kOtherFields[begin].owner != id) ++begin;
  std::size_t end = begin;
  while (end < kPlainFields.size() && kOtherFields[end].owner == id) ++end;
  return std::span(kPlainFields).subspan(begin, end - begin);
}

constexpr Register kRegisters[] = {
#define PT_REGISTER(id, number, count, stride, name, rest, words) \
  {number, count, stride, name, Rest::rest == Rest::RESERVED, words, fields_of(Id::id)},
#define PT_FIELD(id, name, shift, width, format, set, clear)
#include "trace_unit/msr/registers.def"
#undef PT_REGISTER
#undef PT_FIELD
};

// Fields are sorted and do not overlap, and every register has fields.
constexpr bool well_formed() {
  for (const Register& row : kRegisters) {
    if (row.fields.empty()) return false;
    unsigned free = 0;
    for (const Field& field : row.fields) {
      if (field.first < free || field.width == 0 || field.first + field.width > 64) return false;
      free = field.first + field.width;
    }
  }
  return true;
}
static_assert(well_formed());

bool same(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (base::ascii_lower(a[i]) != base::ascii_lower(b[i])) return false;
  }
  return true;
}

std::string_view short_name(std::string_view name) { return name.substr(name.find('_') + 1); }

}  // namespace

std::span<const Register> registers() noexcept { return kRegisters; }

std::span<const Field> ctl_fields() noexcept { return kCtlFields; }

const Register* find_register(std::uint32_t number) noexcept {
  for (const Register& row : kRegisters) {
    if (number < row.number || (number - row.number) % row.stride != 0) continue;
    if ((number - row.number) / row.stride < row.count) return &row;
  }
  return nullptr;
}

std::string register_name(const Register& row, std::uint32_t index) {
  std::string name(row.name);
  // n is the only lower-case letter of a name.
  if (row.count > 1) name.replace(name.find('n'), 1, std::to_string(index));
  return name;
}

std::string register_name(std::uint32_t number) {
  if (const Register* row = find_register(number); row != nullptr) {
    return register_name(*row, (number - row->number) / row->stride);
  }
  return "MSR " + base::hexadecimal(number);
}

std::optional<NamedRegister> register_named(std::string_view name) {
  for (const Register& row : kRegisters) {
    for (std::uint32_t i = 0; i < row.count; ++i) {
      const std::string full = register_name(row, i);
      if (same(name, full) || same(name, short_name(full)))
        return NamedRegister{&row, row.number + i * row.stride};
    }
  }
  return std::nullopt;
}

}  // namespace ptkit::trace_unit::msr
