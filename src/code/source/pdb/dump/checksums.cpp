#include "code/source/pdb/dump/checksums.h"

#include <algorithm>
#include <string>

#include "code/source/no_number.h"
#include "code/source/pdb/dump/keys.h"

namespace ptkit::code::pdb {
namespace {

// A scalar of YAML; empty if it has other escapes than those of paths.
std::string scalar(std::string_view text) {
  const char quote = text.empty() ? ' ' : text.front();
  if (quote != '\'' && quote != '"') return std::string(text);
  if (text.size() < 2 || text.back() != quote) return {};
  text = text.substr(1, text.size() - 2);
  std::string value;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == (quote == '"' ? '\\' : '\'');
    if (is_escape && (++i == text.size() || (text[i] != quote && text[i] != text[i - 1]))) return {};
    value += text[i];
  }
  return value;
}

// The value behind a key; empty: the line has another one.
std::string_view value_of(std::string_view line, std::string_view key) noexcept {
  return line.starts_with(key) ? trim(line.substr(key.size())) : std::string_view{};
}

}  // namespace

bool ChecksumReader::take(std::string_view text) {
  lines_.take(text, [this](std::string_view line) { read_line(trim(line)); });
  return !memory_.is_spent();
}

void ChecksumReader::read_line(std::string_view line) {
  constexpr std::uint32_t kHead = 6;  // bytes of an entry before its checksum
  constexpr std::uint32_t kAlignment = 4;
  if (line.starts_with("- Module:")) {
    ++modules_;
    place_ = 0;
  } else if (const std::string_view path = value_of(line, "- FileName:"); !path.empty()) {
    if (modules_ == 0 || !memory_.take(kEntryBytes)) return;
    paths_.try_emplace(key_of(modules_ - 1, place_), texts_.number(scalar(path).c_str(), memory_));
  } else if (const std::string_view sum = value_of(line, "Checksum:"); !sum.empty()) {
    const auto digits = static_cast<std::uint32_t>(std::ranges::count_if(sum, [](char one) {
      return std::string_view("0123456789ABCDEFabcdef").find(one) != std::string_view::npos;
    }));
    place_ += (kHead + digits / 2 + kAlignment - 1) / kAlignment * kAlignment;
  }
}

std::uint32_t ChecksumReader::path(std::uint32_t module, std::uint32_t place) const {
  const auto found = paths_.find(key_of(module, place));
  return found == paths_.end() ? code::source::kNone : found->second;
}

}  // namespace ptkit::code::pdb
