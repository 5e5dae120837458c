#include "code/image/ifunc_names.h"

#include <algorithm>
#include <cctype>

#include "base/hexadecimal.h"

namespace ptkit::code::image {
namespace {

constexpr std::string_view kResolver = " [resolver]";
constexpr std::string_view kNameless = " (0x";

std::string_view without_underscores(std::string_view name) noexcept {
  return name.substr(std::min(name.find_first_not_of('_'), name.size()));
}

// "avx_unaligned_erms" of "__memcpy_avx_unaligned_erms"; empty: it is none of the function's.
std::string_view variant_of(std::string_view own, std::string_view function) noexcept {
  own = without_underscores(own);
  function = without_underscores(function);
  if (function.empty() || !own.starts_with(function)) return {};
  own.remove_prefix(function.size());
  if (own.empty() || (own.front() != '_' && own.front() != '.')) return {};
  return own.substr(std::min(own.find_first_not_of("_."), own.size()));
}

}  // namespace

std::string resolver_name(std::string_view function) { return std::string(function).append(kResolver); }

bool is_named_after(std::string_view own, std::string_view function) noexcept {
  return !variant_of(own, function).empty();
}

std::string implementation_name(std::string_view function, std::string_view own, std::uint64_t address) {
  std::string name(function);
  const std::string_view variant = variant_of(own, function);
  if (!variant.empty()) return name.append(" (").append(variant).append(")");
  if (own.empty() || own == function) return name.append(" (").append(base::hexadecimal(address)).append(")");
  return name.append(" (").append(own).append(")");
}

std::optional<std::string_view> function_of_nameless(std::string_view name) noexcept {
  const std::size_t at = name.rfind(kNameless);
  if (at == std::string_view::npos || !name.ends_with(')')) return std::nullopt;
  const std::string_view digits = name.substr(at + kNameless.size(), name.size() - at - kNameless.size() - 1);
  const bool is_number = !digits.empty() && std::ranges::all_of(digits, [](unsigned char digit) {
    return std::isxdigit(digit) != 0;
  });
  return is_number ? std::optional(name.substr(0, at)) : std::nullopt;
}

}  // namespace ptkit::code::image
