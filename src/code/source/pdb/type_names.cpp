#include "code/source/pdb/type_names.h"

#include <algorithm>

namespace ptkit::code::pdb {
namespace {

constexpr std::uint32_t kTypeStream = 2;
constexpr std::uint32_t kIdStream = 4;

constexpr std::uint16_t kClass = 0x1504;
constexpr std::uint16_t kStructure = 0x1505;
constexpr std::uint16_t kUnion = 0x1506;
constexpr std::uint16_t kInterface = 0x1519;
constexpr std::uint16_t kFunctionId = 0x1601;
constexpr std::uint16_t kMethodId = 0x1602;
constexpr std::uint16_t kStringId = 0x1605;

// A number of 16 bits, or from 0x8000 on the kind of the number that follows. False: the kind is not known.
bool skip_number(Cursor& fields) {
  constexpr std::uint16_t kFirstKind = 0x8000;
  const std::uint16_t kind = fields.u16();
  switch (kind) {
    case kFirstKind:  // 8 bits
      fields.skip(1);
      return true;
    case kFirstKind + 1:  // 16 bits, signed and unsigned
    case kFirstKind + 2:
      fields.skip(2);
      return true;
    case kFirstKind + 3:  // 32 bits
    case kFirstKind + 4:
      fields.skip(4);
      return true;
    case kFirstKind + 9:  // 64 bits
    case kFirstKind + 10:
      fields.skip(8);
      return true;
    default:
      return kind < kFirstKind;
  }
}

}  // namespace

// version, bytes of the header, number of the first record, and after the last one, bytes of records; more
TypeRecords::TypeRecords(const MsfFile& file, std::uint32_t stream) {
  stream_ = file.stream(stream, problem_);
  if (stream_.size() == 0) return;  // older PDBs lack names of inlined functions
  Cursor header(stream_);
  header.skip(sizeof(std::uint32_t));
  const std::uint32_t begin = header.u32();
  first_ = header.u32();
  header.skip(sizeof(std::uint32_t));
  const std::uint32_t bytes = header.u32();
  if (!header.good() || begin > stream_.size() || bytes > stream_.size() - begin) {
    problem_ = damage_at(stream, 0, "it has no header of types");
    return;
  }
  end_ = begin + bytes;
  marks_.push_back(begin);
}

TypeRecords::Record TypeRecords::find(std::uint32_t number) {
  constexpr std::uint32_t kKindBytes = 2;
  Record none{0, Cursor(base::Bytes())};
  if (marks_.empty() || number < first_) return none;
  const std::uint32_t wanted = number - first_;
  std::uint32_t at = std::min(wanted / kStep, static_cast<std::uint32_t>(marks_.size() - 1)) * kStep;
  for (Cursor records(stream_, marks_[at / kStep], end_);; ++at) {
    if (at % kStep == 0 && at / kStep == marks_.size()) marks_.push_back(records.offset());
    const std::uint16_t size = records.u16();
    if (!records.good() || size < kKindBytes) return none;
    if (at == wanted) {
      const std::uint32_t begin = records.offset();
      if (size > end_ - begin) return none;
      Record found{0, Cursor(stream_, begin, begin + size)};
      found.kind = found.fields.u16();
      return found;
    }
    records.skip(size);
  }
}

std::string TypeRecords::name(Record& record) {
  std::string text(record.fields.text());
  if (!record.fields.good() && problem_.empty()) {
    problem_ = damage_at(stream_.number(), record.fields.offset(), "a name is cut");
    marks_.clear();
  }
  return text;
}

TypeNames::TypeNames(const MsfFile& file, code::source::Strings& texts, code::source::Budget& memory)
    : texts_(texts), memory_(memory), types_(file, kTypeStream), ids_(file, kIdStream) {}

std::uint32_t TypeNames::of_function(std::uint32_t function) {
  const auto [known, is_new] = names_.try_emplace(function, code::source::kNone);
  if (!is_new) return known->second;
  const std::string name = whole_name(function);
  if (memory_.take(1 + name.size())) known->second = texts_.number(name.c_str(), memory_);
  return known->second;
}

// scope or class, type, name
std::string TypeNames::whole_name(std::uint32_t function) {
  TypeRecords::Record record = ids_.find(function);
  if (record.kind != kFunctionId && record.kind != kMethodId) return {};
  const std::uint32_t scope = record.fields.u32();
  record.fields.skip(sizeof(std::uint32_t));
  const std::string name = ids_.name(record);
  if (name.empty()) return {};
  const std::string outer = record.kind == kMethodId ? class_name(scope) : scope_name(scope);
  return outer.empty() ? name : outer + "::" + name;
}

// members, properties, list of members, base, virtual functions, size, name; a union has no base and virtuals
std::string TypeNames::class_name(std::uint32_t type) {
  constexpr std::uint32_t kClassBytes = 16;
  constexpr std::uint32_t kUnionBytes = 8;
  TypeRecords::Record record = types_.find(type);
  if (record.kind != kClass && record.kind != kStructure && record.kind != kUnion &&
      record.kind != kInterface)
    return {};
  record.fields.skip(record.kind == kUnion ? kUnionBytes : kClassBytes);
  return skip_number(record.fields) ? types_.name(record) : std::string();
}

// The rest of the list that the text begins, text. Command lines of compilers are such texts, too.
std::string TypeNames::scope_name(std::uint32_t scope) {
  constexpr std::size_t kLongest = 4096;
  TypeRecords::Record record = ids_.find(scope);
  if (record.kind != kStringId) return {};
  record.fields.skip(sizeof(std::uint32_t));
  const std::string text = ids_.name(record);
  return text.size() <= kLongest ? text : std::string();
}

}  // namespace ptkit::code::pdb
