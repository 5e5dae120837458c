#include "code/source/pdb/dump/id_names.h"

#include <algorithm>
#include <array>
#include <optional>

#include "code/source/pdb/dump/keys.h"

namespace ptkit::code::pdb {
namespace {

// The begin of a record: "0x1002 | LF_MFUNC_ID [size = 16]".
struct IdRecord {
  std::uint32_t number = 0;
  std::string_view kind;  // empty: the line begins no record
};

IdRecord id_record_of(std::string_view text) noexcept {
  constexpr std::string_view kMark = " | ";
  const std::size_t at = text.find(kMark);
  if (!text.starts_with("0x") || at == std::string_view::npos) return {};
  const auto number = whole_number(text.substr(2, at - 2), 16);
  const std::string_view kind = text.substr(at + kMark.size());
  if (!number || !kind.starts_with("LF_")) return {};
  return {*number, kind.substr(0, kind.find(' '))};
}

}  // namespace

void IdNames::read_line(std::string_view line) {
  const std::string_view text = trim(line);
  const IdRecord record = id_record_of(text);
  if (record.kind.empty()) {
    if (open_ != nullptr) read_function(text);
    return;
  }
  open_ = nullptr;
  const bool is_method = record.kind == "LF_MFUNC_ID";
  if (!is_method && record.kind != "LF_FUNC_ID" && record.kind != "LF_STRING_ID") return;
  if (!memory_.take(kEntryBytes)) return;
  Id& id = ids_[record.number];
  id.is_method = is_method;
  if (record.kind == "LF_STRING_ID") {
    constexpr std::string_view kString = ", String: ";
    constexpr std::size_t kLongest = 4096;  // command lines of compilers are strings, too
    const std::size_t at = text.find(kString);
    if (at != std::string_view::npos && text.size() - at <= kLongest)
      id.name = texts_.number(std::string(text.substr(at + kString.size())).c_str(), memory_);
  } else {
    open_ = &id;
  }
}

void IdNames::read_function(std::string_view text) {
  constexpr std::string_view kName = "name = ";
  const std::string_view scope = open_->is_method ? ", class type = 0x" : ", parent scope = 0x";
  const std::size_t type = text.rfind(", type = ");
  if (!text.starts_with(kName) || type == std::string_view::npos || type < kName.size()) return;
  open_->name = texts_.number(std::string(text.substr(kName.size(), type - kName.size())).c_str(), memory_);
  if (const std::size_t at = text.find(scope, type); at != std::string_view::npos)
    open_->scope = whole_number(text.substr(at + scope.size()), 16).value_or(0);
  open_ = nullptr;
}

std::uint32_t IdNames::class_of(std::uint32_t function) const {
  const auto id = ids_.find(function);
  return id != ids_.end() && id->second.is_method ? id->second.scope : 0;
}

std::uint32_t IdNames::name_of(std::uint32_t function,
                               const std::unordered_map<std::uint32_t, std::uint32_t>& classes) const {
  const auto id = ids_.find(function);
  if (id == ids_.end() || id->second.name == code::source::kNone) return code::source::kNone;
  std::uint32_t scope = code::source::kNone;
  if (id->second.is_method) {
    if (const auto found = classes.find(id->second.scope); found != classes.end()) scope = found->second;
  } else if (const auto found = ids_.find(id->second.scope); found != ids_.end()) {
    scope = found->second.name;
  }
  if (scope == code::source::kNone) return id->second.name;
  const std::string whole =
      std::string(texts_.text(scope)) + "::" + std::string(texts_.text(id->second.name));
  return texts_.number(whole.c_str(), memory_);
}

bool ClassReader::take(std::string_view text) {
  text_.take(text, *this);
  return !memory_.is_spent();
}

void ClassReader::read_line(std::string_view line) {
  constexpr std::array<std::string_view, 4> kKinds = {"LF_CLASS", "LF_STRUCTURE", "LF_UNION", "LF_INTERFACE"};
  if (!is_types_) return;
  const IdRecord record = id_record_of(trim(line));
  if (std::ranges::find(kKinds, record.kind) == kKinds.end() || !memory_.take(kEntryBytes)) return;
  names[record.number] = texts_.number(std::string(quoted(line)).c_str(), memory_);
}

}  // namespace ptkit::code::pdb
