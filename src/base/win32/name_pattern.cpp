#include "base/system/name_pattern.h"

#include <string_view>

namespace ptkit::base {
namespace {

constexpr std::size_t kNone = std::string_view::npos;

// Whether a set that begins at pattern[at] has the byte. `end`: after the set; kNone: the set has no end.
bool set_has(std::string_view pattern, std::size_t at, char byte, std::size_t& end) noexcept {
  const bool is_negated = at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^');
  if (is_negated) ++at;
  const auto take = [&]() noexcept {
    if (pattern[at] == '\\' && at + 1 < pattern.size()) ++at;
    return static_cast<unsigned char>(pattern[at++]);
  };
  bool found = false;
  for (bool is_first = true; at < pattern.size() && (is_first || pattern[at] != ']'); is_first = false) {
    const unsigned char low = take();
    unsigned char high = low;
    if (at + 1 < pattern.size() && pattern[at] == '-' && pattern[at + 1] != ']') {
      ++at;
      high = take();
    }
    const auto value = static_cast<unsigned char>(byte);
    found = found || (low <= value && value <= high);
  }
  end = at < pattern.size() ? at + 1 : kNone;
  return found != is_negated;
}

// Where the pattern goes on after it has matched one byte at pattern[at]; kNone: it does not match.
std::size_t step(std::string_view pattern, std::size_t at, char byte) noexcept {
  if (at >= pattern.size()) return kNone;
  if (pattern[at] == '?') return at + 1;
  std::size_t end = kNone;
  if (pattern[at] == '[') {
    const bool has = set_has(pattern, at + 1, byte, end);
    if (end != kNone) return has ? end : kNone;
  }
  if (pattern[at] == '\\' && at + 1 < pattern.size()) ++at;
  return pattern[at] == byte ? at + 1 : kNone;
}

}  // namespace

// After a mismatch, the last "*" takes a byte more. Earlier ones need not: what follows them has matched.
bool matches_pattern(const std::string& pattern, const std::string& name) noexcept {
  std::size_t at = 0;
  std::size_t after_star = kNone;
  std::size_t retry = 0;
  for (std::size_t i = 0; i < name.size();) {
    if (at < pattern.size() && pattern[at] == '*') {
      after_star = ++at;
      retry = i;
      continue;
    }
    const std::size_t next = step(pattern, at, name[i]);
    if (next != kNone) {
      at = next;
      ++i;
    } else if (after_star != kNone) {
      at = after_star;
      i = ++retry;
    } else {
      return false;
    }
  }
  while (at < pattern.size() && pattern[at] == '*') ++at;
  return at == pattern.size();
}

}  // namespace ptkit::base
