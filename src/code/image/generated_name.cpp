#include "code/image/generated_name.h"

#include "base/ascii.h"
#include "base/hexadecimal.h"

namespace ptkit::code::image {
namespace {

constexpr std::string_view kAfterModule = "!0x";

}  // namespace

std::string generated_name(std::string_view module, std::uint64_t rva) {
  const std::string digits = base::hexadecimal(rva).substr(2);
  if (!module.empty()) return std::string(module).append(kAfterModule).append(digits);
  return "sub_" + base::ascii_upper(digits);
}

std::string address_in_module(std::string_view module, std::uint64_t offset) {
  const bool has_brackets = module.starts_with("[anon ");
  std::string text = has_brackets ? std::string(module) : '[' + std::string(module) + ']';
  return text.append("+").append(base::hexadecimal(offset));
}

bool may_be_generated(std::string_view name) noexcept {
  return name.find(kAfterModule) != std::string_view::npos;
}

}  // namespace ptkit::code::image
