#include "trace/module_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <system_error>

#include "base/ascii.h"
#include "base/paths.h"

namespace ptkit::trace {
namespace {

constexpr std::array<std::string_view, 7> kOfPrograms = {".exe", ".dll", ".sys", ".efi",
                                                         ".drv", ".ocx", ".ko"};
constexpr std::array<std::string_view, 6> kKernels = {"nt",       "ntoskrnl", "ntkrnlmp",
                                                      "ntkrnlpa", "ntkrpamp", "ntkrla57"};

struct ModuleName {
  explicit ModuleName(std::string_view path) : whole(base::ascii_lower(base::last_part(path))) {
    stem = whole;
    for (const std::string_view end : kOfPrograms) has_extension = cut(end) || has_extension;
    cut(".pdb");
    if (std::ranges::find(kKernels, stem) != kKernels.end()) stem = kKernels[0];
  }

  bool cut(std::string_view end) {
    if (stem.size() <= end.size() || !stem.ends_with(end)) return false;
    stem.remove_suffix(end.size());
    return true;
  }

  std::string whole;
  std::string_view stem;  // of `whole`
  bool has_extension = false;
};

// The number between `begin` and `end` in the last part of a path.
std::optional<std::int64_t> number_in(std::string_view path, std::string_view begin, std::string_view end) {
  std::string_view name = base::last_part(path);
  if (name.size() <= begin.size() + end.size() || !name.starts_with(begin) || !name.ends_with(end))
    return std::nullopt;
  name.remove_prefix(begin.size());
  name.remove_suffix(end.size());
  std::int64_t number = 0;
  const auto [last, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool is_number = error == std::errc{} && last == name.data() + name.size() && number >= 0;
  return is_number ? std::optional(number) : std::nullopt;
}

}  // namespace

bool is_same_module(std::string_view a, std::string_view b) {
  const ModuleName one(a);
  const ModuleName other(b);
  if (one.whole == other.whole) return !one.whole.empty();
  return one.stem == other.stem && (!one.has_extension || !other.has_extension);
}

bool is_jit_dump(std::string_view path) { return number_in(path, "jit-", ".dump").has_value(); }

std::optional<std::int64_t> pid_of_jit_map(std::string_view path) { return number_in(path, "perf-", ".map"); }

}  // namespace ptkit::trace
