#include "trace/module_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "base/paths.h"

namespace ptkit::trace {
namespace {

constexpr std::array<std::string_view, 7> kOfPrograms = {".exe", ".dll", ".sys", ".efi",
                                                         ".drv", ".ocx", ".ko"};
constexpr std::array<std::string_view, 6> kKernels = {"nt",       "ntoskrnl", "ntkrnlmp",
                                                      "ntkrnlpa", "ntkrpamp", "ntkrla57"};

struct ModuleName {
  explicit ModuleName(std::string_view path) : whole(base::last_part(path)) {
    for (char& letter : whole) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
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

}  // namespace

bool is_same_module(std::string_view a, std::string_view b) {
  const ModuleName one(a);
  const ModuleName other(b);
  if (one.whole == other.whole) return !one.whole.empty();
  return one.stem == other.stem && (!one.has_extension || !other.has_extension);
}

}  // namespace ptkit::trace
