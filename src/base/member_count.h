// The number of members of an aggregate, at compile time.
#pragma once

#include <cstddef>
#include <utility>

namespace ptkit::base {
namespace detail {

// Initializes any member, in code that is never executed.
struct AnyMember {
  template <typename T>
  operator T() const noexcept;  // NOLINT(google-explicit-constructor)
};

template <typename T, std::size_t... kIndex>
consteval bool takes(std::index_sequence<kIndex...>) {
  return requires { T{(static_cast<void>(kIndex), AnyMember())...}; };
}

// An aggregate takes as many initializers as it has members, or fewer.
template <typename T, std::size_t kCount = 0>
consteval std::size_t member_count() {
  if constexpr (takes<T>(std::make_index_sequence<kCount + 1>())) {
    return member_count<T, kCount + 1>();
  } else {
    return kCount;
  }
}

}  // namespace detail

template <typename T>
inline constexpr std::size_t kMemberCount = detail::member_count<T>();

}  // namespace ptkit::base
