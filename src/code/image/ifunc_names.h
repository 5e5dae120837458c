// Names of what belongs to an indirect function (IFUNC): "memcpy (avx_unaligned_erms)" is what a resolver can
// choose, "memcpy [resolver]" the resolver.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ptkit::code::image {

[[nodiscard]] std::string resolver_name(std::string_view function);

// `own`: the function's own name in the file, such as "__memcpy_avx_unaligned_erms". Empty: it has none; then
// its address stands for the variant.
[[nodiscard]] std::string implementation_name(std::string_view function, std::string_view own,
                                              std::uint64_t address);

// Whether a name is of this kind: its part in front is that of the indirect function, as the one of
// "__memcpy_sse2" is "memcpy".
[[nodiscard]] bool is_named_after(std::string_view own, std::string_view function) noexcept;

// The indirect function of an implementation without a name of its own. nullopt: the name is another one.
[[nodiscard]] std::optional<std::string_view> function_of_nameless(std::string_view name) noexcept;

}  // namespace ptkit::code::image
